#include "queries/why_steps.h"

#include "collector/base/suggest.h"
#include "queries/near_miss.h"
#include "queries/say.h"

/* What an answer closes with; each in one sentence, with its full stop. */
struct closing {
    struct slice verdict;
    struct slice advice;
};

static struct slice hook_of(const struct why_case *c)
{
    return c->options->hook;
}

/* ---- The event --------------------------------------------------------------- */

static bool was_blocked(const struct why_case *c)
{
    for (size_t i = 0; i < c->n_candidates; i++) {
        enum decision d = c->candidates[i].final_decision;

        if (d == DECISION_DENY || d == DECISION_REJECT || d == DECISION_ASK) {
            return true;
        }
    }
    return false;
}

static struct slice missing_event_advice(const struct why_case *c)
{
    if (definition_hears(c->definition, SLICE("PostToolUse")) && was_blocked(c)) {
        return say(c->arena, "The call was blocked, so the tool never ran and has no PostToolUse.");
    }
    if (definition_hears(c->definition, SLICE("PreToolUse"))) {
        return say(c->arena, "A tool that is resumed after an approval skips PreToolUse; for any "
                             "other, check that the host sends the event.");
    }
    return say(c->arena, "Check that the host sends that event for what you test, or change the "
                         "hook's eventType.");
}

static struct closing of_event(const struct why_case *c)
{
    if (c->event_missing) {
        return (struct closing){ say(c->arena,
                                     "'%" SLICE_FMT "' was not asked: the event that it listens to "
                                     "did not occur.",
                                     SLICE_ARG(hook_of(c))),
                                 missing_event_advice(c) };
    }
    if (c->evaluation) {
        return (struct closing){
            say(c->arena, "'%" SLICE_FMT "' was skipped: its sources do not name this thread's.",
                SLICE_ARG(hook_of(c))),
            say(c->arena, "Add the thread's source to spec.sources; it is compared exactly.")
        };
    }
    if (c->tools.n > 0) {
        return (struct closing){
            say(c->arena, "'%" SLICE_FMT "' was not asked: the tool ran without its event.",
                SLICE_ARG(hook_of(c))),
            say(c->arena, "A tool that is resumed after an approval skips PreToolUse; for any "
                          "other, check that the host sends the event before it runs the tool.")
        };
    }
    return (struct closing){
        say(c->arena, "'%" SLICE_FMT "' was not asked: no such event is recorded.",
            SLICE_ARG(hook_of(c))),
        c->near.n > 0 ? say(c->arena,
                            "Look up the call with `hooktrail trace %" SLICE_FMT "`; names are "
                            "compared with regard to case.",
                            SLICE_ARG(c->options->thread))
                      : say(c->arena, "Check the id, that the host sends its events here, and with "
                                      "`hooktrail status` that records are shipped.")
    };
}

/* ---- The configuration ------------------------------------------------------- */

static struct closing of_event_type(const struct why_case *c)
{
    return (struct closing){
        say(c->arena,
            "'%" SLICE_FMT "' was not asked: it listens to %" SLICE_FMT ", not to %" SLICE_FMT ".",
            SLICE_ARG(hook_of(c)), SLICE_ARG(c->definition->events),
            SLICE_ARG(c->evaluation->hook_event_type)),
        say(c->arena, "Ask about %" SLICE_FMT " with --event, or change the hook's eventType.",
            SLICE_ARG(c->definition->events))
    };
}

static struct closing of_activation(const struct why_case *c)
{
    return (struct closing){
        say(c->arena,
            "'%" SLICE_FMT "' was skipped: it is onDemand and was not active on this thread.",
            SLICE_ARG(hook_of(c))),
        say(c->arena, "Activate it for the thread (the host names it in activated_hooks), or set "
                      "activationMode to always.")
    };
}

enum { NAMES_MAX = 256 }; /* hooks of a set that are searched for a like name */

/* The hook of the newest known set that is nearest in name; "" when none is near. */
static struct slice nearest_name(const struct why_case *c)
{
    const struct registries *all = c->in_force.n > 0 ? &c->in_force : &c->all;
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (size_t i = 0; all->n > 0 && i < all->items[0].n && n < NAMES_MAX; i++) {
        names[n++] = all->items[0].hooks[i].name.ptr;
    }
    return slice_from_cstr(suggest_name(hook_of(c), names, n));
}

static struct slice unknown_hook_advice(const struct why_case *c)
{
    struct slice near = nearest_name(c);

    if (near.len > 0) {
        return say(c->arena, "Did you mean '%" SLICE_FMT "'?", SLICE_ARG(near));
    }
    return say(c->arena, "Check the name and the hook file with `hooktrail check`; a changed file "
                         "counts from the next reload on.");
}

