#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/utf8.h"
#include "collector/record/fields.h"

static const char *at(const void *record, size_t offset)
{
    return (const char *)record + offset;
}

static struct slice slice_at(const char *p)
{
    struct slice s;

    memcpy(&s, p, sizeof(s));
    return s;
}

static int64_t i64_at(const char *p)
{
    int64_t n;

    memcpy(&n, p, sizeof(n));
    return n;
}

static uint32_t u32_at(const char *p)
{
    uint32_t n;

    memcpy(&n, p, sizeof(n));
    return n;
}

static bool bool_at(const char *p)
{
    bool b;

    memcpy(&b, p, sizeof(b));
    return b;
}

/* Is there anything to tell? */
static bool is_set(const struct field *f, const void *record)
{
    const char *p = at(record, f->offset);

    if (f->has > 0) {
        return bool_at(at(record, f->has));
    }
    switch (f->kind) {
    case FIELD_REASON_CHARS:
    case FIELD_PAYLOAD:
    case FIELD_HOOKS:
    case FIELD_TYPE:
    case FIELD_SCHEMA:
        return false;
    case FIELD_TEXT:
    case FIELD_JSON:
    case FIELD_ARRAY:
    case FIELD_OBJECT:
    case FIELD_REASON: /* its text is its first member */
        return f->always || slice_at(p).len > 0;
    case FIELD_BOOL:
        return f->always || bool_at(p);
    case FIELD_WORD:
    case FIELD_U32:
    case FIELD_I32:
        return f->always || u32_at(p) != 0;
    case FIELD_U64:
    case FIELD_I64:
    case FIELD_TIME:
        return f->always || i64_at(p) != 0;
    }
    return false;
}

static void put_bool(struct buf *out, bool b)
{
    buf_add(out, b ? SLICE("true") : SLICE("false"));
}

static void put_word(struct buf *out, const char *word)
{
    buf_add_char(out, '"');
    buf_add(out, slice_from_cstr(word));
    buf_add_char(out, '"');
}

static void put_time(struct buf *out, int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    put_word(out, text);
}

/* A reason longer than allowed ends in an ellipsis, and says how long it was. */
static void put_reason(struct buf *out, const char *p)
{
    struct cut_text reason;

    memcpy(&reason, p, sizeof(reason));

    /* One that was cut before has the ellipsis as one character more. */
    size_t limit = RECORD_REASON_CHARS + (reason.chars > 0 ? 1 : 0);
    struct slice head = utf8_prefix(reason.text, limit);

    if (head.len == reason.text.len) {
        buf_add_json_string(out, head);
    } else {
        head = utf8_prefix(head, RECORD_REASON_CHARS);
        buf_add_json_string(out, head);
        if (buf_ok(out)) {
            out->len_bytes--; /* its closing quote */
        }
        buf_add(out, SLICE("\xe2\x80\xa6\""));
        if (reason.chars == 0) {
            reason.chars = utf8_count(reason.text);
        }
    }
    if (reason.chars > 0) {
        buf_add(out, SLICE(",\"reason_truncated\":true,\"reason_chars\":"));
        buf_add_u64(out, reason.chars);
    }
}

void field_encode(const struct field *f, const void *record, struct buf *out)
{
    const char *p = at(record, f->offset);

    if (!is_set(f, record)) {
        return;
    }
    buf_add(out, f->lead);
    switch (f->kind) {
    case FIELD_TEXT:
        buf_add_json_string(out, slice_at(p));
        break;
    case FIELD_JSON:
    case FIELD_ARRAY:
    case FIELD_OBJECT:
        buf_add(out, slice_at(p));
        break;
    case FIELD_REASON:
        put_reason(out, p);
        break;
    case FIELD_REASON_CHARS:
    case FIELD_PAYLOAD:
    case FIELD_HOOKS:
    case FIELD_TYPE:
    case FIELD_SCHEMA:
        break;
    case FIELD_WORD:
        put_word(out, f->words->name(u32_at(p)));
        break;
    case FIELD_BOOL:
        put_bool(out, bool_at(p));
        break;
    case FIELD_U32:
        buf_add_u64(out, u32_at(p));
        break;
    case FIELD_U64:
        buf_add_u64(out, (uint64_t)i64_at(p));
        break;
    case FIELD_I32:
        buf_add_i64(out, (int32_t)u32_at(p));
        break;
    case FIELD_I64:
        buf_add_i64(out, i64_at(p));
        break;
    case FIELD_TIME:
        put_time(out, i64_at(p));
        break;
    }
}

void fields_encode(const struct fields *f, const void *record, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        field_encode(&f->rows[i], record, out);
    }
}
