/* Step 1 of why: did the event occur? If it did not, what is known of its surroundings. */
#include "queries/why_step.h"

#include <inttypes.h>

#include "collector/record/decode.h"
#include "queries/say.h"

/* "RunInTerminal (call-7), ReadFile (call-6)": what the thread did do, at most five. */
static struct slice near_calls(const struct why_case *c)
{
    enum { NEAR_CALLS = 5 };
    struct slice text = { 0 };
    struct slice last = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < c->near.n && n < NEAR_CALLS; i++) {
        struct evaluation e = { 0 };
        struct err err;

        if (c->near.items[i].type != RECORD_HOOK_EVALUATION ||
            !decode_evaluation(c->near.items[i].body, c->arena, &e, &err) || e.tool_name.len == 0 ||
            slice_equal(e.call_id, last)) {
            continue;
        }
        last = e.call_id;
        text = say(c->arena, "%" SLICE_FMT "%s%" SLICE_FMT " (%" SLICE_FMT ")", SLICE_ARG(text),
                   n++ > 0 ? ", " : "", SLICE_ARG(e.tool_name), SLICE_ARG(e.call_id));
    }
    return text;
}

/* Losses in the time that matters: then a missing record proves nothing. */
static bool gap_explains(const struct why_case *c, struct why_step *ret)
{
    int64_t end_us = c->near.n > 0 ? c->near.items[0].time_us : 0;

    for (size_t i = 0; i < c->gaps.n; i++) {
        struct gap g = { 0 };
        struct err err;

        if (!decode_gap(c->gaps.items[i].body, c->arena, &g, &err) ||
            (end_us > 0 && g.first_us > end_us)) {
            continue;
        }
        *ret = why_step(WHY_UNKNOWN,
                        g.known ? say(c->arena,
                                      "no record of it, but %" PRIu64
                                      " record%s lost in that time (%" SLICE_FMT ")",
                                      g.lost, g.lost == 1 ? " was" : "s were", SLICE_ARG(g.cause))
                                : say(c->arena,
                                      "no record of it, but records of that time may be missing "
                                      "(%" SLICE_FMT ")",
                                      SLICE_ARG(g.cause)),
                        c->gaps.items[i].id);
        return true;
    }
    return false;
}

static struct why_step event_never_seen(const struct why_case *c)
{
    struct why_step lost;
    struct slice calls = near_calls(c);

    if (c->tools.n > 0) {
        return why_step(WHY_FAILS,
                        say(c->arena,
                            "a host reported that the tool ran, but no event of this call "
                            "reached the hooks"),
                        c->tools.items[0].id);
    }
    if (gap_explains(c, &lost)) {
        return lost;
    }
    if (c->options->unshipped > 0) {
        return why_step(WHY_UNKNOWN,
                        say(c->arena, "no record of it, but %" PRIu64 " record%s not shipped yet",
                            c->options->unshipped, c->options->unshipped == 1 ? " is" : "s are"),
                        (struct slice){ 0 });
    }
    if (c->near.n == 0) {
        return why_step(WHY_FAILS,
                        say(c->arena, "nothing is recorded of this %s",
                            c->options->call.len > 0 ? "call" : "thread"),
                        (struct slice){ 0 });
    }
    return why_step(WHY_FAILS,
                    say(c->arena, "the thread has no such event%s%" SLICE_FMT,
                        calls.len > 0 ? "; its latest calls: " : "", SLICE_ARG(calls)),
                    c->near.items[0].id);
}

struct why_step why_event_step(const struct why_case *c)
{
    const struct evaluation *e = c->evaluation;

    if (!e) {
        return event_never_seen(c);
    }
    if (c->event_missing && c->options->event.len == 0) {
        return why_step(
            WHY_FAILS,
            say(c->arena,
                "the hook listens to %" SLICE_FMT "; of this %s there is only %" SLICE_FMT,
                SLICE_ARG(c->definition->events), c->options->call.len > 0 ? "call" : "thread",
                SLICE_ARG(e->hook_event_type)),
            e->head.id);
    }
    if (why_skipped_for(c->execution, SKIP_SOURCE)) {
        return why_step(
            WHY_FAILS,
            say(c->arena, "the thread was started by another source than the hook's%s%" SLICE_FMT,
                c->definition ? ": " : "",
                SLICE_ARG(c->definition ? c->definition->sources : (struct slice){ 0 })),
            e->head.id);
    }
    return why_step(WHY_HOLDS,
                    say(c->arena, "%" SLICE_FMT "%s%" SLICE_FMT " at %" SLICE_FMT "%s",
                        SLICE_ARG(e->hook_event_type), e->tool_name.len > 0 ? " of " : "",
                        SLICE_ARG(e->tool_name),
                        SLICE_ARG(why_time_text(c->arena, e->head.time_us)),
                        e->source == SOURCE_HOST ? ", as the host reported it" : ""),
                    e->head.id);
}
