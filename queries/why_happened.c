/* Steps 6 to 8 of why: whose turn it was, what it decided, and whether it worked. */
#include "queries/why_step.h"

#include <inttypes.h>

#include "queries/say.h"

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

struct why_step why_reached_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (why_skipped_for(x, SKIP_SHORT_CIRCUIT)) {
        const struct execution *by = ender(c);

        return why_step(
            WHY_FAILS,
            by ? say(c->arena, "'%" SLICE_FMT "' (%s) decided %s before it, and that ends a chain",
                     SLICE_ARG(by->hook_name), tier_name(by->tier), decision_name(by->decision))
               : say(c->arena, "the chain was ended before it: %s",
                     decision_name(c->evaluation->final_decision)),
            why_evaluation_id(c));
    }
    if (why_skipped_for(x, SKIP_MAX_REJECTIONS)) {
        return why_step(WHY_FAILS,
                        say(c->arena, "it had rejected as often as maxRejections allows"),
                        why_evaluation_id(c));
    }
    if (why_skipped_for(x, SKIP_DUPLICATE)) {
        return why_step(WHY_FAILS, say(c->arena, "the same hook had run already"),
                        why_evaluation_id(c));
    }
    if (why_ran(x)) {
        return why_step(WHY_HOLDS,
                        say(c->arena, "it was its turn, as number %" PRIu32, x->ordinal + 1),
                        why_evaluation_id(c));
    }
    return why_step(WHY_UNKNOWN, untold(c, "the chain did not get to it"), (struct slice){ 0 });
}

static struct why_step passed(const struct why_case *c, const struct execution *x)
{
    const char *but = x->blank_reason ? "; it rejected, but with a blank reason, which counts for "
                                        "nothing"
                                      : "";

    if (x->intended != DECISION_NONE) {
        return why_step(WHY_FAILS,
                        say(c->arena, "it ran %" PRId64 " ms and passed; its output meant %s",
                            x->duration_us / 1000, decision_name(x->intended)),
                        why_evaluation_id(c));
    }
    return why_step(WHY_FAILS,
                    say(c->arena, "it ran %" PRId64 " ms and passed%s", x->duration_us / 1000, but),
                    why_evaluation_id(c));
}

struct why_step why_decided_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (!why_ran(x)) {
        return why_step(WHY_UNKNOWN, untold(c, "it did not run"), (struct slice){ 0 });
    }
    if (x->decision == DECISION_PASS) {
        return passed(c, x);
    }
    if (x->decision == DECISION_ERROR || x->decision == DECISION_CANCELLED ||
        x->decision == DECISION_NONE || x->decision == DECISION_INTERRUPTED) {
        return why_step(WHY_UNKNOWN, say(c->arena, "it did not come to a decision"),
                        why_evaluation_id(c));
    }
    return why_step(WHY_HOLDS,
                    say(c->arena, "it decided %s%s%" SLICE_FMT, decision_name(x->decision),
                        x->reason.text.len > 0 ? ": " : "", SLICE_ARG(x->reason.text)),
                    why_evaluation_id(c));
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

struct why_step why_worked_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (!why_ran(x)) {
        return why_step(WHY_UNKNOWN, untold(c, "it did not run"), (struct slice){ 0 });
    }
    if (x->decision == DECISION_CANCELLED || x->decision == DECISION_INTERRUPTED) {
        return why_step(WHY_UNKNOWN,
                        say(c->arena, "it was ended from outside (%s)", decision_name(x->decision)),
                        why_evaluation_id(c));
    }
    if (x->decision != DECISION_ERROR) {
        return why_step(WHY_HOLDS, say(c->arena, "it ran without failure"), why_evaluation_id(c));
    }

    struct slice what = failure(c, x);
    bool let_through = !slice_equal(x->fail_mode, SLICE("block")) &&
                       !slice_equal(x->fail_mode, SLICE("FailClosed"));

    return why_step(
        WHY_FAILS,
        say(c->arena, "%" SLICE_FMT "; failMode %" SLICE_FMT " %s%s%s", SLICE_ARG(what),
            SLICE_ARG(x->fail_mode),
            let_through ? "let the call through as if it were not there" : "blocked the call",
            x->intended ? "; its output meant " : "", decision_name(x->intended)),
        why_evaluation_id(c));
}
