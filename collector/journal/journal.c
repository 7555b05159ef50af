#include "collector/journal/journal.h"

#include <sys/prctl.h>
#include <time.h>

#include "collector/journal/journal_impl.h"

enum {
    GATHER_BATCHES = 2, /* settled by one round: a sign of several at once */
    GATHER_NS = 20000,
};

static struct timespec timespec_of(int64_t ms)
{
    return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
}

/* Sleep until there is something to do. */
static void rest(struct journal *j)
{
    struct timespec due = timespec_of(writer_due_ms(j));
    bool pausing = j->retry_at_ms > 0; /* gap records have to wait then… */
    bool hold = pausing && j->when_full == JOURNAL_FULL_BLOCK; /* …and whatever comes, too */
    int failed = 0;

    (void)pthread_mutex_lock(&j->lock);
    while (failed == 0 && !j->closing &&
           (hold || (!j->first && (pausing || !losses_any(&j->losses))))) {
        j->waiting = true;
        failed = pthread_cond_timedwait(&j->wake, &j->lock, &due);
    }
    j->waiting = false;
    (void)pthread_mutex_unlock(&j->lock);
}

static bool is_closing(struct journal *j)
{
    (void)pthread_mutex_lock(&j->lock);

    bool closing = j->closing;

    (void)pthread_mutex_unlock(&j->lock);
    return closing;
}

/*
 * Where several submit at once, a moment's sleep lets them gather: to wake the writer
 * for each costs them more than the writing, and a sync for the first of them holds up
 * all others. One alone is never held up.
 */
static void gather(const struct journal *j)
{
    if (j->n_settled >= GATHER_BATCHES) {
        (void)nanosleep(&(struct timespec){ .tv_nsec = GATHER_NS }, NULL);
    }
}

static void *write_on(void *arg)
{
    struct journal *j = arg;

    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* for gather(): of this thread alone */
    while (!is_closing(j)) {
        if (writer_round(j)) {
            gather(j);
        } else {
            rest(j);
        }
    }
    close_core(j);
    (void)pthread_mutex_lock(&j->lock);
    j->ended = true;
    (void)pthread_cond_broadcast(&j->wake);
    (void)pthread_mutex_unlock(&j->lock);
    return NULL;
}

void journal_set_limits(struct journal *j, const struct journal_limits *limits)
{
    j->when_full = limits->when_full;
    j->quota_bytes = limits->quota_bytes;
    j->keep_ms = limits->keep_ms;
    (void)pthread_mutex_lock(&j->lock);
    (void)pthread_cond_broadcast(&j->wake); /* what was held may go now */
    (void)pthread_mutex_unlock(&j->lock);
}

bool journal_open(const struct journal_options *o, struct journal **ret,
                  struct journal_recovery *ret_recovery, struct err *err)
{
    struct journal *j;

    if (!open_core(o, &j, ret_recovery, err)) {
        return false;
    }

    int failed = pthread_create(&j->thread, NULL, write_on, j);

    if (failed != 0) {
        free_core(j);
        return err_errno(err, failed, "journal: start the writer");
    }
    *ret = j;
    return true;
}

/* True when the thread has done its last write. */
static bool wait_for_end(struct journal *j)
{
    struct timespec until = timespec_of(j->io->mono_ms(j->io->ctx) + CLOSE_MS);
    int failed = 0;

    (void)pthread_mutex_lock(&j->lock);
    j->closing = true;
    (void)pthread_cond_broadcast(&j->wake);
    while (!j->ended && failed == 0) {
        failed = pthread_cond_timedwait(&j->wake, &j->lock, &until);
    }

    bool ended = j->ended;

    (void)pthread_mutex_unlock(&j->lock);
    return ended;
}

void journal_close(struct journal *j)
{
    if (!j) {
        return;
    }
    if (!wait_for_end(j)) {
        (void)pthread_detach(j->thread); /* a disk that hangs: the thread still uses j */
        return;
    }
    (void)pthread_join(j->thread, NULL);
    free_core(j);
}

