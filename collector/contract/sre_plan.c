/* sre_plan: which hooks run on an event, in which order, and why the others do not. */
#include "collector/contract/sre.h"

/* Which part of an event's hooks a chain takes. */
struct selection {
    enum chain_kind kind;
    enum hook_type type; /* HOOK_NONE: every type */
};

/* True when the hook belongs to the loop that asks, whether it matches or not. */
static bool in_scope(const struct dispatch *d, const struct hook *hook)
{
    const struct sre_hook *own = hook->own;

    if (hook->tier == TIER_AGENT) {
        return slice_equal(own->agent, d->facts.agent_name);
    }
    /* A child inherits global tool hooks, and starts and stops with its own alone. */
    return !d->facts.child || sre_event_is_tool(own->event);
}

static bool is_active(const struct sre_request *r, const struct hook *hook)
{
    const struct sre_hook *own = hook->own;
    struct payload_iter it = payload_iter(r->activated);
    struct json_value name;

    if (!own->on_demand) {
        return true;
    }
    if (r->activated.kind != JSON_KIND_ARRAY) {
        return false;
    }
    while (payload_next(&it, NULL, &name)) {
        if (payload_string_is(name.raw, hook->name)) {
            return true;
        }
    }
    return false;
}

static bool has_source(const struct sre_request *r, const struct sre_hook *own)
{
    for (size_t i = 0; i < own->n_sources; i++) {
        if (slice_equal(own->sources[i], r->thread_source)) {
            return true;
        }
    }
    return own->n_sources == 0;
}

static bool matches(const struct dispatch *d, const struct sre_hook *own, struct step *step)
{
    static const enum matcher_mode modes[] = {
        [MATCHER_BY_ANY] = MATCHER_ANY,
        [MATCHER_BY_REGEX] = MATCHER_REGEX,
        [MATCHER_BY_EXACT] = MATCHER_EXACT_FALLBACK,
    };
    enum matcher_rule rule = MATCHER_BY_ANY;

    if (!own->matcher) {
        return true;
    }

    bool yes = matcher_matches(own->matcher, d->facts.tool_name, &rule);

    step->matcher_mode = modes[rule];
    return yes;
}

/* In the order in which the reasons count; SKIP_NONE: it runs. */
static enum skip_reason why_not(const struct dispatch *d, const struct hook *hook,
                                struct step *step)
{
    const struct sre_request *r = d->own;
    const struct sre_hook *own = hook->own;

    if (!own->enabled) {
        return SKIP_DISABLED;
    }
    if (!is_active(r, hook)) {
        return SKIP_INACTIVE;
    }
    if (!has_source(r, own)) {
        return SKIP_SOURCE;
    }
    if (!in_scope(d, hook)) {
        return SKIP_SCOPE;
    }
    if (!matches(d, own, step)) {
        return SKIP_MATCHER;
    }
    if (r->event == SRE_STOP && hook->type == HOOK_PROMPT &&
        r->stop_rejections >= own->max_rejections) {
        return SKIP_MAX_REJECTIONS;
    }
    return SKIP_NONE;
}

static bool is_selected(const struct dispatch *d, const struct hook *hook,
                        const struct selection *s)
{
    const struct sre_request *r = d->own;
    const struct sre_hook *own = hook->own;

    return own->event == r->event && (s->type == HOOK_NONE || hook->type == s->type);
}

/* How many hooks the chain lists, and how many of them belong to this loop. */
static void count(const struct dispatch *d, const struct selection *s, size_t *ret_listed,
                  uint32_t *ret_configured)
{
    size_t listed = 0;
    uint32_t configured = 0;

    for (size_t i = 0; i < d->set->n_hooks; i++) {
        const struct hook *hook = &d->set->hooks[i];

        if (is_selected(d, hook, s)) {
            listed++;
            configured += in_scope(d, hook) ? 1 : 0;
        }
    }
    *ret_listed = listed;
    *ret_configured = configured;
}

static void plan_step(const struct dispatch *d, const struct hook *hook, struct step *step)
{
    const struct sre_hook *own = hook->own;

    *step = (struct step){
        .hook = hook,
        .timeout_ms = own->timeout_ms,
        .drain_ms = SRE_DRAIN_MS,
        .output_limit_bytes = SRE_OUTPUT_BYTES,
        .stderr_tail_bytes = SRE_STDERR_TAIL_BYTES,
    };
    step->skip = why_not(d, hook, step);
    step->run = step->skip == SKIP_NONE;
}

/* One step a wave: a hook starts when the one before it is done. */
static bool plan_waves(struct dispatch *d, struct chain *c, const struct selection *s, size_t n)
{
    struct step *steps = arena_alloc(&d->arena, n + 1, sizeof(*steps));

    c->waves = arena_alloc(&d->arena, n + 1, sizeof(*c->waves));
    if (!steps || !c->waves) {
        return false;
    }
    for (int tier = TIER_SYSTEM; tier <= TIER_USER_GLOBAL; tier++) {
        for (size_t i = 0; i < d->set->n_hooks; i++) {
            const struct hook *hook = &d->set->hooks[i];

            if (hook->tier != (enum tier)tier || !is_selected(d, hook, s)) {
                continue;
            }
            plan_step(d, hook, &steps[c->n_waves]);
            c->waves[c->n_waves] = (struct wave){ .steps = &steps[c->n_waves], .n_steps = 1 };
            c->n_waves++;
        }
    }
    return true;
}

static bool add_chain(struct dispatch *d, const struct selection *s)
{
    struct chain *c = &d->chains[d->n_chains++];
    size_t listed;

    *c = (struct chain){
        .kind = s->kind,
        .decision = DECISION_PASS,
        .own = ARENA_NEW(&d->arena, struct sre_chain),
    };
    count(d, s, &listed, &c->hooks_configured);
    return c->own && plan_waves(d, c, s, listed);
}

bool sre_plan(struct dispatch *d, struct err *err)
{
    static const struct selection all = { CHAIN_ALL, HOOK_NONE };
    static const struct selection stop[] = {
        { CHAIN_PROMPT, HOOK_PROMPT },
        { CHAIN_COMMAND, HOOK_COMMAND },
    };
    const struct sre_request *r = d->own;
    bool ok = true;

    d->chains = arena_alloc(&d->arena, 2, sizeof(*d->chains));
    if (d->chains && r->event == SRE_STOP) {
        for (size_t i = 0; i < 2; i++) {
            size_t listed;
            uint32_t configured;

            count(d, &stop[i], &listed, &configured);
            ok = ok && (configured == 0 || add_chain(d, &stop[i]));
        }
    }
    if (d->chains && d->n_chains == 0) {
        ok = ok && add_chain(d, &all);
    }
    return (d->chains && ok) || err_set(err, ERR_TOO_BIG, "no room for the plan");
}
