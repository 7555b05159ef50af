#include "sinks/runner.h"

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "sinks/deadletter.h"

enum {
    FIRST_PAUSE_MS = 100,
    LIMIT_PAUSE_MS = 30 * 1000,
    IDLE_WAIT_MS = 500,
    FLUSH_MS = 1000,
};

struct runner {
    const struct runner_options *o;
    struct pump pump;
    struct positions positions;
    bool reached;        /* the sink was open, ever */
    bool placed;         /* the source knows where the open sink stands */
    struct span begun;   /* what comes next, on its way already; n = 0: nothing */
    bool ending;         /* asked to end when done: a last look at everything was begun */
    int64_t progress_ms; /* monotonic: something was delivered, or nothing was to do */
    struct cutting cutting;
    bool flush_failed; /* told already */
};

static bool bury(void *ctx, const struct span *span, const struct sink_record *r,
                 const struct err *why, struct err *err)
{
    const struct runner *n = ctx;
    const struct deadletter d = {
        .journal = span->journal,
        .seq = r->seq,
        .type = r->type,
        .error = slice_from_cstr(why->text),
        .time_us = clock_now_us(),
        .attempts = 1,
        .record = r->json,
    };

    return deadletter_append(n->o->cfg->state_dir, n->o->cfg->name, &d, err);
}

/* A destination that stands before what it had is an older one: it gets again what it lacks. */
static void tell_restored(const struct runner *n, struct slice journal, uint64_t next)
{
    uint64_t had = positions_get(&n->positions, journal);

    if (next < had) {
        log_warn("the store was restored or is another one: it had more, and is sent that again",
                 log_str("sink", n->o->cfg->name), log_slice("journal", journal),
                 log_i64("stands_at", (int64_t)next), log_i64("stood_at", (int64_t)had));
    }
}

/* Where the sink stands: it knows itself, or our file does. */
static bool position(void *ctx, struct slice journal, struct sink_position *ret, struct err *err)
{
    struct runner *n = ctx;

    if (!n->o->ops->position) {
        *ret = (struct sink_position){ .next = positions_get(&n->positions, journal) };
    } else if (!n->o->ops->position(n->pump.sink, journal, ret, err)) {
        return false;
    }
    tell_restored(n, journal, ret->next);
    return true;
}

/*
 * Only now: of a journal that is an older copy of what the sink knows, the numbers that the
 * sink has past are other records, which nobody may retire.
 */
static void joined(void *ctx, struct slice journal, uint64_t next)
{
    struct runner *n = ctx;

    if (n->o->ops->position && next > positions_get(&n->positions, journal)) {
        positions_set_here(&n->positions, journal, false);
    }
    positions_set(&n->positions, journal, next);
}

/* What the sink does not get, or let go of, is its trouble, too, though all else arrives. */
static void note_state(struct runner *n)
{
    static const enum sink_state states[] = {
        [PUMP_OK] = SINK_STATE_OK,
        [PUMP_RETRYING] = SINK_STATE_RETRYING,
        [PUMP_BROKEN] = SINK_STATE_BROKEN,
    };
    const struct err *unread = &n->o->source->unread;
    const struct err *beside = unread->code != ERR_NONE ? unread : &n->cutting.err;

    if (n->pump.health == PUMP_OK && beside->code != ERR_NONE) {
        positions_set_state(&n->positions, sink_state_of(beside), beside->text);
    } else if (n->pump.health == PUMP_OK && !n->reached) {
        positions_set_state(&n->positions, SINK_STATE_CONNECTING, "");
    } else {
        positions_set_state(&n->positions, states[n->pump.health], n->pump.told);
    }
}

static void flush(struct runner *n, bool now)
{
    struct err err;

    note_state(n);
    if (positions_flush(&n->positions, now, &err)) {
        n->flush_failed = false;
    } else if (!n->flush_failed) {
        log_warn("positions not written, journals are kept longer",
                 log_str("sink", n->o->cfg->name), log_str("err", err.text));
        n->flush_failed = true;
    }
}

static uint64_t told(void *ctx, struct slice journal)
{
    const struct runner *n = ctx;

    return positions_told(&n->positions, journal);
}

/* On disk at once: between this and the next delivery a restart must not tell again. */
static void tell(void *ctx, struct slice journal, uint64_t from, uint64_t to)
{
    struct runner *n = ctx;

    positions_tell(&n->positions, journal, to);
    positions_count_lost(&n->positions, to - from + 1);
    flush(n, true);
}

