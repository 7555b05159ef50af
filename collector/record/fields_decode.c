#include <string.h>

#include "collector/base/clock.h"
#include "collector/record/fields.h"

/* Where the value of one field goes, and what may go wrong on the way. */
struct target {
    const struct field *field;
    char *at;
    bool outline; /* of hooks, too, nothing else is filled */
    struct arena *arena;
    struct err *err;
};

static struct slice key_of(const struct field *f)
{
    return (struct slice){ .ptr = f->lead.ptr + 2, .len = f->lead.len - 4 };
}

static bool refuse(const struct target *t, const char *what)
{
    return err_set(t->err, ERR_INVALID, "%" SLICE_FMT ": %s", SLICE_ARG(key_of(t->field)), what);
}

static bool text(const struct target *t, struct json_value v, struct slice *ret)
{
    if (v.kind != JSON_KIND_STRING) {
        return refuse(t, "a string is expected");
    }
    if (!payload_string(v.raw, t->arena, ret, NULL)) {
        return err_set(t->err, ERR_TOO_BIG, "%" SLICE_FMT ": the texts are too long",
                       SLICE_ARG(key_of(t->field)));
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

static bool store_json(const struct target *t, struct json_value *v)
{
    if (t->field->kind == FIELD_ARRAY && v->kind != JSON_KIND_ARRAY) {
        return refuse(t, "a list is expected");
    }
    if (t->field->kind == FIELD_OBJECT && v->kind != JSON_KIND_OBJECT) {
        return refuse(t, "an object is expected");
    }
    payload_close(v);
    memcpy(t->at, &v->raw, sizeof(v->raw));
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

/* A container may be open: then it is walked or closed here. */
static bool store(const struct target *t, struct json_value *v)
{
    switch (t->field->kind) {
    case FIELD_TEXT:
    case FIELD_REASON:
        return store_text(t, *v);
    case FIELD_JSON:
    case FIELD_ARRAY:
    case FIELD_OBJECT:
        return store_json(t, v);
    case FIELD_REASON_CHARS: {
        struct target chars = *t;

        chars.at += offsetof(struct cut_text, chars);
        return store_integer(&chars, *v, 0, INT64_MAX);
    }
    case FIELD_WORD:
        return store_word(t, *v);
    case FIELD_BOOL:
        return store_bool(t, *v);
    case FIELD_U32:
        return store_integer(t, *v, 0, UINT32_MAX);
    case FIELD_U64:
        return store_integer(t, *v, 0, INT64_MAX);
    case FIELD_I32:
        return store_integer(t, *v, INT32_MIN, INT32_MAX);
    case FIELD_I64:
        return store_integer(t, *v, INT64_MIN, INT64_MAX);
    case FIELD_TIME:
        return store_time(t, *v);
    case FIELD_PAYLOAD:
        return payload_facts_decode(v, (void *)t->at, t->arena, t->err);
    case FIELD_HOOKS:
        return hooks_decode(v, (void *)(t->at - t->field->offset), t->outline, t->arena, t->err);
    }
    return true;
}

/* A walk of an object's members, and where in the table the next of them is expected. */
struct walk {
    const struct fields *f;
    struct payload_iter it;
    size_t next;
};

static bool is_key(const struct field *f, struct slice raw)
{
    struct slice quoted = { .ptr = f->lead.ptr + 1, .len = f->lead.len - 2 };

    return slice_equal(quoted, raw);
}

/* The row of a key; none: NULL. The search begins behind the last hit. */
static const struct field *find(struct walk *w, struct slice raw)
{
    for (size_t i = 0; i < w->f->n; i++) {
        size_t k = w->next + i < w->f->n ? w->next + i : w->next + i - w->f->n;

        if (is_key(&w->f->rows[k], raw)) {
            w->next = k + 1;
            return &w->f->rows[k];
        }
    }
    return NULL;
}

/* Our writer keeps the order of the table, and leaves out what there is not. */
static const struct field *next_expected(struct walk *w, struct json_value *ret)
{
    enum { LEFT_OUT = 3 };

    for (size_t k = w->next; k < w->f->n && k <= w->next + LEFT_OUT; k++) {
        struct slice lead = w->f->rows[k].lead;

        lead = (struct slice){ .ptr = lead.ptr + 1, .len = lead.len - 1 };
        if (payload_next_is(&w->it, lead, ret)) {
            w->next = k + 1;
            return &w->f->rows[k];
        }
    }
    return NULL;
}

/* The next member and its row (NULL: a key that is not known). False at the end. */
static bool next_member(struct walk *w, const struct field **ret_row, struct json_value *ret)
{
    struct slice key;

    *ret_row = next_expected(w, ret);
    if (*ret_row) {
        return true;
    }
    if (!payload_next_open(&w->it, &key, ret)) {
        return false;
    }
    *ret_row = find(w, key);
    return true;
}

/* Of a key that is known, the first time: false with an error. */
static bool take(const struct field *row, struct target *t, void *record, struct json_value *v)
{
    t->field = row;
    t->at = (char *)record + row->offset;
    if (!store(t, v)) {
        return false;
    }
    if (row->has > 0) {
        *(bool *)((char *)record + row->has) = true;
    }
    return true;
}

bool fields_decode(const struct fields *f, struct json_value *object, void *record, struct arena *a,
                   struct err *err)
{
    struct walk w = { .f = f, .it = payload_iter(*object) };
    struct target t = { .outline = f->outline, .arena = a, .err = err };
    const struct field *row;
    struct json_value value;
    uint64_t seen = 0; /* a bit a row */

    while (next_member(&w, &row, &value)) {
        uint64_t bit = row ? 1ULL << (row - f->rows) : 0;

        if (!row || (seen & bit) != 0 || (f->outline && !row->outline)) {
            payload_close(&value);
        } else if (!take(row, &t, record, &value)) {
            return false;
        }
        seen |= bit;
        payload_pass(&w.it, value);
    }
    object->raw.len = payload_walked(*object, &w.it);
    return true;
}
