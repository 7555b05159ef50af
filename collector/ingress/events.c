/*
 * A request's lines are read by a worker, journalled in batches, and answered
 * once every batch is settled or the time is up. The request's memory is shared
 * with the journal's writer: whoever lets go last frees it.
 */
#include <errno.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/ingress/event_line.h"
#include "collector/ingress/ingress.h"
#include "collector/record/record.h"

enum {
    LINES_MAX = 10000,
    LINES_BYTES = 8 * 1024 * 1024,        /* of the lines, beside their records */
    SCRATCH_BYTES = 4 * RECORD_MAX_BYTES, /* of one line while it is read */
    SETTLE_MS = 5000,                     /* for all batches, beyond record_wait_ms */
    ANSWER_MAX_BYTES = 8 * 1024 * 1024,   /* every line of a request refused */
};

enum line_state { LINE_REFUSED, LINE_PENDING, LINE_STORED, LINE_LOST };

struct line {
    enum line_state state;
    enum record_type type;
    struct slice record; /* in the arena */
    struct slice reason; /* why refused; in the arena */
};

struct batch {
    struct journal_batch base; /* first */
    struct events *events;
    struct line *lines; /* those of the batch, in order */
};

struct events {
    struct pool_job job; /* first */
    struct ingress *in;
    struct web_request *web;
    struct arena arena; /* lines, records, reasons, batches */
    struct line *lines;
    size_t n;

    pthread_mutex_t mutex; /* over the states of lines and what follows */
    pthread_cond_t settled;
    size_t pending; /* batches with the journal */
    size_t refs;    /* the worker, and each such batch */
};

static void unref(struct events *e)
{
    size_t left;

    (void)pthread_mutex_lock(&e->mutex);
    left = --e->refs;
    (void)pthread_mutex_unlock(&e->mutex);
    if (left > 0) {
        return;
    }
    (void)pthread_cond_destroy(&e->settled);
    (void)pthread_mutex_destroy(&e->mutex);
    arena_clear(&e->arena);
    free(e);
}

/* ---- Reading ---------------------------------------------------------------- */

static bool is_blank(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != ' ' && s.ptr[i] != '\t' && s.ptr[i] != '\r') {
            return false;
        }
    }
    return true;
}

static void read_line(struct events *e, struct slice text, struct buf *record, struct line *ret)
{
    struct arena scratch;
    struct err err;

    buf_clear(record);
    arena_init(&scratch, SCRATCH_BYTES + text.len);

    bool ok = event_line_read(text, e->in->o.collector, &scratch, record, &ret->type, &err);

    arena_clear(&scratch);
    if (ok && !arena_dup(&e->arena, buf_slice(record), &ret->record)) {
        ok = err_set(&err, ERR_TOO_BIG, "the request's records take too much memory");
    }
    ret->state = ok ? LINE_PENDING : LINE_REFUSED;
    if (!ok && !arena_dup(&e->arena, slice_from_cstr(err.text), &ret->reason)) {
        ret->reason = SLICE("refused");
    }
}

/* Read all lines. False, and answered, when they are too many. */
static bool read_lines(struct events *e)
{
    CLEANUP(buf_done) struct buf record;
    struct slice rest = web_body(e->web);
    struct slice text;
    size_t number = 0;

    buf_init(&record, RECORD_MAX_BYTES);
    e->lines = arena_alloc(&e->arena, LINES_MAX, sizeof(*e->lines));
    while (rest.len > 0) {
        (void)slice_cut(rest, '\n', &text, &rest);
        if (number == LINES_MAX || !e->lines) {
            web_problem(e->web, 413, "lines: more than %d in one request", LINES_MAX);
            return false;
        }
        if (is_blank(text)) {
            e->lines[number++].state = LINE_STORED; /* nothing to store */
            e->lines[number - 1].type = RECORD_NONE;
        } else {
            read_line(e, text, &record, &e->lines[number++]);
        }
    }
    e->n = number;
    return true;
}

/* ---- Journalling ------------------------------------------------------------ */

static void set_state(struct batch *b, enum line_state state)
{
    for (size_t i = 0, k = 0; k < b->base.n; i++) {
        if (b->lines[i].state == LINE_PENDING) {
            b->lines[i].state = state;
            k++;
        }
    }
}

static void on_settled(struct journal_batch *base, enum journal_outcome outcome, uint64_t first_seq)
{
    struct batch *b = (struct batch *)base;
    struct events *e = b->events;

    (void)first_seq;
    (void)pthread_mutex_lock(&e->mutex);
    set_state(b, outcome == JOURNAL_STORED ? LINE_STORED : LINE_LOST);
    e->pending--;
    (void)pthread_cond_signal(&e->settled);
    (void)pthread_mutex_unlock(&e->mutex);
    unref(e);
}

