#include "queries/why_steps.h"

#include <assert.h>
#include <inttypes.h>

#include "collector/base/clock.h"
#include "collector/base/utf8.h"
#include "collector/match/matcher.h"
#include "collector/record/decode.h"
#include "queries/say.h"

enum { DIGEST_SHOWN = 12 }; /* digits that tell one set from another, for people */

/* Skip reasons are tried in order: what comes before the one that is told was passed. */
static bool passed_over(const struct execution *x, enum skip_reason reason)
{
    return x && (x->decision != DECISION_SKIPPED || x->skip_reason > reason);
}

static bool skipped_for(const struct execution *x, enum skip_reason reason)
{
    return x && x->decision == DECISION_SKIPPED && x->skip_reason == reason;
}

static bool ran(const struct execution *x)
{
    return x && x->decision != DECISION_SKIPPED;
}

static struct why_step step(enum why_state state, struct slice evidence, struct slice record_id)
{
    return (struct why_step){ .state = state, .evidence = evidence, .record_id = record_id };
}

static struct slice time_text(struct arena *a, int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    return say(a, "%s", text);
}

static struct slice evaluation_id(const struct why_case *c)
{
    return c->evaluation ? c->evaluation->head.id : (struct slice){ 0 };
}

/* ---- 1: the event ----------------------------------------------------------- */

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
        *ret = step(WHY_UNKNOWN,
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
        return step(WHY_FAILS,
                    say(c->arena, "a host reported that the tool ran, but no event of this call "
                                  "reached the hooks"),
                    c->tools.items[0].id);
    }
    if (gap_explains(c, &lost)) {
        return lost;
    }
    if (c->options->unshipped > 0) {
        return step(WHY_UNKNOWN,
                    say(c->arena, "no record of it, but %" PRIu64 " record%s not shipped yet",
                        c->options->unshipped, c->options->unshipped == 1 ? " is" : "s are"),
                    (struct slice){ 0 });
    }
    if (c->near.n == 0) {
        return step(WHY_FAILS,
                    say(c->arena, "nothing is recorded of this %s",
                        c->options->call.len > 0 ? "call" : "thread"),
                    (struct slice){ 0 });
    }
    return step(WHY_FAILS,
                say(c->arena, "the thread has no such event%s%" SLICE_FMT,
                    calls.len > 0 ? "; its latest calls: " : "", SLICE_ARG(calls)),
                c->near.items[0].id);
}

static struct why_step event_step(const struct why_case *c)
{
    const struct evaluation *e = c->evaluation;

    if (!e) {
        return event_never_seen(c);
    }
    if (c->event_missing && c->options->event.len == 0) {
        return step(WHY_FAILS,
                    say(c->arena,
                        "the hook listens to %" SLICE_FMT "; of this %s there is only %" SLICE_FMT,
                        SLICE_ARG(c->definition->events),
                        c->options->call.len > 0 ? "call" : "thread",
                        SLICE_ARG(e->hook_event_type)),
                    e->head.id);
    }
    if (skipped_for(c->execution, SKIP_SOURCE)) {
        return step(WHY_FAILS,
                    say(c->arena,
                        "the thread was started by another source than the hook's%s%" SLICE_FMT,
                        c->definition ? ": " : "",
                        SLICE_ARG(c->definition ? c->definition->sources : (struct slice){ 0 })),
                    e->head.id);
    }
    return step(WHY_HOLDS,
                say(c->arena, "%" SLICE_FMT "%s%" SLICE_FMT " at %" SLICE_FMT "%s",
                    SLICE_ARG(e->hook_event_type), e->tool_name.len > 0 ? " of " : "",
                    SLICE_ARG(e->tool_name), SLICE_ARG(time_text(c->arena, e->head.time_us)),
                    e->source == SOURCE_HOST ? ", as the host reported it" : ""),
                e->head.id);
}

/* ---- 2 to 5: what was configured ---------------------------------------------- */

static struct why_step event_type_step(const struct why_case *c)
{
    const struct evaluation *e = c->evaluation;

    if (c->execution) {
        return step(WHY_HOLDS, say(c->arena, "the chain considered the hook"), e->head.id);
    }
    if (!c->definition) {
        return step(WHY_UNKNOWN, say(c->arena, "no registry tells of the hook"), evaluation_id(c));
    }
    if (e && !definition_hears(c->definition, e->hook_event_type)) {
        return step(WHY_FAILS,
                    say(c->arena, "the hook listens to %" SLICE_FMT ", the event was %" SLICE_FMT,
                        SLICE_ARG(c->definition->events), SLICE_ARG(e->hook_event_type)),
                    c->registry->record_id);
    }
    return step(WHY_HOLDS,
                say(c->arena, "it listens to %" SLICE_FMT, SLICE_ARG(c->definition->events)),
                c->registry->record_id);
}

