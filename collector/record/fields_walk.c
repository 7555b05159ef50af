/* Walking an object by its table, and what a record says first of itself. */
#include "collector/record/fields.h"

enum { OLDEST_SCHEMA = RECORD_SCHEMA > 1 ? RECORD_SCHEMA - 1 : 1 };

struct slice field_key(const struct field *f)
{
    return (struct slice){ .ptr = f->lead.ptr + 2, .len = f->lead.len - 4 };
}

static bool is_key(const struct field *f, struct slice raw)
{
    struct slice quoted = { .ptr = f->lead.ptr + 1, .len = f->lead.len - 2 };

    return slice_equal(quoted, raw);
}

/* The row of a key; none: NULL. The search begins behind the last hit. */
static const struct field *find(const struct fields_walk *w, struct slice raw)
{
    for (size_t i = 0; i < w->f->n; i++) {
        size_t k = w->next + i < w->f->n ? w->next + i : w->next + i - w->f->n;

        if (is_key(&w->f->rows[k], raw)) {
            return &w->f->rows[k];
        }
    }
    return NULL;
}

/* Our writer keeps the order of the table, and leaves out what there is not. */
static const struct field *next_expected(const struct fields_walk *w)
{
    enum { LOOK_AT = 5 };

    const struct field *row = w->f->rows + w->next;
    size_t left = w->f->n - w->next;
    const struct field *end = row + (left < LOOK_AT ? left : LOOK_AT);
    const char *name = payload_ahead(w->r);

    for (; name && row < end; row++) {
        const char *key = row->lead.ptr + 2;

        if (key[0] == name[0] && key[1] == name[1] && payload_member_is(w->r, row->lead)) {
            return row;
        }
    }
    return NULL;
}

/* The same row, the first time that its key stands there. */
static const struct field *first_time(struct fields_walk *w, const struct field *row)
{
    size_t k = (size_t)(row - w->f->rows);
    bool again = (w->seen >> k & 1) != 0;

    w->next = k + 1;
    w->seen |= 1ULL << k;
    return again ? NULL : row;
}

/* Any member. Where it has a row, that is in *ret_row. */
OUT_OF_LINE static bool next_unexpected(struct fields_walk *w, const struct field **ret_row)
{
    struct slice key;

    if (!payload_member(w->r, &key)) {
        return false;
    }
    *ret_row = find(w, key);
    return true;
}

bool fields_next(struct fields_walk *w, const struct field **ret_row)
{
    const struct field *row = next_expected(w);

    if (!row && !next_unexpected(w, &row)) {
        return false;
    }
    *ret_row = row ? first_time(w, row) : NULL;
    return true;
}

static bool is_type(struct json_value v, enum record_type type)
{
    return payload_string_is(v.raw, slice_from_cstr(record_type_name(type)));
}

static enum record_type type_of(struct json_value v)
{
    enum record_type type = RECORD_NONE + 1;

    while (type < RECORD_TYPE_COUNT && !is_type(v, type)) {
        type++;
    }
    return type;
}

bool fields_check_type(const struct fields *f, struct json_value v, enum record_type *ret_type,
                       struct err *err)
{
    enum record_type type;

    if (f->type != RECORD_NONE && is_type(v, f->type)) {
        return true;
    }
    type = type_of(v);
    if (type == RECORD_TYPE_COUNT) {
        return err_set(err, ERR_INVALID, "type: a type that this version does not know");
    }
    if (f->type != RECORD_NONE) {
        return err_set(err, ERR_INVALID, "type: %s where %s is expected", record_type_name(type),
                       record_type_name(f->type));
    }
    *ret_type = type;
    return true;
}

bool fields_check_schema(struct json_value v, struct err *err)
{
    int64_t schema;

    if (!payload_integer(v, &schema)) {
        return err_set(err, ERR_INVALID, "schema: an integer is expected");
    }
    if (schema > RECORD_SCHEMA) {
        return err_set(err, ERR_INVALID, "schema: %lld is newer than this program reads (%d)",
                       (long long)schema, RECORD_SCHEMA);
    }
    if (schema < OLDEST_SCHEMA) {
        return err_set(err, ERR_INVALID, "schema: %lld is older than this program reads (%d)",
                       (long long)schema, OLDEST_SCHEMA);
    }
    return true;
}

bool fields_opened(const struct fields_walk *w, struct err *err)
{
    if (w->f->rows[0].kind != FIELD_TYPE) {
        return true; /* no record, but an object inside one */
    }
    if ((w->seen & 1) == 0) {
        return err_set(err, ERR_INVALID, "type: is missing");
    }
    return (w->seen & 2) != 0 || err_set(err, ERR_INVALID, "schema: an integer is expected");
}
