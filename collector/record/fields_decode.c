#include <string.h>

#include "collector/base/clock.h"
#include "collector/record/fields.h"

/* Where the value of one field goes, and what may go wrong on the way. */
struct target {
    const struct fields *fields;
    const struct field *field;
    char *at;
    struct payload_reader *reader;
    struct arena *arena;
    struct err *err;
};

static bool refuse(const struct target *t, const char *what)
{
    return err_set(t->err, ERR_INVALID, "%" SLICE_FMT ": %s", SLICE_ARG(field_key(t->field)), what);
}

static bool text(const struct target *t, struct json_value v, struct slice *ret)
{
    if (v.kind != JSON_KIND_STRING) {
        return refuse(t, "a string is expected");
    }
    if (!payload_string(v.raw, t->arena, ret, NULL)) {
        return err_set(t->err, ERR_TOO_BIG, "%" SLICE_FMT ": the texts are too long",
                       SLICE_ARG(field_key(t->field)));
    }
    return true;
}

static bool store_text(const struct target *t, struct json_value v)
{
    struct slice s;

    if (!text(t, v, &s)) {
        return false;
    }
    memcpy(t->at, &s, sizeof(s));
    return true;
}

static bool store_json(const struct target *t, struct json_value v)
{
    if (t->field->kind == FIELD_ARRAY && v.kind != JSON_KIND_ARRAY) {
        return refuse(t, "a list is expected");
    }
    if (t->field->kind == FIELD_OBJECT && v.kind != JSON_KIND_OBJECT) {
        return refuse(t, "an object is expected");
    }
    memcpy(t->at, &v.raw, sizeof(v.raw));
    return true;
}

static bool store_bool(const struct target *t, struct json_value v)
{
    bool b = v.kind == JSON_KIND_TRUE;

    if (!b && v.kind != JSON_KIND_FALSE) {
        return refuse(t, "true or false is expected");
    }
    memcpy(t->at, &b, sizeof(b));
    return true;
}

static bool store_word(const struct target *t, struct json_value v)
{
    struct slice word;
    unsigned value;

    if (!text(t, v, &word)) {
        return false;
    }
    value = t->field->words->from(word);
    if (value == 0) {
        return refuse(t, "a word that this version does not know");
    }
    memcpy(t->at, &value, sizeof(value));
    return true;
}

static bool store_time(const struct target *t, struct json_value v)
{
    struct slice s;
    int64_t us;

    if (!text(t, v, &s)) {
        return false;
    }
    if (!clock_parse(s, &us)) {
        return refuse(t, "an RFC 3339 time is expected");
    }
    memcpy(t->at, &us, sizeof(us));
    return true;
}

/* An integer between least and most, in `size` bytes. */
static bool store_integer(const struct target *t, struct json_value v, int64_t least, int64_t most)
{
    int64_t n;
    bool wide = most == INT64_MAX;

    if (!payload_integer(v, &n)) {
        return refuse(t, "an integer is expected");
    }
    if (n < least || n > most) {
        return refuse(t, "a number that is out of range");
    }
    if (wide) {
        memcpy(t->at, &n, sizeof(n));
    } else {
        uint32_t narrow = (uint32_t)n;

        memcpy(t->at, &narrow, sizeof(narrow));
    }
    return true;
}

static bool store_type(const struct target *t, struct json_value v)
{
    enum record_type type = RECORD_NONE;

    if (!fields_check_type(t->fields, v, &type, t->err)) {
        return false;
    }
    if (type != RECORD_NONE) {
        memcpy(t->at, &type, sizeof(type));
    }
    return true;
}

static bool store(const struct target *t, struct json_value v)
{
    struct target chars = *t;

    switch (t->field->kind) {
    case FIELD_TEXT:
    case FIELD_REASON:
        return store_text(t, v);
    case FIELD_JSON:
    case FIELD_ARRAY:
    case FIELD_OBJECT:
        return store_json(t, v);
    case FIELD_REASON_CHARS:
        chars.at += offsetof(struct cut_text, chars);
        return store_integer(&chars, v, 0, INT64_MAX);
    case FIELD_WORD:
        return store_word(t, v);
    case FIELD_BOOL:
        return store_bool(t, v);
    case FIELD_U32:
        return store_integer(t, v, 0, UINT32_MAX);
    case FIELD_U64:
        return store_integer(t, v, 0, INT64_MAX);
    case FIELD_I32:
        return store_integer(t, v, INT32_MIN, INT32_MAX);
    case FIELD_I64:
        return store_integer(t, v, INT64_MIN, INT64_MAX);
    case FIELD_TIME:
        return store_time(t, v);
    case FIELD_TYPE:
        return store_type(t, v);
    case FIELD_SCHEMA:
        return fields_check_schema(v, t->err);
    case FIELD_PAYLOAD:
    case FIELD_HOOKS:
        break;
    }
    return true;
}

/* The value at hand, to its place; what has fields of its own is walked there. */
static bool read(const struct target *t)
{
    struct json_value v;

    if (t->field->kind == FIELD_PAYLOAD) {
        return payload_facts_decode(t->reader, (void *)t->at, t->arena, t->err);
    }
    if (t->field->kind == FIELD_HOOKS) {
        return hooks_decode(t->reader, (void *)(t->at - t->field->offset), t->arena, t->err);
    }
    return payload_take(t->reader, &v) && store(t, v);
}

static bool take(const struct field *row, struct target *t, void *record)
{
    t->field = row;
    t->at = (char *)record + row->offset;
    if (!read(t)) {
        return false;
    }
    if (row->has > 0) {
        *(bool *)((char *)record + row->has) = true;
    }
    return true;
}

bool fields_decode(const struct fields *f, struct payload_reader *r, void *record, struct arena *a,
                   struct err *err)
{
    struct fields_walk w = { .f = f, .r = r };
    struct target t = { .fields = f, .reader = r, .arena = a, .err = err };
    const struct field *row;
    struct json_value unknown;

    if (!payload_enter(r, JSON_KIND_OBJECT)) {
        return !r->failed && err_set(err, ERR_INVALID, "an object is expected");
    }
    while (fields_next(&w, &row)) {
        if (!(row ? take(row, &t, record) : payload_take(r, &unknown))) {
            return false;
        }
    }
    return !r->failed && fields_opened(&w, err);
}
