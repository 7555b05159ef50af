#include "sinks/pump.h"

#include <assert.h>

#include "collector/base/log.h"

void pump_close(struct pump *p)
{
    p->ops->close(p->sink);
    p->sink = NULL;
}

static struct pump_step wait_and_retry(struct pump *p, const char *what)
{
    int64_t pause_ms = backoff_fail(&p->backoff);

    log_warn("sink not available, will retry", log_str("sink", p->ops->name), log_str("step", what),
             log_str("err", p->last.text), log_i64("pause_ms", pause_ms));
    return (struct pump_step){ .pause_ms = pause_ms };
}

/* Trying fast cannot help, but the person who mends it need not tell us. */
static struct pump_step broken(struct pump *p)
{
    log_error("sink refuses us until somebody acts", log_str("sink", p->ops->name),
              log_str("err", p->last.text));
    pump_close(p);
    return (struct pump_step){ .pause_ms = p->backoff.limit_ms };
}

static struct pump_step accepted(struct pump *p, size_t n)
{
    backoff_reset(&p->backoff);
    p->batch_now = p->batch_now > p->batch_max / 2 ? p->batch_max : p->batch_now * 2;
    return (struct pump_step){ .consumed = n };
}

static struct pump_step rejected(struct pump *p, const struct span *span);

/* One call of the driver, and what its answer means. */
static struct pump_step send(struct pump *p, const struct span *span, size_t consumed)
{
    switch (p->ops->write(p->sink, span, &p->last)) {
    case SINK_OK:
        return accepted(p, consumed);
    case SINK_RETRY:
        return wait_and_retry(p, "write");
    case SINK_DOWN:
        pump_close(p);
        return wait_and_retry(p, "write");
    case SINK_REJECT:
        return rejected(p, span);
    case SINK_BROKEN:
        return broken(p);
    }
    assert(false && "driver returned no sink_result");
    return (struct pump_step){ 0 };
}

/* Bisect: a span holds at least one bad record, and the good ones must go. */
static struct pump_step rejected(struct pump *p, const struct span *span)
{
    if (span->n == 0) { /* not even the position: that is no fault of the data */
        return broken(p);
    }
    if (span->n > 1) {
        p->batch_now = span->n / 2;
        return (struct pump_step){ 0 };
    }

    struct span skip = { .journal = span->journal, .from = span->from, .to = span->to };
    struct pump_step step;

    log_error("record rejected for good", log_str("sink", p->ops->name),
              log_i64("seq", (int64_t)span->records[0].seq), log_str("err", p->last.text));
    step = send(p, &skip, 1);
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

struct pump_step pump_step(struct pump *p, const struct span *span)
{
    assert(span->n > 0);

    if (!p->sink && !p->ops->open(p->cfg, &p->sink, &p->last)) {
        return wait_and_retry(p, "open");
    }

    struct span part = head(span, p->batch_now);

    return send(p, &part, part.n);
}
