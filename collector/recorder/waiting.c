/*
 * All waits are equally long, so the line is ordered by time and the thread
 * looks at its first alone. Callbacks run without the lock.
 */
#include "collector/recorder/recorder_part.h"

#include <time.h>

#include "collector/base/clock.h"

static void take_out(struct recorder *r, struct pending *p)
{
    *(p->prev ? &p->prev->next : &r->first) = p->next;
    *(p->next ? &p->next->prev : &r->last) = p->prev;
    p->waits = false;
}

/* Take p out of the line and answer it. The lock is held, and is not meanwhile. */
static void answer(struct recorder *r, struct pending *p, enum recorded outcome)
{
    void (*on_recorded)(void *, struct dispatch *, enum recorded) = p->on_recorded;
    struct dispatch *d = p->dispatch;
    void *ctx = p->ctx;

    take_out(r, p);
    pthread_mutex_unlock(&r->lock);
    on_recorded(ctx, d, outcome);
    pthread_mutex_lock(&r->lock);
}

void waiting_add(struct recorder *r, struct pending *p)
{
    pthread_mutex_lock(&r->lock);
    p->deadline_ms = clock_mono_ms() + r->record_wait_ms;
    p->waits = true;
    p->prev = r->last;
    p->next = NULL;
    *(r->last ? &r->last->next : &r->first) = p;
    r->last = p;

    bool sleeps_too_long = r->wakes_ms > p->deadline_ms;

    r->wakes_ms = sleeps_too_long ? 0 : r->wakes_ms;
    pthread_mutex_unlock(&r->lock);
    if (sleeps_too_long) {
        pthread_cond_signal(&r->changed);
    }
}

void waiting_answer(struct recorder *r, struct pending *p, enum recorded outcome)
{
    pthread_mutex_lock(&r->lock);

    bool waits = p->waits;

    if (waits) {
        take_out(r, p);
    }
    pthread_mutex_unlock(&r->lock);
    if (waits) {
        p->on_recorded(p->ctx, p->dispatch, outcome);
    }
}

/*
 * It looks at what was due first when it fell asleep, be it answered meanwhile or
 * not: a busy recorder wakes the thread once a wait, and not once a dispatch.
 */
static void wait_for_next(struct recorder *r)
{
    int64_t until_ms = r->first ? r->first->deadline_ms : INT64_MAX;
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

    r->wakes_ms = until_ms;
    if (r->first) {
        (void)pthread_cond_timedwait(&r->changed, &r->lock, &at);
    } else {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    r->wakes_ms = 0; /* awake: it looks before it sleeps again */
}

/*
 * Whoever asked goes on without the record: should we be killed before it is stored,
 * it is counted, and its hooks have ended: they were not interrupted.
 */
static void answer_late(struct recorder *r, struct pending *p)
{
    atomic_fetch_add(&r->late, 1);
    journal_owe(r->options.journal, &p->batch);
    recorder_release_slots(r, p);
    answer(r, p, RECORDED_LATE);
}

static void *end_waits(void *ctx)
{
    struct recorder *r = ctx;

    pthread_mutex_lock(&r->lock);
    while (r->first || !r->stopping) {
        if (!r->first || clock_mono_ms() < r->first->deadline_ms) {
            wait_for_next(r);
        } else {
            answer_late(r, r->first);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool waiting_start(struct recorder *r)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!r->options.journal) {
        return true;
    }
    r->has_thread = pthread_create(&r->thread, NULL, end_waits, r) == 0;
    return r->has_thread;
}

/* The thread goes once the line is empty: at the latest when the last wait ends. */
void waiting_stop(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    r->options.inflight = NULL;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->has_thread) {
        pthread_join(r->thread, NULL);
    }
}
