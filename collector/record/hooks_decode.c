/* The parts of an evaluation that are objects themselves: its payload's facts, its hooks. */
#include "collector/record/fields.h"

/* The inverse of without_the_usual() in encode.c. */
static void restore_the_usual(struct execution *x)
{
    if (x->decision != DECISION_SKIPPED) {
        return;
    }
    if (x->hook_type == HOOK_NONE) {
        x->hook_type = HOOK_COMMAND;
    }
    if (x->matcher_mode == MATCHER_NONE && x->matcher.len > 0 && x->skip_reason >= SKIP_MATCHER) {
        x->matcher_mode = MATCHER_REGEX;
    }
}

/* How many there are is not known before they were walked. */
static bool grow(struct evaluation *e, size_t *cap, struct arena *a, struct err *err)
{
    struct execution *list = arena_grow(a, e->hooks, cap, sizeof(*list));

    if (!list) {
        return err_set(err, ERR_TOO_BIG, "hooks: more than %zu are too many", e->n_hooks);
    }
    e->hooks = list;
    return true;
}

static bool decode_hook(struct payload_reader *r, struct arena *a, struct execution *x,
                        struct err *err)
{
    const char *first = r->at;

    if (!fields_decode(&execution_fields, r, x, a, err)) {
        return false;
    }
    restore_the_usual(x);
    x->json = (struct slice){ .ptr = first, .len = (size_t)(r->at - first) };
    return true;
}

bool hooks_decode(struct payload_reader *r, struct evaluation *e, struct arena *a, struct err *err)
{
    size_t cap = 0;

    if (!payload_enter(r, JSON_KIND_ARRAY)) {
        return !r->failed && err_set(err, ERR_INVALID, "hooks: a list is expected");
    }
    if (!grow(e, &cap, a, err)) {
        return false;
    }
    while (payload_item(r)) {
        if (e->n_hooks == cap && !grow(e, &cap, a, err)) {
            return false;
        }
        if (!decode_hook(r, a, &e->hooks[e->n_hooks], err)) {
            return !r->failed && err_wrap(err, "hooks[%zu]", e->n_hooks);
        }
        e->n_hooks++;
    }
    return !r->failed;
}

bool payload_facts_decode(struct payload_reader *r, struct payload_facts *ret, struct arena *a,
                          struct err *err)
{
    return fields_decode(&payload_fields, r, ret, a, err) ||
           (!r->failed && err_wrap(err, "payload"));
}
