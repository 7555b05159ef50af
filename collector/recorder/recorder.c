#include "collector/recorder/recorder_part.h"

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"

struct recorder *recorder_new(const struct recorder_options *o)
{
    struct recorder *r = xcalloc(1, sizeof(*r));

    r->options = *o;
    r->record_wait_ms = o->record_wait_ms;
    r->capture = o->capture;
    r->collector = slice_from_cstr(o->collector);
    atomic_init(&r->refs, 1);
    if (o->process) {
        r->process = *o->process;
    }
    if (!waiting_start(r)) {
        log_error("no thread for the recorder, aborting");
        abort();
    }
    return r;
}

void recorder_set(struct recorder *r, const struct recorder_settings *s)
{
    r->record_wait_ms = s->record_wait_ms;
    r->capture = s->capture;
    r->process.end_left_behind = s->end_left_behind;
}

/* The last one frees. */
static void unref(struct recorder *r)
{
    if (atomic_fetch_sub(&r->refs, 1) == 1) {
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
}

/* What the journal has not settled yet keeps the struct alive. */
void recorder_free(struct recorder *r)
{
    if (r) {
        waiting_stop(r);
        unref(r);
    }
}

/* ---- In-flight slots --------------------------------------------------------- */

/* The slots of one dispatch while its hooks run: one for each that runs side by side. */
struct watch {
    struct recorder *recorder;
    struct {
        int slot;
        const struct chain *chain;
        const struct step *step; /* NULL: its hook has ended */
    } slots[SLOTS_MAX];
    size_t n;
    uint64_t journal_seq;
};

static void put_text(char *to, size_t size, struct slice text)
{
    (void)snprintf(to, size, "%.*s", (int)(text.len < size ? text.len : size - 1),
                   text.ptr ? text.ptr : "");
}

static void fill_entry(const struct watch *w, const struct dispatch *d, const struct chain *c,
                       const struct step *s, struct inflight_entry *ret)
{
    const struct evaluation *f = &d->facts;

    *ret = (struct inflight_entry){ .dispatch_id = d->id,
                                    .evaluation_id = c->id,
                                    .journal_seq = w->journal_seq,
                                    .started_us = clock_now_us(),
                                    .ordinal = s->execution->ordinal };
    put_text(ret->contract, sizeof(ret->contract), slice_from_cstr(d->set->ops->name));
    put_text(ret->chain, sizeof(ret->chain), slice_from_cstr(chain_kind_name(c->kind)));
    put_text(ret->thread_id, sizeof(ret->thread_id), f->thread_id);
    put_text(ret->call_id, sizeof(ret->call_id), f->call_id);
    put_text(ret->agent_name, sizeof(ret->agent_name), f->agent_name);
    put_text(ret->event, sizeof(ret->event), f->hook_event_type);
    put_text(ret->tool_name, sizeof(ret->tool_name), f->tool_name);
    put_text(ret->hook_name, sizeof(ret->hook_name), s->hook->name);
}

static void on_start(void *ctx, struct dispatch *d, const struct chain *c, const struct step *s,
                     const char *tag)
{
    struct watch *w = ctx;
    struct inflight *f = w->recorder->options.inflight;
    char name[INFLIGHT_TEXT];
    size_t i = 0;

    while (i < w->n && (w->slots[i].step || w->slots[i].chain != c)) {
        i++;
    }
    if (i == SLOTS_MAX) {
        return;
    }
    w->slots[i].step = s;
    if (i == w->n) { /* whole at once: who finds it knows of the hook, too */
        struct inflight_entry entry;

        fill_entry(w, d, c, s, &entry);
        put_text(entry.tag, sizeof(entry.tag), slice_from_cstr(tag));
        w->slots[i].slot = inflight_take(f, &entry);
        w->slots[i].chain = c;
        w->n++;
        return;
    }
    put_text(name, sizeof(name), s->hook->name);
    inflight_set_hook(f, w->slots[i].slot, name, s->execution->ordinal, tag);
}

static void on_pid(void *ctx, const struct step *s, pid_t pid, uint64_t start_ticks)
{
    struct watch *w = ctx;

    for (size_t i = 0; i < w->n; i++) {
        if (w->slots[i].step == s) {
            inflight_set_pid(w->recorder->options.inflight, w->slots[i].slot, pid, start_ticks);
        }
    }
}

static void on_end(void *ctx, struct dispatch *d, const struct step *s)
{
    struct watch *w = ctx;

    (void)d;
    for (size_t i = 0; i < w->n; i++) {
        if (w->slots[i].step == s) {
            w->slots[i].step = NULL;
        }
    }
}

static void run_watched(struct recorder *r, struct dispatch *d, struct watch *w)
{
    struct chain_observer observer = {
        .on_start = on_start, .on_pid = on_pid, .on_end = on_end, .ctx = w
    };
    struct chain_options options = { .process = &r->process };

    if (r->options.inflight && r->options.journal && chain_runs_something(d)) {
        struct journal_stats stats;

        journal_stats(r->options.journal, &stats);
        w->journal_seq = stats.durable_seq;
        options.observer = &observer;
    }
    chain_run(d, &options);
}

/* ---- Into the journal -------------------------------------------------------- */

static void take_record(void *ctx, enum record_type type, struct slice json,
                        const struct evaluation *e)
{
    struct pending *p = ctx;
    struct buf *b = &p->bytes[p->batch.n];

    (void)e;
    if (p->batch.n == JOURNAL_BATCH_MAX) {
        journal_count_lost(p->recorder->options.journal, 1, "too_many_chains");
        return;
    }
    buf_init(b, RECORD_MAX_BYTES);
    buf_add(b, json);
    p->batch.records[p->batch.n].type = type;
    p->batch.records[p->batch.n].bytes = buf_slice(b);
    p->batch.n++;
}

void recorder_release_slots(struct recorder *r, struct pending *p)
{
    for (size_t i = 0; i < p->n_slots && r->options.inflight; i++) {
        inflight_release(r->options.inflight, p->slots[i]);
    }
    p->n_slots = 0;
}

/* The last thing that happens to p. */
static void settle(struct pending *p, enum recorded outcome)
{
    struct recorder *r = p->recorder;

    if (outcome == RECORDED_LOST) {
        atomic_fetch_add(&r->lost, 1);
    }
    /* Before the answer: a successor must not record as interrupted what was told to be lost. */
    pthread_mutex_lock(&r->lock);
    recorder_release_slots(r, p);
    pthread_mutex_unlock(&r->lock);
    waiting_answer(r, p, outcome);
    for (size_t i = 0; i < p->batch.n; i++) {
        buf_done(&p->bytes[i]);
    }
    free(p);
    unref(r);
}

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    (void)first_seq;
    settle(CONTAINER_OF(b, struct pending, batch),
           outcome == JOURNAL_STORED ? RECORDED_STORED : RECORDED_LOST);
}