/* Wait until a batch is settled; false when the time is up. The mutex is held. */
static bool wait_settled(struct events *e, int64_t until_ms)
{
    const struct timespec until = { .tv_sec = until_ms / 1000,
                                    .tv_nsec = until_ms % 1000 * 1000000 };

    return pthread_cond_clockwait(&e->settled, &e->mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/* Hand a batch over; while the journal's queue is full, wait for what went before. */
static void submit(struct events *e, struct batch *b, int64_t until_ms)
{
    struct err err;
    bool ok = false;
    bool again = true;

    (void)pthread_mutex_lock(&e->mutex);
    while (!ok && again) {
        e->refs++;
        e->pending++;
        (void)pthread_mutex_unlock(&e->mutex);
        ok = journal_submit(e->in->o.journal, &b->base, &err);
        (void)pthread_mutex_lock(&e->mutex);
        if (!ok) {
            e->refs--;
            e->pending--;
            again = e->pending > 0 && wait_settled(e, until_ms);
        }
    }
    if (!ok) {
        set_state(b, LINE_LOST);
    }
    (void)pthread_mutex_unlock(&e->mutex);
}

/* The next batch from line *at on; NULL when there is none. */
static struct batch *next_batch(struct events *e, size_t *at)
{
    while (*at < e->n && e->lines[*at].state != LINE_PENDING) {
        (*at)++;
    }
    if (*at == e->n) {
        return NULL;
    }

    struct batch *b = ARENA_NEW(&e->arena, struct batch);

    if (!b) {
        return NULL;
    }
    b->events = e;
    b->lines = &e->lines[*at];
    b->base.on_settled = on_settled;
    for (; *at < e->n && b->base.n < JOURNAL_BATCH_MAX; (*at)++) {
        if (e->lines[*at].state == LINE_PENDING) {
            b->base.records[b->base.n].type = e->lines[*at].type;
            b->base.records[b->base.n++].bytes = e->lines[*at].record;
        }
    }
    return b;
}

static void journal_lines(struct events *e)
{
    int64_t until_ms = clock_mono_ms() + e->in->record_wait_ms + SETTLE_MS;
    size_t at = 0;
    struct batch *b;

    for (b = next_batch(e, &at); b; b = next_batch(e, &at)) {
        submit(e, b, until_ms);
    }
    (void)pthread_mutex_lock(&e->mutex);
    while (e->pending > 0 && wait_settled(e, until_ms)) {
    }
    (void)pthread_mutex_unlock(&e->mutex);
}

/* ---- The answer ------------------------------------------------------------- */

static struct slice reason_of(const struct line *l)
{
    switch (l->state) {
    case LINE_REFUSED:
        return l->reason;
    case LINE_PENDING:
        return SLICE("not recorded in time; it may still be");
    case LINE_LOST:
        return SLICE("the journal takes no records now; send it again");
    case LINE_STORED:
        break;
    }
    return (struct slice){ 0 };
}

static void answer(struct events *e)
{
    CLEANUP(buf_done) struct buf refused;
    CLEANUP(buf_done) struct buf out;
    uint64_t accepted = 0;
    uint64_t bad = 0;
    bool recorded = true;

    buf_init(&refused, ANSWER_MAX_BYTES);
    buf_init(&out, ANSWER_MAX_BYTES + 128);
    (void)pthread_mutex_lock(&e->mutex);
    for (size_t i = 0; i < e->n; i++) {
        const struct line *l = &e->lines[i];

        if (l->state == LINE_STORED) {
            accepted += l->type != RECORD_NONE;
            continue;
        }
        recorded = recorded && l->state == LINE_REFUSED;
        buf_addf(&refused, "%s{\"line\":%zu,\"reason\":", bad++ > 0 ? "," : "", i + 1);
        buf_add_json_string(&refused, reason_of(l));
        buf_add_char(&refused, '}');
    }
    (void)pthread_mutex_unlock(&e->mutex);
    buf_add(&out, SLICE("{\"accepted\":"));
    buf_add_u64(&out, accepted);
    buf_add(&out, SLICE(",\"refused\":["));
    buf_add(&out, buf_slice(&refused));
    buf_add(&out, SLICE("]}\n"));
    atomic_fetch_add(&e->in->counts.events_accepted, accepted);
    atomic_fetch_add(&e->in->counts.events_refused, bad);
    if (!recorded) {
        web_header(e->web, "Retry-After", "1");
    }
    web_reply(e->web, recorded ? 200 : 503, NULL, buf_slice(&out));
}

static void run(struct pool_job *job, int64_t waited_us)
{
    struct events *e = (struct events *)job;

    (void)waited_us;
    if (read_lines(e)) {
        journal_lines(e);
        answer(e);
    }
    unref(e);
}

void events_handle(void *ctx, struct web_request *r)
{
    struct ingress *in = ctx;
    struct events *e = xcalloc(1, sizeof(*e));

    e->job.run = run;
    e->in = in;
    e->web = r;
    e->refs = 1;
    arena_init(&e->arena, LINES_BYTES + 4 * in->o.max_body_bytes);
    (void)pthread_mutex_init(&e->mutex, NULL);
    (void)pthread_cond_init(&e->settled, NULL);
    if (!pool_submit(in->pool, &e->job)) {
        unref(e);
        web_header(r, "Retry-After", "1");
        web_problem(r, 503, "queue: %zu requests wait already, the limit of collect.queue",
                    in->o.queue);
    }
}
