#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/journal/journal_impl.h"

/* One record that somebody may wait for, or no longer. */
struct appended {
    struct journal_batch batch;
    pthread_mutex_t lock;
    pthread_cond_t settled;
    int holders; /* who waits, and the journal: the last one frees it */
    bool done;
    enum journal_outcome outcome;
    uint64_t seq;
    char bytes[];
};

static void let_go(struct appended *a)
{
    (void)pthread_mutex_lock(&a->lock);

    int left = --a->holders;

    (void)pthread_mutex_unlock(&a->lock);
    if (left == 0) {
        (void)pthread_cond_destroy(&a->settled);
        (void)pthread_mutex_destroy(&a->lock);
        free(a);
    }
}

static void on_append_settled(struct journal_batch *b, enum journal_outcome outcome,
                              uint64_t first_seq)
{
    struct appended *a = CONTAINER_OF(b, struct appended, batch);

    (void)pthread_mutex_lock(&a->lock);
    a->done = true;
    a->outcome = outcome;
    a->seq = first_seq;
    (void)pthread_cond_broadcast(&a->settled);
    (void)pthread_mutex_unlock(&a->lock);
    let_go(a);
}

static struct appended *new_appended(enum record_type type, struct slice bytes)
{
    struct appended *a = xcalloc(1, sizeof(*a) + bytes.len);
    pthread_condattr_t attr;

    if (bytes.len > 0) {
        memcpy(a->bytes, bytes.ptr, bytes.len);
    }
    a->batch.records[0].type = type;
    a->batch.records[0].bytes = (struct slice){ .ptr = a->bytes, .len = bytes.len };
    a->batch.n = 1;
    a->batch.on_settled = on_append_settled;
    a->holders = 2;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&a->settled, &attr);
    (void)pthread_condattr_destroy(&attr);
    return a;
}

/* Wait at most timeout_ms; what was known then. Who waits no longer is owed it. */
static bool wait_settled(struct journal *j, struct appended *a, int64_t timeout_ms,
                         struct appended *ret)
{
    int64_t until_ms = clock_mono_ms() + timeout_ms;
    struct timespec until = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
    int failed = 0;

    (void)pthread_mutex_lock(&a->lock);
    while (!a->done && failed == 0) {
        failed = pthread_cond_timedwait(&a->settled, &a->lock, &until);
    }
    if (!a->done) {
        journal_owe(j, &a->batch);
    }
    ret->done = a->done;
    ret->outcome = a->outcome;
    ret->seq = a->seq;
    (void)pthread_mutex_unlock(&a->lock);
    return ret->done && ret->outcome == JOURNAL_STORED;
}

bool journal_append(struct journal *j, enum record_type type, struct slice bytes,
                    int64_t timeout_ms, uint64_t *ret_seq, struct err *err)
{
    struct appended known = { 0 };

    if (bytes.len > RECORD_MAX_BYTES) {
        return err_set(err, ERR_TOO_BIG, "a record of more than %d bytes", RECORD_MAX_BYTES);
    }

    struct appended *a = new_appended(type, bytes);

    if (!journal_submit(j, &a->batch, err)) {
        a->holders = 1;
        let_go(a);
        return false;
    }

    bool stored = wait_settled(j, a, timeout_ms, &known);

    let_go(a);
    if (stored) {
        *ret_seq = known.seq;
        return true;
    }
    return known.done ? err_set(err, ERR_IO, "the record could not be stored")
                      : err_set(err, ERR_AGAIN, "the record is not safe yet, after %lld ms",
                                (long long)timeout_ms);
}
