/* The parts of an evaluation that are objects themselves: its payload's facts, its hooks. */
#include <string.h>

#include "collector/record/fields.h"

enum { FIRST_HOOKS = 8 };

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

/* Twice the room; how many there are is not known before they were walked. */
static bool grow(struct evaluation *e, size_t *cap, struct arena *a, struct err *err)
{
    size_t more = *cap > 0 ? *cap * 2 : FIRST_HOOKS;
    struct execution *list = arena_alloc(a, more, sizeof(*list));

    if (!list) {
        return err_set(err, ERR_TOO_BIG, "hooks: more than %zu are too many", e->n_hooks);
    }
    if (e->n_hooks > 0) {
        memcpy(list, e->hooks, e->n_hooks * sizeof(*list));
    }
    e->hooks = list;
    *cap = more;
    return true;
}

static bool decode_hook(const struct fields *f, struct json_value *item, struct arena *a,
                        struct execution *x, struct err *err)
{
    if (item->kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "an object is expected");
    }
    if (!fields_decode(f, item, x, a, err)) {
        return false;
    }
    restore_the_usual(x);
    x->json = item->raw;
    return true;
}

bool hooks_decode(struct json_value *array, struct evaluation *e, bool outline, struct arena *a,
                  struct err *err)
{
    const struct fields *f = outline ? &execution_outline_fields : &execution_fields;
    struct payload_iter it = payload_iter(*array);
    struct json_value item;
    size_t cap = 0;

    if (array->kind != JSON_KIND_ARRAY) {
        return err_set(err, ERR_INVALID, "hooks: a list is expected");
    }
    if (!grow(e, &cap, a, err)) {
        return false;
    }
    while (payload_next_open(&it, NULL, &item)) {
        if (e->n_hooks == cap && !grow(e, &cap, a, err)) {
            return false;
        }
        if (!decode_hook(f, &item, a, &e->hooks[e->n_hooks], err)) {
            return err_wrap(err, "hooks[%zu]", e->n_hooks);
        }
        e->n_hooks++;
        payload_pass(&it, item);
    }
    array->raw.len = payload_walked(*array, &it);
    return true;
}

bool payload_facts_decode(struct json_value *object, struct payload_facts *ret, struct arena *a,
                          struct err *err)
{
    if (object->kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "payload: an object is expected");
    }
    return fields_decode(&payload_fields, object, ret, a, err) || err_wrap(err, "payload");
}
