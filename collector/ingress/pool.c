#include "collector/ingress/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"

enum { STACK_BYTES = 512 * 1024 };

struct pool {
    size_t workers_max;
    size_t queue_max;

    pthread_mutex_t mutex; /* over everything below */
    pthread_cond_t more;   /* a job has come, or the end */
    struct pool_job *first;
    struct pool_job **last; /* where the next job is linked */
    size_t queued;
    size_t idle;
    size_t running;
    uint64_t refused;
    bool closing;
    pthread_t *threads;
    size_t n_threads;
};

struct pool *pool_new(size_t workers, size_t queue)
{
    struct pool *p = xcalloc(1, sizeof(*p));

    p->workers_max = workers;
    p->queue_max = queue;
    p->last = &p->first;
    p->threads = xcalloc(workers, sizeof(*p->threads));
    (void)pthread_mutex_init(&p->mutex, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    return p;
}

/* The next job, or NULL at the end. The mutex is held. */
static struct pool_job *take(struct pool *p)
{
    while (!p->first && !p->closing) {
        p->idle++;
        (void)pthread_cond_wait(&p->more, &p->mutex);
        p->idle--;
    }

    struct pool_job *job = p->first;

    if (job) {
        p->first = job->next;
        if (!p->first) {
            p->last = &p->first;
        }
        p->queued--;
    }
    return job;
}

static void *work(void *arg)
{
    struct pool *p = arg;
    struct pool_job *job;

    (void)pthread_mutex_lock(&p->mutex);
    for (job = take(p); job; job = take(p)) {
        int64_t waited_us = clock_mono_us() - job->queued_us;

        p->running++;
        (void)pthread_mutex_unlock(&p->mutex);
        job->run(job, waited_us);
        (void)pthread_mutex_lock(&p->mutex);
        p->running--;
    }
    (void)pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* Have a worker for one job more, as far as there may be one. The mutex is held. */
static void start_worker(struct pool *p)
{
    pthread_attr_t attr;

    if (p->queued < p->idle || p->n_threads == p->workers_max) {
        return;
    }
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (pthread_create(&p->threads[p->n_threads], &attr, work, p) == 0) {
        p->n_threads++;
    }
    (void)pthread_attr_destroy(&attr);
}

static void append(struct pool *p, struct pool_job *job)
{
    job->next = NULL;
    job->queued_us = clock_mono_us();
    *p->last = job;
    p->last = &job->next;
    p->queued++;
}

bool pool_submit(struct pool *p, struct pool_job *job)
{
    bool ok = false;

    (void)pthread_mutex_lock(&p->mutex);
    start_worker(p);
    if (!p->closing && p->n_threads > 0 && p->queued < p->queue_max) {
        append(p, job);
        ok = true;
    } else {
        p->refused++;
    }
    (void)pthread_mutex_unlock(&p->mutex);
    if (ok) { /* who wakes finds the mutex free */
        (void)pthread_cond_signal(&p->more);
    }
    return ok;
}

void pool_submit_rest(struct pool *p, struct pool_job *job)
{
    (void)pthread_mutex_lock(&p->mutex);
    start_worker(p);

    bool nobody = p->n_threads == 0;

    if (!nobody) {
        append(p, job);
        (void)pthread_cond_signal(&p->more);
    }
    (void)pthread_mutex_unlock(&p->mutex);
    if (nobody) {
        job->run(job, 0);
    }
}

void pool_free(struct pool *p)
{
    if (!p) {
        return;
    }
    (void)pthread_mutex_lock(&p->mutex);
    p->closing = true;
    (void)pthread_cond_broadcast(&p->more);
    (void)pthread_mutex_unlock(&p->mutex);
    for (size_t i = 0; i < p->n_threads; i++) {
        (void)pthread_join(p->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&p->more);
    (void)pthread_mutex_destroy(&p->mutex);
    free(p->threads);
    free(p);
}

void pool_stats(struct pool *p, struct pool_stats *ret)
{
    (void)pthread_mutex_lock(&p->mutex);
    *ret = (struct pool_stats){
        .queued = p->queued,
        .running = p->running,
        .workers = p->n_threads,
        .refused = p->refused,
        .queue_max = p->queue_max,
        .workers_max = p->workers_max,
    };
    (void)pthread_mutex_unlock(&p->mutex);
}