struct id journal_id(struct journal *j)
{
    (void)pthread_mutex_lock(&j->lock);

    struct id id = j->id;

    (void)pthread_mutex_unlock(&j->lock);
    return id;
}

/* What of a batch can be seen to be wrong. */
static bool check(const struct journal_batch *b, struct err *err)
{
    if (b->n == 0 || b->n > JOURNAL_BATCH_MAX) {
        return err_set(err, ERR_INVALID, "a batch has 1 to %d records", JOURNAL_BATCH_MAX);
    }
    for (size_t i = 0; i < b->n; i++) {
        if (b->records[i].bytes.len == 0 || b->records[i].type <= RECORD_NONE ||
            b->records[i].type >= RECORD_TYPE_COUNT) {
            return err_set(err, ERR_INVALID, "a record of no type, or without bytes");
        }
        if (b->records[i].bytes.len > RECORD_MAX_BYTES) {
            return err_set(err, ERR_TOO_BIG, "a record of more than %d bytes", RECORD_MAX_BYTES);
        }
    }
    return true;
}

/* Put it into the queue; the lock is held. */
static bool enqueue(struct journal *j, struct journal_batch *b, uint64_t bytes, struct err *err)
{
    if (j->closing) {
        return err_set(err, ERR_AGAIN, "the journal is being closed");
    }
    if (j->stats.queue_bytes + bytes > j->o.queue_bytes && j->stats.queue_bytes > 0) {
        return err_set(err, ERR_TOO_BIG, "the journal's queue is full");
    }
    b->next = NULL;
    b->queued = true;
    b->staged = false;
    b->counted = false;
    if (b->owed) {
        j->losses.owed += b->n;
        losses_save(&j->losses, &j->mark);
    }
    if (j->last) {
        j->last->next = b;
    } else {
        j->first = b;
    }
    j->last = b;
    j->stats.queue_bytes += bytes;
    j->stats.accepted_records += b->n;
    return true;
}

bool journal_submit(struct journal *j, struct journal_batch *b, struct err *err)
{
    uint64_t bytes = 0;

    if (!check(b, err)) {
        return false;
    }
    for (size_t i = 0; i < b->n; i++) {
        bytes += format_frame_bytes(b->records[i].bytes.len);
        b->records[i].leaf = format_leaf(b->records[i].bytes);
    }
    (void)pthread_mutex_lock(&j->lock);

    bool ok = enqueue(j, b, bytes, err);
    bool wake = ok && j->waiting;

    /* One of those who come while it wakes up is enough; and it finds the lock free. */
    j->waiting = j->waiting && !wake;
    (void)pthread_mutex_unlock(&j->lock);
    if (wake) {
        (void)pthread_cond_signal(&j->wake);
    }
    return ok;
}

void journal_owe(struct journal *j, struct journal_batch *b)
{
    (void)pthread_mutex_lock(&j->lock);
    if (!b->owed && b->queued && !b->counted) {
        j->losses.owed += b->n;
        j->losses.owed_count += b->staged ? b->n : 0;
        losses_save(&j->losses, &j->mark);
    }
    b->owed = true; /* when it is not submitted yet: from then on */
    (void)pthread_mutex_unlock(&j->lock);
}

void journal_count_lost(struct journal *j, uint64_t n, const char *cause)
{
    if (n == 0) {
        return;
    }
    (void)pthread_mutex_lock(&j->lock);
    losses_add(&j->losses, n, cause, j->io->now_us(j->io->ctx));
    j->losses_unsaved = true;
    if (j->waiting) {
        (void)pthread_cond_broadcast(&j->wake);
    }
    (void)pthread_mutex_unlock(&j->lock);
}

void journal_stats(struct journal *j, struct journal_stats *ret)
{
    (void)pthread_mutex_lock(&j->lock);
    *ret = j->stats;
    ret->lost_records = j->losses.total;
    (void)pthread_mutex_unlock(&j->lock);
}
