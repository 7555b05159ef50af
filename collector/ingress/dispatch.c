#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/dispatcher/hookset.h"
#include "collector/ingress/ingress.h"

enum {
    INLINE_MAX_BYTES = 64 * 1024,       /* a larger request is read by a worker */
    REPLY_MAX_BYTES = 16 * 1024 * 1024, /* reasons and contexts of all hooks */
    NAME_SHOWN = 64,                    /* of an unknown contract's name */
};

/* One request on its way: listener, worker, journal's writer, one after the other. */
struct job {
    struct pool_job base; /* first: the pool hands it back */
    struct ingress *in;
    struct web_request *web;
    struct hookset *set;
    struct dispatch d;
    bool prepared;
};

static struct job *job_new(struct ingress *in, struct web_request *r, struct hookset *set)
{
    struct job *job = xcalloc(1, sizeof(*job));

    job->in = in;
    job->web = r;
    job->set = set;
    dispatch_init(&job->d, set, web_body(r));
    job->d.cancel_fd = web_fd(r);
    job->d.work_dir = in->o.work_dir;
    (void)pthread_mutex_lock(&in->mutex);
    in->dispatches++;
    (void)pthread_mutex_unlock(&in->mutex);
    return job;
}

static void job_free(struct job *job)
{
    struct ingress *in = job->in;

    dispatch_done(&job->d);
    hookset_unref(job->set);
    free(job);
    (void)pthread_mutex_lock(&in->mutex);
    in->dispatches--;
    if (in->dispatches == 0) {
        (void)pthread_cond_signal(&in->none);
    }
    (void)pthread_mutex_unlock(&in->mutex);
}

static void free_on_worker(struct pool_job *base, int64_t waited_us)
{
    (void)waited_us;
    job_free((struct job *)base);
}

static void refuse(struct ingress *in, struct web_request *r, const struct err *err)
{
    atomic_fetch_add_explicit(&in->counts.refused, 1, memory_order_relaxed);
    web_problem(r, err->code == ERR_TOO_BIG ? 413 : 400, "%s", err->text);
}

/* ---- The answer ------------------------------------------------------------- */

static const char *recorded_name(enum recorded outcome)
{
    switch (outcome) {
    case RECORDED_STORED:
        return "stored";
    case RECORDED_LATE:
        return "late";
    case RECORDED_LOST:
        return "lost";
    }
    return "";
}

/* Say inside a result that is an object what became of its record. */
static void add_recorded(struct buf *result, enum recorded outcome)
{
    size_t n = result->len_bytes;

    while (n > 0 && (result->ptr[n - 1] == '\n' || result->ptr[n - 1] == ' ')) {
        n--;
    }
    if (n > 1 && result->ptr[n - 1] == '}') {
        bool empty = result->ptr[n - 2] == '{';

        result->len_bytes = n - 1;
        buf_addf(result, "%s\"recorded\":\"%s\"}\n", empty ? "" : ",", recorded_name(outcome));
    }
}

static bool make_reply(struct job *job, enum recorded outcome, struct buf *out, struct err *err)
{
    const struct contract_ops *ops = job->set->ops;
    int exit_code;

    if (outcome == RECORDED_STORED) {
        return ops->reply(&job->d, out, &exit_code, err);
    }

    bool ok = job->in->deny_unrecorded ? ops->reply_unrecorded(&job->d, out, &exit_code, err)
                                       : ops->reply(&job->d, out, &exit_code, err);

    if (ok) {
        add_recorded(out, outcome);
    }
    return ok;
}

static void count(struct job *job, enum recorded outcome)
{
    struct counts *c = &job->in->counts;
    const struct dispatch *d = &job->d;

    for (size_t i = 0; i < d->n_chains; i++) {
        counts_decision(c, job->set->ops->name, d->facts.hook_event_type, d->chains[i].decision);
    }
    counts_duration(c, clock_now_us() - d->received_us, d->queue_us);
    atomic_fetch_add_explicit(&c->recorded[outcome], 1, memory_order_relaxed);
}

