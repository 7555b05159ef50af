/*
 * why_step: the eight steps, a function each, and what they have in common. For why_*.c.
 *
 * A step is made from its case alone; its evidence is in the case's arena.
 */
#pragma once

#include "queries/why_case.h"

/* why_event.c */
struct why_step why_event_step(const struct why_case *c);

/* why_configured.c */
struct why_step why_event_type_step(const struct why_case *c);
struct why_step why_activation_step(const struct why_case *c);
struct why_step why_registration_step(const struct why_case *c);
struct why_step why_matcher_step(const struct why_case *c);

/* why_happened.c */
struct why_step why_reached_step(const struct why_case *c);
struct why_step why_decided_step(const struct why_case *c);
struct why_step why_worked_step(const struct why_case *c);

/* A step; an empty record_id: no record shows it. */
struct why_step why_step(enum why_state state, struct slice evidence, struct slice record_id);

/* Of the hook's part in the evaluation, which is NULL where it is not listed. */
static inline bool why_ran(const struct execution *x)
{
    return x && x->decision != DECISION_SKIPPED;
}
static inline bool why_skipped_for(const struct execution *x, enum skip_reason reason)
{
    return x && x->decision == DECISION_SKIPPED && x->skip_reason == reason;
}

/* Skip reasons are tried in order: what comes before the one that is told was passed. */
static inline bool why_passed_over(const struct execution *x, enum skip_reason reason)
{
    return x && (x->decision != DECISION_SKIPPED || x->skip_reason > reason);
}

/* The id of the evaluation; empty where there is none. */
struct slice why_evaluation_id(const struct why_case *c);

/* A time as records write it, in the arena. */
struct slice why_time_text(struct arena *a, int64_t us);
