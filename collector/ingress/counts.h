/*
 * counts: what /metrics tells of dispatches: decisions by contract, event and
 * decision, and how long they took. Safe from any thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "collector/base/buf.h"
#include "collector/record/types.h"

enum {
    COUNTS_ROWS = 256, /* contract x event x decision that occur; what is over is "other" */
    COUNTS_NAME = 32,
    COUNTS_BUCKETS = 16,
};

struct counts {
    pthread_mutex_t mutex; /* over rows */
    struct counts_row {
        const char *contract; /* a constant */
        char event[COUNTS_NAME];
        enum decision decision;
        uint64_t n;
    } rows[COUNTS_ROWS];
    size_t n_rows;
    _Atomic uint64_t buckets[COUNTS_BUCKETS + 1]; /* of durations; the last has no upper bound */
    _Atomic uint64_t duration_us;                 /* sum */
    _Atomic uint64_t queue_us;                    /* sum */
    _Atomic uint64_t refused;                     /* requests that were no dispatch */
    _Atomic uint64_t recorded[3];                 /* by enum recorded */
    _Atomic uint64_t events_accepted;
    _Atomic uint64_t events_refused;
};

/* All zero; and its end. */
void counts_init(struct counts *c);
void counts_done(struct counts *c);

/* One chain's decision; `contract` is a constant. */
void counts_decision(struct counts *c, const char *contract, struct slice event,
                     enum decision decision);

/* One dispatch: from its arrival to its decision, and how long of it in the queue. */
void counts_duration(struct counts *c, int64_t duration_us, int64_t queue_us);

/* Append all of it in Prometheus' text format. */
void counts_print(struct counts *c, struct buf *out);

/* One metric without labels: its HELP and TYPE lines, and its value. */
void counts_plain(struct buf *out, const char *name, const char *type, const char *help,
                  uint64_t value);
