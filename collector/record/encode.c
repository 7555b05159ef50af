#include "collector/record/encode.h"

#include "collector/record/fields.h"

static void begin(enum record_type type, struct buf *out)
{
    buf_add(out, SLICE("{\"type\":\""));
    buf_add(out, slice_from_cstr(record_type_name(type)));
    buf_add(out, SLICE("\",\"schema\":"));
    buf_add_u64(out, RECORD_SCHEMA);
}

/* A record that is nothing but its fields. */
static void encode_flat(enum record_type type, const struct fields *f, const void *record,
                        struct buf *out)
{
    begin(type, out);
    fields_encode(f, record, out);
    buf_add_char(out, '}');
}

/* The fields of an object that is not the record: the first has no comma before it. */
static void encode_inner(const struct fields *f, const void *record, struct buf *out)
{
    size_t comma = out->len_bytes;

    fields_encode(f, record, out);
    if (buf_ok(out) && out->len_bytes > comma) {
        out->ptr[comma] = '{';
    }
}

/*
 * Forty hooks that did not run are the usual case, and must stay small: what is
 * usual of them is left out, and decode puts it back.
 */
static struct execution without_the_usual(const struct execution *x)
{
    struct execution brief = *x;

    if (x->hook_type == HOOK_COMMAND) {
        brief.hook_type = HOOK_NONE;
    }
    if (x->matcher_mode == MATCHER_REGEX && x->skip_reason >= SKIP_MATCHER) {
        brief.matcher_mode = MATCHER_NONE;
    }
    return brief;
}

static void encode_execution(const struct execution *x, struct buf *out)
{
    if (x->decision == DECISION_SKIPPED) {
        struct execution brief = without_the_usual(x);

        encode_inner(&execution_skipped_fields, &brief, out);
    } else {
        encode_inner(&execution_fields, x, out);
    }
    buf_add_char(out, '}');
}

static void encode_payload(const struct payload_facts *p, struct buf *out)
{
    if (p->bytes == 0 && p->keys.len == 0) {
        return;
    }
    buf_add(out, SLICE(",\"payload\":"));
    encode_inner(&payload_fields, p, out);
    buf_add_char(out, '}');
}

void encode_evaluation(const struct evaluation *e, struct buf *out)
{
    begin(RECORD_HOOK_EVALUATION, out);
    fields_encode(&evaluation_fields, e, out);
    encode_payload(&e->payload, out);
    buf_add(out, SLICE(",\"hooks\":["));
    for (size_t i = 0; i < e->n_hooks; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        encode_execution(&e->hooks[i], out);
    }
    buf_add(out, SLICE("]}"));
}

void encode_identity(const struct evaluation *e, struct buf *out)
{
    for (size_t k = 0; k < evaluation_fields.n; k++) {
        if (k == HEAD_FIELDS) {
            buf_add(out, SLICE(",\"evaluation_id\":"));
            buf_add_json_string(out, e->head.id);
        }
        if (evaluation_fields.rows[k].identity) {
            field_encode(&evaluation_fields.rows[k], e, out);
        }
    }
}

void encode_execution_id(struct slice evaluation_id, uint32_t ordinal, struct buf *out)
{
    buf_add(out, evaluation_id);
    buf_add_char(out, '.');
    buf_add_u64(out, ordinal);
}

static void begin_execution(struct slice evaluation_id, uint32_t ordinal, struct slice identity,
                            struct buf *out)
{
    buf_add(out, SLICE("{\"type\":\"hook_execution\",\"schema\":"));
    buf_add_u64(out, RECORD_SCHEMA);
    buf_add(out, SLICE(",\"id\":\""));
    encode_execution_id(evaluation_id, ordinal, out);
    buf_add_char(out, '"');
    buf_add(out, identity);
}

void encode_execution_row(struct slice evaluation_id, uint32_t ordinal, struct slice identity,
                          struct slice json, struct buf *out)
{
    begin_execution(evaluation_id, ordinal, identity, out);
    buf_add_char(out, ',');
    buf_add(out, (struct slice){ .ptr = json.ptr + 1, .len = json.len - 1 });
}

void encode_hook_execution(const struct evaluation *e, size_t i, struct slice identity,
                           struct buf *out)
{
    const struct execution *x = &e->hooks[i];

    if (slice_starts_with(x->json, SLICE("{\""))) {
        encode_execution_row(e->head.id, x->ordinal, identity, x->json, out);
        return;
    }
    begin_execution(e->head.id, x->ordinal, identity, out);
    fields_encode(&execution_fields, x, out);
    buf_add_char(out, '}');
}

void encode_tool_execution(const struct tool_execution *t, struct buf *out)
{
    encode_flat(RECORD_TOOL_EXECUTION, &tool_execution_fields, t, out);
}

void encode_hook_registry(const struct hook_registry *r, struct buf *out)
{
    encode_flat(RECORD_HOOK_REGISTRY, &hook_registry_fields, r, out);
}

void encode_gap(const struct gap *g, struct buf *out)
{
    encode_flat(RECORD_GAP, &gap_fields, g, out);
}

void encode_admin(const struct admin *a, struct buf *out)
{
    encode_flat(RECORD_ADMIN, &admin_fields, a, out);
}
