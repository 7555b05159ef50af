/* Steps 2 to 5 of why: what was configured, and whether it fits the event. */
#include "queries/why_step.h"

#include <assert.h>

#include "collector/base/utf8.h"
#include "collector/match/matcher.h"
#include "queries/say.h"

enum { DIGEST_SHOWN = 12 }; /* digits that tell one set from another, for people */

struct why_step why_event_type_step(const struct why_case *c)
{
    const struct evaluation *e = c->evaluation;

    if (c->execution) {
        return why_step(WHY_HOLDS, say(c->arena, "the chain considered the hook"), e->head.id);
    }
    if (!c->definition) {
        return why_step(WHY_UNKNOWN, say(c->arena, "no registry tells of the hook"),
                        why_evaluation_id(c));
    }
    if (e && !definition_hears(c->definition, e->hook_event_type)) {
        return why_step(WHY_FAILS,
                        say(c->arena,
                            "the hook listens to %" SLICE_FMT ", the event was %" SLICE_FMT,
                            SLICE_ARG(c->definition->events), SLICE_ARG(e->hook_event_type)),
                        c->registry->record_id);
    }
    return why_step(WHY_HOLDS,
                    say(c->arena, "it listens to %" SLICE_FMT, SLICE_ARG(c->definition->events)),
                    c->registry->record_id);
}

struct why_step why_activation_step(const struct why_case *c)
{
    const struct definition *d = c->definition;

    if (why_skipped_for(c->execution, SKIP_INACTIVE)) {
        return why_step(WHY_FAILS,
                        say(c->arena, "it is onDemand, and was not activated for the thread"),
                        why_evaluation_id(c));
    }
    if (why_passed_over(c->execution, SKIP_INACTIVE)) {
        return why_step(WHY_HOLDS, say(c->arena, "it was not skipped as inactive"),
                        why_evaluation_id(c));
    }
    if (d && !slice_equal(d->activation, SLICE("onDemand"))) {
        return why_step(WHY_HOLDS, say(c->arena, "it is always active"), c->registry->record_id);
    }
    return why_step(WHY_UNKNOWN,
                    d ? say(c->arena, "it is onDemand; nothing tells whether it was activated")
                      : say(c->arena, "nothing is recorded of its activation"),
                    (struct slice){ 0 });
}

/* Not in the set in force: in another one, or in none. */
static struct why_step elsewhere(const struct why_case *c)
{
    if (!c->registry && c->all.n == 0) {
        return why_step(WHY_UNKNOWN, say(c->arena, "no hook set is recorded"), (struct slice){ 0 });
    }
    if (!c->registry) {
        return why_step(WHY_FAILS, say(c->arena, "no recorded hook set has a hook of this name"),
                        c->in_force.n > 0 ? c->in_force.items[0].record_id : (struct slice){ 0 });
    }
    if (!c->evaluation || c->in_force.n == 0) {
        return why_step(WHY_UNKNOWN,
                        say(c->arena,
                            "it is in the set loaded at %" SLICE_FMT
                            "; which set was in force is not recorded",
                            SLICE_ARG(why_time_text(c->arena, c->registry->time_us))),
                        c->registry->record_id);
    }

    bool later = c->registry->time_us > c->evaluation->head.time_us;

    return why_step(WHY_FAILS,
                    say(c->arena,
                        "the set in force (%" SLICE_FMT "…) does not have it; %s it was in the set "
                        "loaded at %" SLICE_FMT,
                        SLICE_ARG(utf8_prefix(c->evaluation->config_digest, DIGEST_SHOWN)),
                        later ? "only later" : "before,",
                        SLICE_ARG(why_time_text(c->arena, c->registry->time_us))),
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

struct why_step why_registration_step(const struct why_case *c)
{
    const struct execution *x = c->execution;

    if (why_skipped_for(x, SKIP_DISABLED)) {
        return why_step(WHY_FAILS, say(c->arena, "it was disabled"), why_evaluation_id(c));
    }
    if (why_skipped_for(x, SKIP_SCOPE)) {
        return why_step(WHY_FAILS, out_of_scope(c), why_evaluation_id(c));
    }
    if (why_skipped_for(x, SKIP_NOT_EXECUTABLE)) {
        return why_step(WHY_FAILS, say(c->arena, "its file was not executable"),
                        why_evaluation_id(c));
    }
    if (x || why_case_in_force(c)) {
        return why_step(WHY_HOLDS, in_force(c),
                        c->registry ? c->registry->record_id : why_evaluation_id(c));
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

    return why_step(matches ? WHY_HOLDS : WHY_FAILS,
                    say(c->arena, "%" SLICE_FMT " (it was not asked then)", SLICE_ARG(text)),
                    c->registry ? c->registry->record_id : why_evaluation_id(c));
}

struct why_step why_matcher_step(const struct why_case *c)
{
    const struct execution *x = c->execution;
    bool exact = x && x->matcher_mode == MATCHER_EXACT_FALLBACK;

    if (!c->evaluation) {
        return why_step(WHY_UNKNOWN, say(c->arena, "there is no event to compare with"),
                        (struct slice){ 0 });
    }
    if (c->evaluation->tool_name.len == 0) {
        return why_step(WHY_HOLDS,
                        say(c->arena, "%" SLICE_FMT " uses no matcher",
                            SLICE_ARG(c->evaluation->hook_event_type)),
                        why_evaluation_id(c));
    }
    if (why_skipped_for(x, SKIP_MATCHER)) {
        return why_step(WHY_FAILS, compared(c, x->matcher, false, exact), why_evaluation_id(c));
    }
    if (why_passed_over(x, SKIP_MATCHER)) {
        return why_step(WHY_HOLDS, compared(c, x->matcher, true, exact), why_evaluation_id(c));
    }
    if (x || c->definition) {
        return matcher_asked_now(c, c->definition ? c->definition->matcher : x->matcher);
    }
    return why_step(WHY_UNKNOWN, say(c->arena, "its matcher is not recorded"), (struct slice){ 0 });
}
