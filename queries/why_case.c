#include "queries/why_case.h"

#include <assert.h>

#include "collector/record/decode.h"

/* Hooks of several agents may share a name: the one that ran counts, or that could have. */
static int relevance(const struct execution *x)
{
    if (x->decision != DECISION_SKIPPED) {
        return 2;
    }
    return x->skip_reason != SKIP_SCOPE;
}

static const struct execution *part_of(const struct evaluation *e, struct slice hook)
{
    const struct execution *found = NULL;

    for (size_t i = 0; i < e->n_hooks; i++) {
        const struct execution *x = &e->hooks[i];

        if (slice_equal(x->hook_name, hook) && (!found || relevance(x) > relevance(found))) {
            found = x;
        }
    }
    return found;
}

static bool load_candidates(struct store *s, struct why_case *c, struct err *err)
{
    const struct why_options *o = c->options;
    struct store_filter f = {
        .types = 1U << RECORD_HOOK_EVALUATION,
        .call_id = o->call,
        .thread_id = o->thread,
        .tool_name = o->tool,
        .event = o->event,
        .newest_first = true,
        .limit = WHY_CANDIDATES,
    };
    struct rows rows = { 0 };

    if (!rows_select(s, &f, c->arena, &rows, err)) {
        return false;
    }
    c->candidates = arena_alloc(c->arena, rows.n + 1, sizeof(*c->candidates));
    if (!c->candidates) {
        return err_set(err, ERR_TOO_BIG, "the evaluations are over %zu MiB",
                       c->arena->limit_bytes >> 20);
    }
    for (size_t i = 0; i < rows.n; i++) {
        struct evaluation *e = &c->candidates[c->n_candidates++];

        if (!decode_evaluation(rows.items[i].body, c->arena, e, err)) {
            return err_wrap(err, "record %" SLICE_FMT, SLICE_ARG(rows.items[i].id));
        }
        if (part_of(e, o->hook)) {
            c->heard = e->hook_event_type;
            c->considered++;
        }
    }
    return true;
}

static int64_t distance(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

/* Newest first: so the first one that fits is the latest. NULL when none fits. */
static const struct evaluation *
best(const struct why_case *c, bool (*fits)(const struct why_case *, const struct evaluation *))
{
    const struct evaluation *found = NULL;
    int64_t at = c->options->at_us;

    for (size_t i = 0; i < c->n_candidates; i++) {
        const struct evaluation *e = &c->candidates[i];

        if (fits(c, e) && (!found || (at > 0 && distance(e->head.time_us, at) <
                                                    distance(found->head.time_us, at)))) {
            found = e;
        }
    }
    return found;
}

static bool any(const struct why_case *c, const struct evaluation *e)
{
    (void)c;
    (void)e;
    return true;
}

static bool lists_hook(const struct why_case *c, const struct evaluation *e)
{
    return part_of(e, c->options->hook) != NULL;
}

static bool is_heard(const struct why_case *c, const struct evaluation *e)
{
    return definition_hears(c->definition, e->hook_event_type);
}

static bool has_heard_event(const struct why_case *c, const struct evaluation *e)
{
    return slice_equal(e->hook_event_type, c->heard);
}

static bool is_chain_of(const struct why_case *c, const struct evaluation *e)
{
    if (c->definition && slice_equal(c->definition->type, SLICE("prompt"))) {
        return e->chain == CHAIN_PROMPT;
    }
    return e->chain == CHAIN_COMMAND;
}

/* Of the chains of one dispatch, the one that is about the hook. */
static const struct evaluation *right_chain(const struct why_case *c, const struct evaluation *e)
{
    const struct evaluation *found = e;

    assert(e);
    if (e->dispatch_id.len == 0 || lists_hook(c, e)) {
        return e;
    }
    for (size_t i = 0; i < c->n_candidates; i++) {
        const struct evaluation *sibling = &c->candidates[i];

        if (!slice_equal(sibling->dispatch_id, e->dispatch_id)) {
            continue;
        }
        if (lists_hook(c, sibling)) {
            return sibling;
        }
        if (c->definition && is_chain_of(c, sibling)) {
            found = sibling;
        }
    }
    return found;
}

static const struct definition *look_up(const struct registries *all, struct slice hook,
                                        const struct registry **ret)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct definition *d = registry_find(&all->items[i], hook);

        if (d) {
            *ret = &all->items[i];
            return d;
        }
    }
    return NULL;
}