static struct why_step activation_step(const struct why_case *c)
{
    const struct definition *d = c->definition;

    if (skipped_for(c->execution, SKIP_INACTIVE)) {
        return step(WHY_FAILS,
                    say(c->arena, "it is onDemand, and was not activated for the thread"),
                    evaluation_id(c));
    }
    if (passed_over(c->execution, SKIP_INACTIVE)) {
        return step(WHY_HOLDS, say(c->arena, "it was not skipped as inactive"), evaluation_id(c));
    }
    if (d && !slice_equal(d->activation, SLICE("onDemand"))) {
        return step(WHY_HOLDS, say(c->arena, "it is always active"), c->registry->record_id);
    }
    return step(WHY_UNKNOWN,
                d ? say(c->arena, "it is onDemand; nothing tells whether it was activated")
                  : say(c->arena, "nothing is recorded of its activation"),
                (struct slice){ 0 });
}

/* Not in the set in force: in another one, or in none. */
static struct why_step elsewhere(const struct why_case *c)
{
    if (!c->registry) {
        return step(WHY_FAILS, say(c->arena, "no recorded hook set has a hook of this name"),
                    c->in_force.n > 0 ? c->in_force.items[0].record_id : (struct slice){ 0 });
    }
    if (!c->evaluation || c->in_force.n == 0) {
        return step(WHY_UNKNOWN,
                    say(c->arena,
                        "it is in the set loaded at %" SLICE_FMT
                        "; which set was in force is not recorded",
                        SLICE_ARG(time_text(c->arena, c->registry->time_us))),
                    c->registry->record_id);
    }

    bool later = c->registry->time_us > c->evaluation->head.time_us;

    return step(WHY_FAILS,
                say(c->arena,
                    "the set in force (%" SLICE_FMT "…) does not have it; %s it was in the set "
                    "loaded at %" SLICE_FMT,
                    SLICE_ARG(utf8_prefix(c->evaluation->config_digest, DIGEST_SHOWN)),
                    later ? "only later" : "before,",
                    SLICE_ARG(time_text(c->arena, c->registry->time_us))),
                c->registry->record_id);
}

static struct slice out_of_scope(const struct why_case *c)
{
    const struct evaluation *e = c->evaluation;
    struct slice owner = c->definition ? c->definition->agent : (struct slice){ 0 };

    assert(e);
    return say(c->arena, "it does not belong to the %s '%" SLICE_FMT "'%s%" SLICE_FMT,
               e->child ? "child agent" : "agent", SLICE_ARG(e->agent_name),
               owner.len > 0 ? ", but to " : "", SLICE_ARG(owner));
}

/* "it is in the set that was in force (5ad74c0f12ab…)". */
static struct slice in_force(const struct why_case *c)
{
    assert(c->evaluation);

    struct slice digest = utf8_prefix(c->evaluation->config_digest, DIGEST_SHOWN);

    if (digest.len == 0) {
        return say(c->arena, "it is in the set that was in force");
    }
    return say(c->arena, "it is in the set that was in force (%" SLICE_FMT "…)", SLICE_ARG(digest));
}

static struct why_step registration_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (skipped_for(x, SKIP_DISABLED)) {
        return step(WHY_FAILS, say(c->arena, "it was disabled"), evaluation_id(c));
    }
    if (skipped_for(x, SKIP_SCOPE)) {
        return step(WHY_FAILS, out_of_scope(c), evaluation_id(c));
    }
    if (skipped_for(x, SKIP_NOT_EXECUTABLE)) {
        return step(WHY_FAILS, say(c->arena, "its file was not executable"), evaluation_id(c));
    }
    if (x || why_case_in_force(c)) {
        return step(WHY_HOLDS, in_force(c),
                    c->registry ? c->registry->record_id : evaluation_id(c));
    }
    return elsewhere(c);
}

/* The rule by which a pattern and a name were compared, in words. */
static struct slice compared(const struct why_case *c, struct slice pattern, bool matches,
                             bool exact)
{
    return say(c->arena, "'%" SLICE_FMT "' %s '%" SLICE_FMT "'%s", SLICE_ARG(pattern),
               matches ? "matches" : "does not match", SLICE_ARG(c->evaluation->tool_name),
               exact ? ", compared as an exact string because the pattern is unusable" : "");
}

