/* What is recorded beside dispatches: hook sets as they were loaded, and admin actions. */
#include "collector/base/clock.h"
#include "collector/record/encode.h"
#include "collector/recorder/recorder_part.h"

enum { PART_BYTES = 192 * 1024 }; /* of definitions in one record; the rest of it is small */

static bool is_too_long(const struct hook *h)
{
    return h->definition.len >= PART_BYTES;
}

/* A definition that no record could hold leaves its name. */
static void put_definition(const struct hook *h, struct buf *out)
{
    if (!is_too_long(h)) {
        buf_add(out, h->definition);
        return;
    }
    buf_add(out, SLICE("{\"name\":"));
    buf_add_json_string(out, h->name);
    buf_add(out, SLICE(",\"truncated\":true}"));
}

/* One part: as many definitions from *next on as fit; at least one, if there is one left. */
static void take_part(const struct hookset *set, size_t *next, struct buf *out)
{
    buf_clear(out);
    buf_add_char(out, '[');
    for (; *next < set->n_hooks; (*next)++) {
        const struct hook *h = &set->hooks[*next];
        size_t need = is_too_long(h) ? h->name.len : h->definition.len;

        if (out->len_bytes > 1 && out->len_bytes + need > PART_BYTES) {
            break;
        }
        if (out->len_bytes > 1) {
            buf_add_char(out, ',');
        }
        put_definition(h, out);
    }
    buf_add_char(out, ']');
}

static uint32_t count_parts(const struct hookset *set)
{
    CLEANUP(buf_done) struct buf part;
    uint32_t n = 0;
    size_t next = 0;

    buf_init(&part, RECORD_MAX_BYTES);
    do {
        take_part(set, &next, &part);
        n++;
    } while (next < set->n_hooks);
    return n;
}

static bool append(struct recorder *r, enum record_type type, const struct buf *json,
                   struct err *err)
{
    uint64_t seq;

    if (!buf_ok(json)) {
        return err_set(err, ERR_TOO_BIG, "a record of more than %d bytes", RECORD_MAX_BYTES);
    }
    return !r->options.journal ||
           journal_append(r->options.journal, type, buf_slice(json), APPEND_WAIT_MS, &seq, err);
}

bool recorder_registry(struct recorder *r, const struct hookset *set, struct err *err)
{
    CLEANUP(buf_done) struct buf part;
    CLEANUP(buf_done) struct buf json;
    struct hook_registry record = {
        .contract = slice_from_cstr(set->ops->name),
        .config_digest = slice_from_cstr(set->digest_hex),
        .parts = count_parts(set),
    };
    size_t next = 0;

    buf_init(&part, RECORD_MAX_BYTES);
    buf_init(&json, RECORD_MAX_BYTES);
    for (; record.part < record.parts; record.part++) {
        struct id id = id_new();

        take_part(set, &next, &part);
        record.head = (struct record_head){ .id = id_slice(&id),
                                            .collector = r->collector,
                                            .time_us = clock_now_us() };
        record.hooks = buf_slice(&part);
        buf_clear(&json);
        encode_hook_registry(&record, &json);
        if (!append(r, RECORD_HOOK_REGISTRY, &json, err)) {
            return err_wrap(err, "hook registry, part %u", record.part);
        }
    }
    return true;
}

bool recorder_admin(struct recorder *r, const char *action, const char *actor, struct slice details,
                    struct err *err)
{
    CLEANUP(buf_done) struct buf json;
    struct id id = id_new();
    struct admin record = {
        .head = { .id = id_slice(&id), .collector = r->collector, .time_us = clock_now_us() },
        .action = slice_from_cstr(action),
        .actor = slice_from_cstr(actor),
        .details = details,
    };

    buf_init(&json, RECORD_MAX_BYTES);
    encode_admin(&record, &json);
    if (!append(r, RECORD_ADMIN, &json, err)) {
        return err_wrap(err, "admin action %s", action);
    }
    return true;
}
