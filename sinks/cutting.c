#include "sinks/cutting.h"

#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"

enum {
    LOOK_MS = 3600 * 1000, /* cuts are by whole days */
    RETRY_MS = 60 * 1000,
};

bool cutting_is_due(const struct cutting *c)
{
    return clock_mono_ms() >= c->next_ms;
}

bool cutting_goes_on(const struct cutting *c)
{
    return (c->told || c->behind_us > 0) && c->err.code == ERR_NONE;
}

void cutting_fail(struct cutting *c, const struct err *err)
{
    struct err why = *err;

    (void)err_wrap(&why, "retention");
    if (strcmp(c->err.text, why.text) != 0) {
        log_warn("what is due stays, will try again", log_str("sink", c->sink),
                 log_str("err", why.text));
    }
    c->err = why;
    c->next_ms = clock_mono_ms() + RETRY_MS;
}

void cutting_leave(struct cutting *c)
{
    c->err = (struct err){ 0 };
    c->told = false;
    c->behind_us = 0;
    c->next_ms = clock_mono_ms() + LOOK_MS;
}

/* A cut is told before its first row goes. */
static bool tell(struct cutting *c, struct err *err)
{
    c->told = c->cut.rows == 0 || !c->on_cut || c->on_cut(c->ctx, c->sink, &c->cut, err);
    return c->told;
}

/* Is something due, behind what has just been cut? */
static enum sink_result look(struct cutting *c, struct sink *s, struct err *err)
{
    enum sink_result result = s->ops->cut_due(s, clock_now_us(), &c->cut, err);

    if (result != SINK_OK) {
        return result;
    }
    if (c->cut.before_us <= c->behind_us) {
        cutting_leave(c);
        return SINK_OK;
    }
    return tell(c, err) ? SINK_OK : SINK_RETRY;
}

enum sink_result cutting_step(struct cutting *c, struct sink *s)
{
    bool done = false;
    struct err err;
    enum sink_result result = c->told ? SINK_OK : look(c, s, &err);

    if (result == SINK_OK && c->told) {
        result = s->ops->cut_step(s, &c->cut, &done, &err);
    }
    if (result != SINK_OK) {
        cutting_fail(c, &err);
        return result;
    }
    c->err = (struct err){ 0 };
    if (done) {
        c->told = false;
        c->behind_us = c->cut.before_us;
    }
    return SINK_OK;
}