static struct closing of_registration(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (x && x->skip_reason == SKIP_DISABLED) {
        return (struct closing){ say(c->arena, "'%" SLICE_FMT "' was skipped: it is disabled.",
                                     SLICE_ARG(hook_of(c))),
                                 say(c->arena, "Enable it (spec.enabled: true).") };
    }
    if (x && x->skip_reason == SKIP_SCOPE) {
        return (struct closing){
            say(c->arena, "'%" SLICE_FMT "' was skipped: it does not belong to this agent's loop.",
                SLICE_ARG(hook_of(c))),
            say(c->arena, "A child runs system and user-global tool hooks and its own agent's; "
                          "configure the hook for that agent, or as user-global.")
        };
    }
    if (x) {
        return (struct closing){ say(c->arena,
                                     "'%" SLICE_FMT "' was skipped: its file cannot be run.",
                                     SLICE_ARG(hook_of(c))),
                                 say(c->arena, "Make the file executable.") };
    }
    if (!c->registry) {
        return (struct closing){ say(c->arena, "There is no hook named '%" SLICE_FMT "'.",
                                     SLICE_ARG(hook_of(c))),
                                 unknown_hook_advice(c) };
    }
    return (struct closing){
        say(c->arena, "'%" SLICE_FMT "' was not registered when the event came.",
            SLICE_ARG(hook_of(c))),
        c->registry->time_us > c->evaluation->head.time_us
            ? say(c->arena, "It came into force later: repeat the action, and it is asked.")
            : say(c->arena, "It was taken out before: put it back into the hook file and reload.")
    };
}

static struct closing of_matcher(const struct why_case *c)
{
    const struct execution *x = c->execution;
    struct slice pattern = x ? x->matcher : c->definition->matcher;

    return (struct closing){ say(c->arena,
                                 "'%" SLICE_FMT "' was skipped: its matcher '%" SLICE_FMT
                                 "' does not match '%" SLICE_FMT "'.",
                                 SLICE_ARG(hook_of(c)), SLICE_ARG(pattern),
                                 SLICE_ARG(c->evaluation->tool_name)),
                             near_miss(pattern, c->evaluation->tool_name, c->arena) };
}

/* ---- What happened ----------------------------------------------------------- */

static struct closing of_reached(const struct why_case *c)
{
    enum skip_reason reason = c->execution->skip_reason;

    if (reason == SKIP_SHORT_CIRCUIT) {
        return (struct closing){
            say(c->arena, "'%" SLICE_FMT "' was skipped: an earlier hook ended the chain with %s.",
                SLICE_ARG(hook_of(c)), decision_name(c->evaluation->final_decision)),
            say(c->arena, "Order is system, agent, user-global; a control that must always run "
                          "belongs into a higher tier, or outside of hooks.")
        };
    }
    return (struct closing){ say(c->arena, "'%" SLICE_FMT "' was skipped: %s.",
                                 SLICE_ARG(hook_of(c)), skip_reason_name(reason)),
                             reason == SKIP_DUPLICATE
                                 ? say(c->arena,
                                       "Nothing to do: the same hook ran once for this event.")
                                 : say(c->arena, "Raise maxRejections, or let the agent stop.") };
}

static struct closing of_decided(const struct why_case *c)
{
    const struct execution *x = c->execution;
    struct slice verdict = say(c->arena, "'%" SLICE_FMT "' ran and passed.", SLICE_ARG(hook_of(c)));

    if (x->blank_reason) {
        return (struct closing){ verdict, say(c->arena, "It rejected with a blank reason, which "
                                                        "counts for nothing: write a reason.") };
    }
    if (x->intended != DECISION_NONE) {
        return (struct closing){ verdict,
                                 say(c->arena,
                                     "Its output meant %s, but does not count in that form: "
                                     "exit 0 with JSON, or exit 2.",
                                     decision_name(x->intended)) };
    }
    return (struct closing){ verdict, say(c->arena,
                                          "If it should have objected, run its script on "
                                          "the same input by hand: it saw nothing to object to.") };
}

/* A failure that no repair of the hook would mend. */
static struct closing of_unsupported(const struct why_case *c)
{
    const char *type = hook_type_name(c->execution->hook_type);

    return (struct closing){ say(c->arena,
                                 "'%" SLICE_FMT "' was reached and could not run: this build has "
                                 "no runner for %s hooks.",
                                 SLICE_ARG(hook_of(c)), type),
                             say(c->arena, "Write it as a command hook; until then every event "
                                           "that reaches it is recorded as an error.") };
}

static struct slice failure_advice(const struct why_case *c, bool blocked)
{
    const struct execution *x = c->execution;

    if (x->timed_out) {
        return say(c->arena, "Make it faster or raise its timeout%s",
                   blocked ? "." : "; failMode block would stop the call instead.");
    }
    if (x->stderr_tail.len > 0) {
        return say(c->arena, "Repair it; its stderr ended in: %" SLICE_FMT,
                   SLICE_ARG(x->stderr_tail));
    }
    return say(c->arena, "Repair it: exit 0 with JSON or nothing, or exit 2 to block%s",
               blocked ? "." : "; failMode block makes a failure visible.");
}