/* The hook's definition in the set of evaluation e (NULL: none), else in any set. */
static bool load_definition(struct store *s, struct why_case *c, const struct evaluation *e,
                            struct err *err)
{
    struct slice hook = c->options->hook;

    c->definition = NULL;
    c->registry = NULL;
    c->in_force = (struct registries){ 0 };
    if (e && e->config_digest.len > 0) {
        if (!registries_load(s, e->contract, e->config_digest, c->arena, &c->in_force, err)) {
            return false;
        }
        c->definition = look_up(&c->in_force, hook, &c->registry);
    }
    if (c->definition) {
        return true;
    }
    if (c->all.n == 0 && !registries_load(s, e ? e->contract : (struct slice){ 0 },
                                          (struct slice){ 0 }, c->arena, &c->all, err)) {
        return false;
    }
    c->definition = look_up(&c->all, hook, &c->registry);
    return true;
}

/* Which evaluation is meant; there is at least one. */
static bool choose(struct store *s, struct why_case *c, struct err *err)
{
    const struct evaluation *latest = best(c, any);
    const struct evaluation *heard = NULL;

    if (!load_definition(s, c, latest, err)) {
        return false;
    }
    if (c->considered > 0) {
        heard = best(c, has_heard_event);
    } else if (c->definition) {
        heard = best(c, is_heard);
        c->event_missing = !heard;
    }
    c->evaluation = right_chain(c, heard ? heard : latest);
    c->execution = part_of(c->evaluation, c->options->hook);
    return load_definition(s, c, c->evaluation, err);
}

/* Without an evaluation: the thread's other events, what tools say of the call, losses. */
static bool look_around(struct store *s, struct why_case *c, struct err *err)
{
    const struct why_options *o = c->options;
    unsigned events = 1U << RECORD_HOOK_EVALUATION | 1U << RECORD_TOOL_EXECUTION;
    struct store_filter near = {
        .types = events, .thread_id = o->thread, .newest_first = true, .limit = WHY_CANDIDATES
    };
    struct store_filter tools = { .types = 1U << RECORD_TOOL_EXECUTION, .call_id = o->call };
    struct store_filter gaps = { .types = 1U << RECORD_GAP, .newest_first = true };

    if (o->call.len > 0 && !rows_select(s, &tools, c->arena, &c->tools, err)) {
        return false;
    }
    if (near.thread_id.len == 0 && c->tools.n > 0) {
        struct tool_execution tool;

        if (!decode_tool_execution(c->tools.items[0].body, c->arena, &tool, err)) {
            return false;
        }
        near.thread_id = tool.thread_id;
    }
    if (near.thread_id.len > 0 && !rows_select(s, &near, c->arena, &c->near, err)) {
        return false;
    }
    /* A loss is written down after it happened: from the thread's begin on. */
    gaps.from_us = c->near.n > 0 ? c->near.items[c->near.n - 1].time_us : o->at_us;
    return rows_select(s, &gaps, c->arena, &c->gaps, err) && load_definition(s, c, NULL, err);
}

bool why_case_find(struct store *s, const struct why_options *o, struct arena *a,
                   struct why_case *ret, struct err *err)
{
    *ret = (struct why_case){ .options = o, .arena = a };
    if (!load_candidates(s, ret, err)) {
        return false;
    }
    return ret->n_candidates > 0 ? choose(s, ret, err) : look_around(s, ret, err);
}

bool why_case_in_force(const struct why_case *c)
{
    return c->definition && c->evaluation && c->in_force.n > 0 &&
           slice_equal(c->registry->digest, c->in_force.items[0].digest);
}

bool why_case_unknown_hook(const struct why_case *c)
{
    return !c->execution && !c->registry && c->all.n > 0;
}
