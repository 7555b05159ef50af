#include "queries/registry.h"

#include <jansson.h>
#include <strings.h>

#include "collector/base/buf.h"
#include "collector/record/decode.h"
#include "queries/rows.h"

/* A string, or the strings of an array with commas between. */
static bool text_of(const json_t *value, struct arena *a, struct slice *ret)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, RECORD_MAX_BYTES);
    if (json_is_string(value)) {
        buf_add(&b, (struct slice){ json_string_value(value), json_string_length(value) });
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);

        buf_addf(&b, "%s%s", i > 0 ? ", " : "",
                 json_string_value(item) ? json_string_value(item) : "");
    }
    return arena_dup(a, buf_slice(&b), ret);
}

static bool read_definition(const json_t *hook, struct arena *a, struct definition *ret)
{
    struct {
        const char *key;
        struct slice *text;
    } texts[] = {
        { "name", &ret->name },       { "tier", &ret->tier },
        { "agent", &ret->agent },     { "events", &ret->events },
        { "type", &ret->type },       { "matcher", &ret->matcher },
        { "sources", &ret->sources }, { "activation_mode", &ret->activation },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!text_of(json_object_get(hook, texts[i].key), a, texts[i].text)) {
            return false;
        }
    }
    return true;
}

static void decref(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}

/* Add the definitions of one part to what the registry has. */
static bool add_part(struct registry *r, struct slice hooks, struct arena *a, struct err *err)
{
    json_error_t fault;
    CLEANUP(decref) json_t *list = json_loadb(hooks.ptr, hooks.len, 0, &fault);
    size_t n = json_array_size(list);

    if (!list) {
        return err_set(err, ERR_CORRUPT, "registry %" SLICE_FMT ": %s", SLICE_ARG(r->record_id),
                       fault.text);
    }

    struct definition *all = arena_alloc(a, r->n + n + 1, sizeof(*all));

    if (!all) {
        return err_set(err, ERR_TOO_BIG, "the registries are over %zu MiB", a->limit_bytes >> 20);
    }
    for (size_t i = 0; i < r->n; i++) {
        all[i] = r->hooks[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_definition(json_array_get(list, i), a, &all[r->n + i])) {
            return err_set(err, ERR_TOO_BIG, "the registries are over %zu MiB",
                           a->limit_bytes >> 20);
        }
    }
    r->hooks = all;
    r->n += n;
    return true;
}

/* Rows come newest first, so the parts of one loading come one after the other, last part first. */
static bool add_record(struct registries *all, const struct store_row *row, struct arena *a,
                       struct err *err)
{
    struct hook_registry record = { 0 };
    struct registry *last = all->n > 0 ? &all->items[all->n - 1] : NULL;

    if (!decode_hook_registry(row->body, a, &record, err)) {
        return err_wrap(err, "record %" SLICE_FMT, SLICE_ARG(row->id));
    }

    bool begins = !last || !slice_equal(last->digest, record.config_digest) ||
                  record.part + 1 >= record.parts;

    if (begins) {
        last = &all->items[all->n++];
        *last = (struct registry){ .digest = record.config_digest, .contract = record.contract };
    }
    last->record_id = row->id;
    last->time_us = row->time_us;
    return add_part(last, record.hooks, a, err);
}

bool registries_load(struct store *s, struct slice contract, struct slice digest, struct arena *a,
                     struct registries *ret, struct err *err)
{
    struct store_filter f = {
        .types = 1U << RECORD_HOOK_REGISTRY,
        .contract = contract,
        .config_digest = digest,
        .newest_first = true,
        .limit = REGISTRY_RECORDS,
    };
    struct registries all = { 0 };
    struct rows rows = { 0 };

    if (!rows_select(s, &f, a, &rows, err)) {
        return false;
    }
    all.items = arena_alloc(a, rows.n + 1, sizeof(*all.items));
    if (!all.items) {
        return err_set(err, ERR_TOO_BIG, "the registries are over %zu MiB", a->limit_bytes >> 20);
    }
    for (size_t i = 0; i < rows.n; i++) {
        if (!add_record(&all, &rows.items[i], a, err)) {
            return false;
        }
    }
    *ret = all;
    return true;
}

const struct definition *registry_find(const struct registry *r, struct slice name)
{
    for (size_t i = 0; i < r->n; i++) {
        if (slice_equal(r->hooks[i].name, name)) {
            return &r->hooks[i];
        }
    }
    return NULL;
}

static struct slice without_blanks(struct slice s)
{
    while (s.len > 0 && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    return s;
}

bool definition_hears(const struct definition *d, struct slice event)
{
    struct slice rest = d->events;
    struct slice one;

    while (rest.len > 0) {
        (void)slice_cut(rest, ',', &one, &rest);
        one = without_blanks(one);
        if (one.len == event.len && strncasecmp(one.ptr, event.ptr, one.len) == 0) {
            return true;
        }
    }
    return false;
}