static struct pending *pending_new(struct recorder *r, const struct watch *w)
{
    struct pending *p = xcalloc(1, sizeof(*p));

    p->recorder = r;
    p->batch.on_settled = on_settled;
    for (size_t i = 0; i < w->n; i++) {
        p->slots[p->n_slots++] = w->slots[i].slot;
    }
    atomic_fetch_add(&r->refs, 1);
    return p;
}

void recorder_run(struct recorder *r, struct dispatch *d,
                  void (*on_recorded)(void *ctx, struct dispatch *d, enum recorded outcome),
                  void *ctx)
{
    struct watch w = { .recorder = r };
    struct err err;

    run_watched(r, d, &w);
    atomic_fetch_add(&r->dispatches, 1);
    if (!r->options.journal) {
        on_recorded(ctx, d, RECORDED_STORED);
        return;
    }

    struct pending *p = pending_new(r, &w);

    p->dispatch = d;
    p->on_recorded = on_recorded;
    p->ctx = ctx;
    recorder_encode(r, d, take_record, p);
    waiting_add(r, p);
    if (!journal_submit(r->options.journal, &p->batch, &err)) {
        journal_count_lost(r->options.journal, p->batch.n, "queue_full");
        settle(p, RECORDED_LOST);
    }
}

void recorder_stats(struct recorder *r, struct recorder_stats *ret)
{
    ret->dispatches = atomic_load(&r->dispatches);
    ret->late = atomic_load(&r->late);
    ret->lost = atomic_load(&r->lost);
    ret->redaction_failures = atomic_load(&r->redaction_failures);
}