/* The chain did not come to ask the matcher; we can. */
static struct why_step matcher_asked_now(const struct why_case *c, struct slice pattern)
{
    CLEANUP(matcher_freep) struct matcher *m = matcher_new(pattern);
    enum matcher_rule rule;
    bool matches = matcher_matches(m, c->evaluation->tool_name, &rule);
    struct slice text = compared(c, pattern, matches, rule == MATCHER_BY_EXACT);

    return step(matches ? WHY_HOLDS : WHY_FAILS,
                say(c->arena, "%" SLICE_FMT " (it was not asked then)", SLICE_ARG(text)),
                c->registry ? c->registry->record_id : evaluation_id(c));
}

static struct why_step matcher_step(const struct why_case *c)
{
    const struct execution *x = c->execution;
    bool exact = x && x->matcher_mode == MATCHER_EXACT_FALLBACK;

    if (!c->evaluation) {
        return step(WHY_UNKNOWN, say(c->arena, "there is no event to compare with"),
                    (struct slice){ 0 });
    }
    if (c->evaluation->tool_name.len == 0) {
        return step(WHY_HOLDS,
                    say(c->arena, "%" SLICE_FMT " uses no matcher",
                        SLICE_ARG(c->evaluation->hook_event_type)),
                    evaluation_id(c));
    }
    if (skipped_for(x, SKIP_MATCHER)) {
        return step(WHY_FAILS, compared(c, x->matcher, false, exact), evaluation_id(c));
    }
    if (passed_over(x, SKIP_MATCHER)) {
        return step(WHY_HOLDS, compared(c, x->matcher, true, exact), evaluation_id(c));
    }
    if (x || c->definition) {
        return matcher_asked_now(c, c->definition ? c->definition->matcher : x->matcher);
    }
    return step(WHY_UNKNOWN, say(c->arena, "its matcher is not recorded"), (struct slice){ 0 });
}

/* ---- 6 to 8: what happened ---------------------------------------------------- */

/* Why it cannot be told what became of a hook: `otherwise`, unless the record is not whole. */
static struct slice untold(const struct why_case *c, const char *otherwise)
{
    const struct evaluation *e = c->evaluation;

    if (!c->execution && e && e->hooks_unlisted > 0) {
        return say(c->arena,
                   "the record would be too large with %" PRIu32 " more hooks, which it does not "
                   "list; this may be one of them",
                   e->hooks_unlisted);
    }
    return say(c->arena, "%s", otherwise);
}

/* The hook before ours whose decision ended the chain; NULL: none is told. */
static const struct execution *ender(const struct why_case *c)
{
    const struct execution *found = NULL;

    for (size_t i = 0; i < c->evaluation->n_hooks; i++) {
        const struct execution *other = &c->evaluation->hooks[i];

        if (other == c->execution) {
            break;
        }
        if (other->decision == DECISION_DENY || other->decision == DECISION_ASK) {
            found = other;
        }
    }
    return found;
}

static struct why_step reached_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (skipped_for(x, SKIP_SHORT_CIRCUIT)) {
        const struct execution *by = ender(c);

        return step(
            WHY_FAILS,
            by ? say(c->arena, "'%" SLICE_FMT "' (%s) decided %s before it, and that ends a chain",
                     SLICE_ARG(by->hook_name), tier_name(by->tier), decision_name(by->decision))
               : say(c->arena, "the chain was ended before it: %s",
                     decision_name(c->evaluation->final_decision)),
            evaluation_id(c));
    }
    if (skipped_for(x, SKIP_MAX_REJECTIONS)) {
        return step(WHY_FAILS, say(c->arena, "it had rejected as often as maxRejections allows"),
                    evaluation_id(c));
    }
    if (skipped_for(x, SKIP_DUPLICATE)) {
        return step(WHY_FAILS, say(c->arena, "the same hook had run already"), evaluation_id(c));
    }
    if (ran(x)) {
        return step(WHY_HOLDS, say(c->arena, "it was its turn, as number %" PRIu32, x->ordinal + 1),
                    evaluation_id(c));
    }
    return step(WHY_UNKNOWN, untold(c, "the chain did not get to it"), (struct slice){ 0 });
}

static struct why_step passed(const struct why_case *c, const struct execution *x)
{
    const char *but = x->blank_reason ? "; it rejected, but with a blank reason, which counts for "
                                        "nothing"
                                      : "";