/* On the writer's thread, the recorder's, or ours: it must not wait. */
static void on_recorded(void *ctx, struct dispatch *d, enum recorded outcome)
{
    CLEANUP(buf_done) struct buf result;
    struct job *job = ctx;
    struct web_request *web = job->web;
    struct err err;

    buf_init(&result, REPLY_MAX_BYTES);

    bool ok = make_reply(job, outcome, &result, &err);

    count(job, outcome);
    web_header(web, "Hooktrail-Recorded", recorded_name(outcome));
    if (!ok) {
        web_problem(web, 500, "the result cannot be written: %s", err.text);
    } else if (!buf_ok(&result)) {
        web_problem(web, 500, "the result is longer than %d bytes", REPLY_MAX_BYTES);
    } else {
        web_reply(web, 200, NULL, buf_slice(&result));
    }
    if (d->dir) {
        job->base.run = free_on_worker; /* removing files may wait for the disk */
        pool_submit_rest(job->in->pool, &job->base);
    } else {
        job_free(job);
    }
}

/* ---- The way in ------------------------------------------------------------- */

/* Open and plan. False: refused and answered, the job is gone. */
static bool prepare(struct job *job)
{
    struct err err;

    if (job->prepared) {
        return true;
    }
    if (!chain_prepare(&job->d, &err)) {
        refuse(job->in, job->web, &err);
        job_free(job);
        return false;
    }
    job->prepared = true;
    return true;
}

static void run_on_worker(struct pool_job *base, int64_t waited_us)
{
    struct job *job = (struct job *)base;

    job->d.queue_us = waited_us;
    if (prepare(job)) {
        recorder_run(job->in->o.recorder, &job->d, on_recorded, job);
    }
}

static void hand_to_pool(struct job *job)
{
    struct ingress *in = job->in;
    struct web_request *web = job->web;

    job->base.run = run_on_worker;
    if (!pool_submit(in->pool, &job->base)) {
        job_free(job);
        web_header(web, "Retry-After", "1");
        web_problem(web, 503, "queue: %zu dispatches wait already, the limit of collect.queue",
                    in->o.queue);
    }
}

/* The set of a contract's name, raw, in JSON. */
static struct hookset *find_named(struct ingress *in, struct slice raw, struct err *err)
{
    struct hookset *set = NULL;
    struct slice name = { 0 };
    struct arena a;

    arena_init(&a, raw.len + NAME_SHOWN);
    if (payload_string(raw, &a, &name, NULL)) {
        set = sets_get(in->o.sets, name);
    }
    if (!set) {
        (void)err_set(err, ERR_INVALID, "contract: '%.*s' is %s (known: %s)",
                      name.len < NAME_SHOWN ? (int)name.len : NAME_SHOWN, name.ptr,
                      contract_find(name) ? "not configured here" : "not known", contract_names());
    }
    arena_clear(&a);
    return set;
}

/* The hook set of the contract that the request names. */
static struct hookset *find_set(struct ingress *in, struct slice body, struct err *err)
{
    struct json_value request;

    if (!payload_check(body, &request, err)) {
        (void)err_wrap(err, "request");
        return NULL;
    }
    if (request.kind != JSON_KIND_OBJECT) {
        (void)err_set(err, ERR_INVALID, "request: must be an object");
        return NULL;
    }

    struct json_value contract = payload_get(request, SLICE("contract"));

    if (contract.kind != JSON_KIND_STRING) {
        (void)err_set(err, ERR_INVALID, "contract: %s (known: %s)",
                      contract.kind == JSON_KIND_NONE ? "is missing" : "must be a string",
                      contract_names());
        return NULL;
    }
    return find_named(in, contract.raw, err);
}

void dispatch_handle(void *ctx, struct web_request *r)
{
    struct ingress *in = ctx;
    struct err err;
    struct hookset *set = find_set(in, web_body(r), &err);

    if (!set) {
        refuse(in, r, &err);
        return;
    }

    struct job *job = job_new(in, r, set);

    if (web_body(r).len > INLINE_MAX_BYTES) {
        hand_to_pool(job);
    } else if (prepare(job)) {
        if (chain_runs_something(&job->d)) {
            hand_to_pool(job);
        } else {
            recorder_run(in->o.recorder, &job->d, on_recorded, job);
        }
    }
}