static struct closing of_worked(const struct why_case *c)
{
    const struct execution *x = c->execution;
    bool blocked =
        slice_equal(x->fail_mode, SLICE("block")) || slice_equal(x->fail_mode, SLICE("FailClosed"));
    struct slice verdict = say(c->arena, "'%" SLICE_FMT "' ran and failed%s, and the call was %s.",
                               SLICE_ARG(hook_of(c)), x->timed_out ? " (timed out)" : "",
                               blocked ? "blocked" : "let through");

    if (x->cause == CAUSE_UNSUPPORTED && x->hook_type != HOOK_COMMAND) {
        return of_unsupported(c);
    }
    return (struct closing){ verdict, failure_advice(c, blocked) };
}

/* ---- Nothing failed ---------------------------------------------------------- */

/* It decided; but a chain is more than one hook. */
static struct closing of_firing(const struct why_case *c)
{
    const struct execution *x = c->execution;
    const struct evaluation *e = c->evaluation;
    struct slice verdict = say(c->arena, "'%" SLICE_FMT "' fired: it decided %s.",
                               SLICE_ARG(hook_of(c)), decision_name(x->decision));

    if (slice_equal(e->hook_event_type, SLICE("Start"))) {
        return (struct closing){ verdict, say(c->arena, "Start reads only additionalContext: a "
                                                        "rejection there goes nowhere.") };
    }
    if (x->decision == e->final_decision) {
        return (struct closing){ verdict,
                                 say(c->arena, "Nothing to do: the chain decided the same.") };
    }
    return (struct closing){
        verdict, say(c->arena, "The chain decided %s: %s", decision_name(e->final_decision),
                     x->decision == DECISION_REJECT && e->final_decision == DECISION_ASK
                         ? "a later ask discards plain rejections; deny cannot be discarded."
                         : "another hook's decision counts for more.")
    };
}

static struct closing of_unknown(const struct why_case *c)
{
    const struct evaluation *e = c->evaluation;

    if (!e && c->options->unshipped > 0) {
        return (struct closing){
            say(c->arena, "Whether '%" SLICE_FMT "' was asked cannot be told yet.",
                SLICE_ARG(hook_of(c))),
            say(c->arena, "Ask again when the records are shipped; `hooktrail status` tells.")
        };
    }
    if (!e) {
        return (struct closing){
            say(c->arena, "Whether '%" SLICE_FMT "' was asked cannot be told: records were lost.",
                SLICE_ARG(hook_of(c))),
            say(c->arena,
                "See the gap with `hooktrail tail` or `hooktrail verify`, and mend its cause.")
        };
    }
    if (e->final_decision == DECISION_INTERRUPTED || e->final_decision == DECISION_CANCELLED) {
        return (struct closing){
            say(c->arena, "'%" SLICE_FMT "' did not get to its end: %s.", SLICE_ARG(hook_of(c)),
                e->final_decision == DECISION_CANCELLED ? "the caller went away"
                                                        : "the collector died while the chain ran"),
            say(c->arena, "Repeat the action.")
        };
    }
    return (struct closing){
        say(c->arena, "The evaluation does not tell what became of '%" SLICE_FMT "'.",
            SLICE_ARG(hook_of(c))),
        e->source == SOURCE_HOST
            ? say(c->arena, "The host that sent it did not list its hooks; ask it to.")
            : say(c->arena,
                  "Look at the whole evaluation with `hooktrail trace %" SLICE_FMT " --all`.",
                  SLICE_ARG(e->thread_id))
    };
}

static struct closing of_step(const struct why_case *c, enum why_step_kind step)
{
    switch (step) {
    case WHY_EVENT:
        return of_event(c);
    case WHY_EVENT_TYPE:
        return of_event_type(c);
    case WHY_ACTIVATION:
        return of_activation(c);
    case WHY_REGISTRATION:
        return of_registration(c);
    case WHY_MATCHER:
        return of_matcher(c);
    case WHY_REACHED:
        return of_reached(c);
    case WHY_DECIDED:
        return of_decided(c);
    case WHY_WORKED:
        return of_worked(c);
    case WHY_STEPS:
        break;
    }
    return (struct closing){ 0 };
}

/* The first step that fails; WHY_STEPS: none does. */
static enum why_step_kind first_failing(const struct why *w)
{
    int k = 0;

    while (k < WHY_STEPS && w->steps[k].state != WHY_FAILS) {
        k++;
    }
    return (enum why_step_kind)k;
}

void why_verdict(const struct why_case *c, struct why *w)
{
    /* A name that nobody knows is the answer, whatever became of the event. */
    enum why_step_kind failing = why_case_unknown_hook(c) ? WHY_REGISTRATION : first_failing(w);
    struct closing closing;

    if (failing != WHY_STEPS) {
        closing = of_step(c, failing);
    } else if (w->steps[WHY_DECIDED].state == WHY_HOLDS) {
        closing = of_firing(c);
    } else {
        closing = of_unknown(c);
    }
    w->verdict = closing.verdict;
    w->advice = closing.advice;
}
