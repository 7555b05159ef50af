/*
 * pool: a bounded number of workers behind a bounded queue.
 *
 * Jobs are taken in the order in which they came. A thread is started when a job
 * comes and none is idle, up to the limit, so a quiet collector has few. How long
 * a job waited is measured. Safe from any thread.
 */
#pragma once

#include <stdint.h>

#include "collector/base/err.h"

struct pool; /* opaque */

/* Embedded in what is to be done. */
struct pool_job {
    /* On a worker; may free the job. waited_us: in the queue. */
    void (*run)(struct pool_job *job, int64_t waited_us);
    struct pool_job *next; /* the pool's */
    int64_t queued_us;     /* the pool's */
};

/* Nothing is started yet. */
struct pool *pool_new(size_t workers, size_t queue);

/* Finish every job that was taken, then end the workers. Accepts NULL. */
void pool_free(struct pool *p);

/* Take a job; never blocks. False: the queue is full, or no worker can be started. */
bool pool_submit(struct pool *p, struct pool_job *job) MUST_CHECK;

/*
 * The same for what is left to do of a job that was taken: no limit holds it back. Where
 * not one worker can be started it is done inside this call.
 */
void pool_submit_rest(struct pool *p, struct pool_job *job);

struct pool_stats {
    uint64_t queued;  /* waiting now */
    uint64_t running; /* now */
    uint64_t workers; /* threads now */
    uint64_t refused; /* since the start */
    uint64_t queue_max;
    uint64_t workers_max;
};
/* The numbers of this moment. */
void pool_stats(struct pool *p, struct pool_stats *ret);