    if (x->intended != DECISION_NONE) {
        return step(WHY_FAILS,
                    say(c->arena, "it ran %" PRId64 " ms and passed; its output meant %s",
                        x->duration_us / 1000, decision_name(x->intended)),
                    evaluation_id(c));
    }
    return step(WHY_FAILS,
                say(c->arena, "it ran %" PRId64 " ms and passed%s", x->duration_us / 1000, but),
                evaluation_id(c));
}

static struct why_step decided_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (!ran(x)) {
        return step(WHY_UNKNOWN, untold(c, "it did not run"), (struct slice){ 0 });
    }
    if (x->decision == DECISION_PASS) {
        return passed(c, x);
    }
    if (x->decision == DECISION_ERROR || x->decision == DECISION_CANCELLED ||
        x->decision == DECISION_NONE || x->decision == DECISION_INTERRUPTED) {
        return step(WHY_UNKNOWN, say(c->arena, "it did not come to a decision"), evaluation_id(c));
    }
    return step(WHY_HOLDS,
                say(c->arena, "it decided %s%s%" SLICE_FMT, decision_name(x->decision),
                    x->reason.text.len > 0 ? ": " : "", SLICE_ARG(x->reason.text)),
                evaluation_id(c));
}

/* "timed out after 2000 ms", "exit code 3", … */
static struct slice failure(const struct why_case *c, const struct execution *x)
{
    if (x->timed_out) {
        return say(c->arena, "it timed out after %" PRId64 " ms", x->duration_us / 1000);
    }
    if (x->cause == CAUSE_EXIT_CODE && x->has_exit_code) {
        return say(c->arena, "it ended with exit code %" PRId32, x->exit_code);
    }
    if (x->cause == CAUSE_SIGNAL) {
        return say(c->arena, "it was ended by signal %" PRId32, x->signal);
    }
    if (x->cause == CAUSE_UNSUPPORTED && x->hook_type != HOOK_COMMAND) {
        return say(c->arena, "this build has no runner for %s hooks", hook_type_name(x->hook_type));
    }
    return say(c->arena, "it failed (%s)", x->cause ? cause_name(x->cause) : "no cause recorded");
}

static struct why_step worked_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (!ran(x)) {
        return step(WHY_UNKNOWN, untold(c, "it did not run"), (struct slice){ 0 });
    }
    if (x->decision == DECISION_CANCELLED || x->decision == DECISION_INTERRUPTED) {
        return step(WHY_UNKNOWN,
                    say(c->arena, "it was ended from outside (%s)", decision_name(x->decision)),
                    evaluation_id(c));
    }
    if (x->decision != DECISION_ERROR) {
        return step(WHY_HOLDS, say(c->arena, "it ran without failure"), evaluation_id(c));
    }

    struct slice what = failure(c, x);
    bool let_through = !slice_equal(x->fail_mode, SLICE("block")) &&
                       !slice_equal(x->fail_mode, SLICE("FailClosed"));

    return step(
        WHY_FAILS,
        say(c->arena, "%" SLICE_FMT "; failMode %" SLICE_FMT " %s%s%s", SLICE_ARG(what),
            SLICE_ARG(x->fail_mode),
            let_through ? "let the call through as if it were not there" : "blocked the call",
            x->intended ? "; its output meant " : "", decision_name(x->intended)),
        evaluation_id(c));
}

/* Of a hook that nobody knows, what could have become of it cannot be told. */
static void forget_the_rest(const struct why_case *c, struct why *w)
{
    for (int k = WHY_REGISTRATION + 1; k < WHY_STEPS; k++) {
        w->steps[k] =
            step(WHY_UNKNOWN, say(c->arena, "there is no such hook"), (struct slice){ 0 });
    }
}

void why_steps(const struct why_case *c, struct why *w)
{
    w->steps[WHY_EVENT] = event_step(c);
    w->steps[WHY_EVENT_TYPE] = event_type_step(c);
    w->steps[WHY_ACTIVATION] = activation_step(c);
    w->steps[WHY_REGISTRATION] = registration_step(c);
    w->steps[WHY_MATCHER] = matcher_step(c);
    w->steps[WHY_REACHED] = reached_step(c);
    w->steps[WHY_DECIDED] = decided_step(c);
    w->steps[WHY_WORKED] = worked_step(c);
    if (why_case_unknown_hook(c)) {
        forget_the_rest(c, w);
    }
}