/* A single run waits a while for a sink that is away, and not for a person. */
static bool gives_up(const struct runner *n)
{
    if (stop_when_done_asked(n->o->stop) && n->pump.health != PUMP_OK) {
        return true;
    }
    return n->o->once &&
           (n->pump.health == PUMP_BROKEN || clock_mono_ms() - n->progress_ms > n->o->patience_ms);
}

/* The file is due every second, also while the sink is away for long. */
static void pause_for(struct runner *n, int64_t pause_ms)
{
    int64_t end_ms = clock_mono_ms() + pause_ms;
    int left_ms = clock_left_ms(end_ms);

    flush(n, false);
    while (left_ms > 0 && !gives_up(n) &&
           !stop_pause(n->o->stop, left_ms < FLUSH_MS ? left_ms : FLUSH_MS)) {
        flush(n, false);
        left_ms = clock_left_ms(end_ms);
    }
}

/* The sink is open, and the source stands where it does. False: paused, try again. */
static bool ready(struct runner *n)
{
    if (!n->pump.sink) {
        struct pump_step step = pump_open(&n->pump);

        n->placed = false;
        if (!n->pump.sink) {
            pause_for(n, step.pause_ms);
            return false;
        }
        n->reached = true;
    }
    if (!n->placed) {
        n->o->source->ops->rewind(n->o->source);
        n->begun.n = 0;
        n->placed = true;
    }
    return true;
}

/* From now on the other of the two knows the position: the sink was configured otherwise. */
static void hand_over(struct runner *n, struct slice journal, bool here)
{
    log_info("delivery was changed, it goes on from where the other one ended",
             log_str("sink", n->o->cfg->name), log_slice("journal", journal),
             log_i64("from", (int64_t)positions_get(&n->positions, journal)),
             log_str("position_kept", here ? "here" : "by the sink"));
}

static void settle(struct runner *n, struct slice journal, uint64_t next)
{
    bool here = !n->o->ops->position;

    if (positions_here(&n->positions, journal) != here) {
        if (positions_get(&n->positions, journal) > 1) {
            hand_over(n, journal, here);
        }
        positions_set_here(&n->positions, journal, here);
    }
    positions_deliver(&n->positions, journal, next);
    n->progress_ms = clock_mono_ms();
}

/* One step with a span. True: it is settled; else *span is what is left of it. */
static bool advance(struct runner *n, struct span *span, struct pump_step *ret)
{
    uint64_t dead = n->pump.dead;

    *ret = pump_step(&n->pump, span);
    positions_count_dead(&n->positions, n->pump.dead - dead);
    if (ret->consumed == span->n) {
        settle(n, span->journal, span->to + 1);
        return true;
    }
    *span = pump_rest(span, ret->consumed);
    if (ret->consumed > 0) {
        settle(n, span->journal, span->from);
    }
    return false;
}

/*
 * Until the span is settled, or the sink closed, or it is time to end; but what was begun gets
 * a step: it would be sent a second time after a restart.
 */
static void deliver(struct runner *n, struct span span, bool begun)
{
    struct pump_step step;

    for (bool owed = begun; owed || (!stop_asked(n->o->stop) && !gives_up(n)); owed = false) {
        if (advance(n, &span, &step)) {
            return;
        }
        if (step.pause_ms > 0) {
            pause_for(n, step.pause_ms);
        }
        if (!n->pump.sink) {
            break;
        }
    }
    n->placed = false; /* what is left of the span is given again */
}

/* The next span: the one that was begun, or a new one. */
static enum source_read next(struct runner *n, struct span *ret)
{
    if (n->begun.n > 0) {
        *ret = n->begun;
        n->begun.n = 0;
        return SOURCE_SPAN;
    }
    return n->o->source->ops->next(n->o->source, ret, &n->pump.last);
}

/*
 * Where more is waiting: begin this span and the one behind it, in this order. In a lull
 * there is nothing to gain, and a sink in trouble gets one span at a time. True: some of
 * this span may be on its way.
 */
static bool begin_ahead(struct runner *n, const struct span *span)
{
    const struct sink_ops *ops = n->o->ops;
    struct source *source = n->o->source;
    struct err err; /* what cannot be read now is met again when its turn comes */

    if (!ops->begin || source->lull || n->pump.health != PUMP_OK) {
        return false;
    }
    if (!ops->begin(n->pump.sink, span) || stop_asked(n->o->stop)) {
        return true;
    }
    if (source->ops->next(source, &n->begun, &err) == SOURCE_SPAN) {
        (void)ops->begin(n->pump.sink, &n->begun);
    } else {
        n->begun.n = 0;
    }
    return true;
}

