#include "queries/why.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "queries/say.h"
#include "queries/why_steps.h"

static const struct {
    const char *name;
    const char *statement;
} steps[WHY_STEPS] = {
    [WHY_EVENT] = { "event", "The event occurred for this call" },
    [WHY_EVENT_TYPE] = { "event_type", "The hook listens to that event" },
    [WHY_ACTIVATION] = { "activation", "The hook was active on the thread" },
    [WHY_REGISTRATION] = { "registration", "It was registered and enabled for this agent" },
    [WHY_MATCHER] = { "matcher", "Its matcher matches the tool's name" },
    [WHY_REACHED] = { "reached", "No earlier hook ended the chain" },
    [WHY_DECIDED] = { "decided", "It ran, and did more than pass" },
    [WHY_WORKED] = { "worked", "It ran, and did not fail" },
};

static const char *const states[] = {
    [WHY_UNKNOWN] = "unknown", [WHY_HOLDS] = "holds", [WHY_FAILS] = "fails"
};

const char *why_step_statement(enum why_step_kind step)
{
    return steps[step].statement;
}

const char *why_state_name(enum why_state state)
{
    return states[state];
}

static void set_identity(struct why *w, const struct why_case *c)
{
    const struct why_options *o = c->options;

    w->hook = o->hook;
    w->thread_id = o->thread;
    w->call_id = o->call;
    w->event = o->event;
    w->tool_name = o->tool;
    w->unshipped = o->unshipped;
    w->found = (c->evaluation || c->tools.n > 0) && !why_case_unknown_hook(c);
    if (c->evaluation) {
        w->evaluation_id = c->evaluation->head.id;
        w->thread_id = c->evaluation->thread_id;
        w->call_id = c->evaluation->call_id;
        w->event = c->evaluation->hook_event_type;
        w->tool_name = c->evaluation->tool_name;
        w->time_us = c->evaluation->head.time_us;
    }
}

bool why_query(struct store *s, const struct why_options *o, struct arena *a, struct why *ret,
               struct err *err)
{
    struct why w = { 0 };
    struct why_case c;

    if (o->hook.len == 0) {
        return err_set(err, ERR_INVALID, "no hook is named");
    }
    if (o->call.len == 0 && o->thread.len == 0) {
        return err_set(err, ERR_INVALID, "name a call or a thread");
    }
    if (!why_case_find(s, o, a, &c, err)) {
        return false;
    }
    set_identity(&w, &c);
    why_steps(&c, &w);
    why_verdict(&c, &w);
    if (w.verdict.len == 0 || w.advice.len == 0) {
        return err_set(err, ERR_TOO_BIG, "the answer takes over %zu MiB", a->limit_bytes >> 20);
    }
    *ret = w;
    return true;
}

static void add_text(struct buf *out, const char *key, struct slice text)
{
    if (text.len > 0) {
        buf_addf(out, ",\"%s\":", key);
        buf_add_json_string(out, text);
    }
}

static void add_step(struct buf *out, const struct why *w, enum why_step_kind k)
{
    const struct why_step *step = &w->steps[k];

    buf_addf(out, "%s{\"number\":%d,\"step\":\"%s\",\"statement\":\"%s\",\"state\":\"%s\"",
             k > 0 ? "," : "", (int)k + 1, steps[k].name, steps[k].statement, states[step->state]);
    add_text(out, "evidence", step->evidence);
    add_text(out, "record_id", step->record_id);
    buf_add_char(out, '}');
}

void why_json(const struct why *w, struct buf *out)
{
    char time[CLOCK_TEXT_SIZE];

    buf_add(out, SLICE("{\"hook\":"));
    buf_add_json_string(out, w->hook);
    buf_addf(out, ",\"found\":%s", w->found ? "true" : "false");
    add_text(out, "evaluation_id", w->evaluation_id);
    add_text(out, "thread_id", w->thread_id);
    add_text(out, "call_id", w->call_id);
    add_text(out, "event", w->event);
    add_text(out, "tool_name", w->tool_name);
    if (w->time_us > 0) {
        clock_format(w->time_us, time);
        add_text(out, "time", slice_from_cstr(time));
    }
    buf_add(out, SLICE(",\"steps\":["));
    for (int k = 0; k < WHY_STEPS; k++) {
        add_step(out, w, (enum why_step_kind)k);
    }
    buf_add_char(out, ']');
    add_text(out, "verdict", w->verdict);
    add_text(out, "advice", w->advice);
    buf_addf(out, ",\"unshipped\":%" PRIu64 "}\n", w->unshipped);
}
