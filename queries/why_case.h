/*
 * why_case: the evaluation that a question of why is about, and what is around it.
 *
 * Of several evaluations that fit, those of the hook's own event count, and of
 * them the latest, or the nearest to a time; of Stop's two chains the one that
 * considered the hook, or runs hooks of its type.
 */
#pragma once

#include "collector/record/record.h"
#include "queries/registry.h"
#include "queries/rows.h"
#include "queries/why.h"

enum { WHY_CANDIDATES = 1000 }; /* newest evaluations of a thread that are looked at */

struct why_case {
    const struct why_options *options;
    struct arena *arena;

    /* Every evaluation that fits the question, newest first. */
    struct evaluation *candidates;
    size_t n_candidates;
    size_t considered;  /* how many of them considered the hook */
    struct slice heard; /* the event of those */

    const struct evaluation *evaluation; /* the chosen one; NULL: none */
    const struct execution *execution;   /* the hook's part in it; NULL: not listed */
    bool event_missing; /* the hook listens to another event, which the call never had */

    struct registries in_force;          /* of the evaluation's digest; n 0: no record of it */
    struct registries all;               /* every set, when the hook is not in the one in force */
    const struct definition *definition; /* of the set in force, else the newest that has it */
    const struct registry *registry;     /* that has the definition; NULL: none has */

    /* Where there is no evaluation: what else is known. */
    struct rows near;  /* the thread's evaluations and tool executions, newest first */
    struct rows tools; /* tool executions of the call */
    struct rows gaps;  /* losses that may have swallowed it */
};

/* Errors: the store's; ERR_TOO_BIG; ERR_CORRUPT. */
bool why_case_find(struct store *s, const struct why_options *o, struct arena *a,
                   struct why_case *ret, struct err *err) MUST_CHECK;

/* True when no record knows a hook of that name, and there are some that would. */
bool why_case_unknown_hook(const struct why_case *c);

/* True when the definition stands in the set that was in force. */
bool why_case_in_force(const struct why_case *c);