/* On the way out. */
static void end_begun(struct runner *n)
{
    struct pump_step step = { .consumed = 1 };

    while (n->begun.n > 0 && n->placed && n->pump.sink && step.consumed > 0) {
        if (advance(n, &n->begun, &step)) {
            return;
        }
    }
}

/* Between deliveries: now and then a look at what is due, and one step of the cut. */
static void retain(struct runner *n)
{
    if (!n->o->ops->cut_due || !cutting_is_due(&n->cutting)) {
        return;
    }
    if (cutting_step(&n->cutting, n->pump.sink) == SINK_DOWN) {
        pump_close(&n->pump);
    }
    if (cutting_goes_on(&n->cutting)) {
        pause_for(n, CUTTING_PAUSE_MS);
    }
}

/* A moment in which more may come, to make one batch of it. */
static void linger(struct runner *n)
{
    if (!n->ending) {
        (void)stop_pause(n->o->stop, n->o->linger_ms);
    }
}

/* Nothing to deliver: wait for more. */
static void idle(struct runner *n)
{
    n->progress_ms = clock_mono_ms();
    flush(n, false);
    n->o->source->ops->wait(n->o->source, IDLE_WAIT_MS);
    linger(n);
}

/* One round. True: a single run is done. */
static bool turn(struct runner *n)
{
    struct span span;
    struct pump_step step;
    bool begun;

    if (stop_when_done_asked(n->o->stop) && !n->ending) {
        n->ending = true;
        n->placed = false;
    }
    if (!ready(n)) {
        return false;
    }
    retain(n);
    if (!n->pump.sink) {
        return false;
    }
    begun = n->begun.n > 0;
    switch (next(n, &span)) {
    case SOURCE_SPAN:
        begun = begin_ahead(n, &span) || begun;
        deliver(n, span, begun);
        flush(n, false);
        if (n->o->source->lull && n->begun.n == 0) {
            linger(n);
        }
        return false;
    case SOURCE_WAIT:
        pump_well(&n->pump);
        if ((n->o->once && !cutting_goes_on(&n->cutting)) || n->ending) {
            return true;
        }
        if (!cutting_goes_on(&n->cutting)) {
            idle(n);
        }
        return false;
    case SOURCE_ERROR:
        step = pump_answer(&n->pump, n->pump.last.code == ERR_INVALID ? SINK_BROKEN : SINK_DOWN,
                           "position");
        pause_for(n, step.pause_ms);
        return false;
    }
    return false;
}

/* All that could be read is delivered; a single run has to say when that is not all there is. */
static enum runner_end delivered(struct runner *n)
{
    if (!n->o->once || n->o->source->unread.code == ERR_NONE) {
        return RUNNER_DELIVERED;
    }
    (void)err_set(&n->pump.last, ERR_IO, "a journal cannot be read: see above");
    return RUNNER_GAVE_UP;
}

static enum runner_end run_rounds(struct runner *n)
{
    while (!stop_asked(n->o->stop)) {
        if (turn(n)) {
            return delivered(n);
        }
        if (gives_up(n)) {
            return n->o->once ? RUNNER_GAVE_UP : RUNNER_STOPPED;
        }
    }
    return RUNNER_STOPPED;
}

enum runner_end runner_run(const struct runner_options *o, struct err *ret_err)
{
    struct runner n = {
        .o = o,
        .pump = {
            .cfg = o->cfg,
            .ops = o->ops,
            .bury = bury,
            .bury_ctx = &n,
            .backoff = { .first_ms = FIRST_PAUSE_MS, .limit_ms = LIMIT_PAUSE_MS },
            .batch_max = o->batch_records,
            .batch_now = o->batch_records,
        },
        .progress_ms = clock_mono_ms(),
        .cutting = { .sink = o->cfg->name, .on_cut = o->on_cut, .ctx = o->ctx },
    };

    if (!positions_load(o->cfg->state_dir, o->cfg->name, &n.positions, ret_err)) {
        log_error("sink not started", log_str("sink", o->cfg->name), log_str("err", ret_err->text));
        return RUNNER_GAVE_UP;
    }
    o->source->position = position;
    o->source->joined = joined;
    o->source->told = told;
    o->source->tell = tell;
    o->source->position_ctx = &n;
    flush(&n, true);

    enum runner_end end = run_rounds(&n);

    end_begun(&n);
    pump_close(&n.pump);
    flush(&n, true);
    positions_done(&n.positions);
    *ret_err = n.pump.last;
    return end;
}
