#include "sinks/pump.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"

static const char *name_of(const struct pump *p)
{
    return p->cfg->name ? p->cfg->name : p->ops->name;
}

void pump_close(struct pump *p)
{
    p->ops->close(p->sink);
    p->sink = NULL;
}

/* Note that the sink fails; true when that is news for the log. */
static bool is_news(struct pump *p, enum pump_health health)
{
    bool news = p->health != health || strcmp(p->told, p->last.text) != 0;

    if (p->health == PUMP_OK) {
        p->failing_since_ms = clock_mono_ms();
    }
    p->health = health;
    (void)snprintf(p->told, sizeof(p->told), "%s", p->last.text);
    return news;
}

void pump_well(struct pump *p)
{
    if (p->health != PUMP_OK) {
        log_info("sink available again", log_str("sink", name_of(p)),
                 log_i64("after_ms", clock_mono_ms() - p->failing_since_ms));
    }
    p->health = PUMP_OK;
    p->told[0] = '\0';
    backoff_reset(&p->backoff);
}

static struct pump_step wait_and_retry(struct pump *p, const char *what)
{
    int64_t pause_ms = backoff_fail(&p->backoff);

    if (is_news(p, PUMP_RETRYING)) {
        log_warn("sink not available, will retry", log_str("sink", name_of(p)),
                 log_str("step", what), log_str("err", p->last.text),
                 log_i64("pause_ms", pause_ms));
    }
    return (struct pump_step){ .pause_ms = pause_ms };
}

/* Trying fast cannot help, but the person who mends it need not tell us. */
static struct pump_step broken(struct pump *p)
{
    if (is_news(p, PUMP_BROKEN)) {
        log_error("sink refuses us until somebody acts, nothing is lost meanwhile",
                  log_str("sink", name_of(p)), log_str("err", p->last.text));
    }
    pump_close(p);
    return (struct pump_step){ .pause_ms = p->backoff.limit_ms };
}

struct pump_step pump_answer(struct pump *p, enum sink_result result, const char *what)
{
    switch (result) {
    case SINK_OK:
        return (struct pump_step){ 0 };
    case SINK_RETRY:
        return wait_and_retry(p, what);
    case SINK_DOWN:
        pump_close(p);
        return wait_and_retry(p, what);
    case SINK_REJECT:
    case SINK_BROKEN:
        return broken(p);
    }
    assert(false && "driver returned no sink_result");
    return (struct pump_step){ 0 };
}

static struct pump_step accepted(struct pump *p, const struct span *span, size_t consumed)
{
    pump_well(p);
    p->sent += span->n;
    p->batch_now = p->batch_now > p->batch_max / 2 ? p->batch_max : p->batch_now * 2;
    return (struct pump_step){ .consumed = consumed };
}

static struct pump_step rejected(struct pump *p, const struct span *span);

/* One call of the driver, and what its answer means. */
static struct pump_step send(struct pump *p, const struct span *span, size_t consumed)
{
    enum sink_result result = p->ops->write(p->sink, span, &p->last);

    if (result == SINK_OK) {
        return accepted(p, span, consumed);
    }
    if (result == SINK_REJECT && span->n > 0) {
        return rejected(p, span);
    }
    return pump_answer(p, result, "write"); /* a position is no data: its REJECT is BROKEN */
}

static bool bury(struct pump *p, const struct span *span)
{
    const struct sink_record *r = &span->records[0];
    struct err why = p->last;

    log_error("record rejected for good, it goes to the dead letters", log_str("sink", name_of(p)),
              log_slice("journal", span->journal), log_i64("seq", (int64_t)r->seq),
              log_str("err", why.text));
    return !p->bury || p->bury(p->bury_ctx, span, r, &why, &p->last);
}

/* Bisect: a span holds at least one bad record, and the good ones must go. */
static struct pump_step rejected(struct pump *p, const struct span *span)
{
    if (span->n > 1) {
        p->batch_now = span->n / 2;
        return (struct pump_step){ 0 };
    }
    /* On disk there before the position is past it here: a crash loses no letter. */
    if (!bury(p, span)) {
        return wait_and_retry(p, "dead letters");
    }

    struct span skip = { .journal = span->journal, .from = span->from, .to = span->to };
    struct pump_step step = send(p, &skip, 1);

    p->dead += step.consumed;
    return step;
}

/* The first n records of a span; it ends where the next record begins. */
static struct span head(const struct span *span, size_t n)
{
    struct span part = *span;

    if (n < span->n) {
        part.n = n;
        part.to = span->records[n].seq - 1;
    }
    return part;
}

struct span pump_rest(const struct span *span, size_t consumed)
{
    struct span rest = *span;

    assert(consumed < span->n);
    rest.records += consumed;
    rest.n -= consumed;
    if (consumed > 0) {
        rest.from = rest.records[0].seq;
    }
    return rest;
}

struct pump_step pump_open(struct pump *p)
{
    if (!p->sink && !p->ops->open(p->cfg, &p->sink, &p->last)) {
        p->sink = NULL;
        /* What is wrong with the data or the schema there will not mend itself soon. */
        bool lasting = p->last.code == ERR_INVALID || p->last.code == ERR_CORRUPT;

        return lasting ? broken(p) : wait_and_retry(p, "open");
    }
    return (struct pump_step){ 0 };
}

struct pump_step pump_step(struct pump *p, const struct span *span)
{
    assert(span->n > 0);

    struct pump_step opened = pump_open(p);

    if (!p->sink) {
        return opened;
    }

    struct span part = head(span, p->batch_now);

    return send(p, &part, part.n);
}
