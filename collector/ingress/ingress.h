/*
 * ingress: what a collector offers over HTTP.
 *
 *     POST /v1/dispatch   run an event's hooks, record it, answer the decision
 *     POST /v1/events     NDJSON of hosts: tool executions, evaluations of their own
 *     GET  /metrics       Prometheus text
 *     GET  /healthz       200 while the process answers
 *     GET  /readyz        200 while it can dispatch and record
 *
 *     listener ─▶ dispatch: prepare ─┬─ nothing to run ─▶ recorder ─┐
 *                                    └─▶ pool ─▶ chain ─▶ recorder ─┴─▶ journal's writer ─▶ reply
 *
 * Handlers run on the listener thread and never wait. A dispatch in which no hook
 * runs stays there, so that it changes threads but once, at the journal.
 */
#pragma once

#include "collector/ingress/counts.h"
#include "collector/ingress/pool.h"
#include "collector/ingress/sets.h"
#include "collector/journal/journal.h"
#include "collector/recorder/recorder.h"
#include "collector/web/web.h"

struct ingress_options {
    const char *collector; /* name in records that hosts send */
    const char *work_dir;  /* of the private folders of dispatches */
    struct journal *journal;
    struct recorder *recorder;
    struct sets *sets;
    size_t workers;
    size_t queue; /* dispatches that wait for a worker */
    size_t max_body_bytes;
    int64_t record_wait_ms;
    bool deny_unrecorded;
};

enum { INGRESS_ROUTES = 5 };

struct ingress {
    struct ingress_options o;
    _Atomic int64_t record_wait_ms; /* of the options, until ingress_set() */
    _Atomic bool deny_unrecorded;
    struct pool *pool;
    struct counts counts;
    pthread_mutex_t mutex;         /* over what follows */
    pthread_cond_t none;           /* `dispatches` has become 0 */
    size_t dispatches;             /* on their way: whoever answers one still looks here */
    const struct web *_Atomic web; /* for its numbers, once it listens */
    struct web_route routes[INGRESS_ROUTES];
};

/* Everything in the options stays the caller's and outlives it. */
struct ingress *ingress_new(const struct ingress_options *o);

/* What may change while it serves. Thread: any. */
void ingress_set(struct ingress *in, int64_t record_wait_ms, bool deny_unrecorded);

/*
 * After web_stop(): finish what runs, wait until each dispatch is answered, be it late
 * (record_wait_ms), end the workers. The recorder outlives it. Accepts NULL.
 */
void ingress_free(struct ingress *in);

/* Handlers of the routes; ctx is a struct ingress. */
void dispatch_handle(void *ctx, struct web_request *r);
void events_handle(void *ctx, struct web_request *r);
void metrics_handle(void *ctx, struct web_request *r);
void healthz_handle(void *ctx, struct web_request *r);
void readyz_handle(void *ctx, struct web_request *r);
