#include "collector/record/decode.h"

#include "collector/record/fields.h"

enum { OLDEST_SCHEMA = RECORD_SCHEMA > 1 ? RECORD_SCHEMA - 1 : 1 };

/* No record's time; 0 is one: a clock that was never set begins at 1970. */
#define NO_TIME_US INT64_MIN

static bool check_schema(struct json_value record, struct err *err)
{
    int64_t schema;

    if (!payload_integer(payload_get(record, SLICE("schema")), &schema)) {
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

/* The record as an object whose schema we read, and its type. */
static bool open_record(struct slice json, enum record_type *ret_type, struct json_value *ret,
                        struct err *err)
{
    struct json_value record;

    if (!payload_check(json, &record, err)) {
        return false;
    }
    if (record.kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "a record is an object");
    }

    struct json_value name = payload_get(record, SLICE("type"));

    for (enum record_type type = RECORD_NONE + 1; type < RECORD_TYPE_COUNT; type++) {
        if (payload_string_is(name.raw, slice_from_cstr(record_type_name(type)))) {
            *ret_type = type;
            *ret = record;
            return check_schema(record, err);
        }
    }
    return err_set(err, ERR_INVALID, "type: a type that this version does not know");
}

static bool check_head(const struct record_head *head, struct err *err)
{
    if (!id_valid(head->id)) {
        return err_set(err, ERR_INVALID, "id: a UUID is expected");
    }
    if (head->time_us == NO_TIME_US) {
        return err_set(err, ERR_INVALID, "time: is missing");
    }
    return true;
}

/* As open_record(), where the type is known. */
static bool open_as(enum record_type expected, struct slice json, struct json_value *ret,
                    struct err *err)
{
    enum record_type type;

    if (!open_record(json, &type, ret, err)) {
        return false;
    }
    if (type != expected) {
        return err_set(err, ERR_INVALID, "type: %s where %s is expected", record_type_name(type),
                       record_type_name(expected));
    }
    return true;
}

/* Fill a record, which begins with its head, from its object. */
static bool fill(const struct fields *f, struct json_value object, struct arena *a, void *ret,
                 struct err *err)
{
    struct record_head *head = ret;

    head->time_us = NO_TIME_US;
    return fields_decode(f, &object, ret, a, err) && check_head(head, err);
}

bool decode_head(struct slice json, struct arena *a, enum record_type *ret_type,
                 struct record_head *ret, struct err *err)
{
    struct fields head_fields = { .rows = evaluation_fields.rows, .n = HEAD_FIELDS };
    struct record_head head = { 0 };
    struct json_value object;
    enum record_type type;

    if (!open_record(json, &type, &object, err) || !fill(&head_fields, object, a, &head, err)) {
        return false;
    }
    *ret_type = type;
    *ret = head;
    return true;
}

static bool evaluation(const struct fields *f, struct slice json, struct arena *a,
                       struct evaluation *ret, struct err *err)
{
    struct evaluation e = { 0 };
    struct json_value object;

    if (!open_as(RECORD_HOOK_EVALUATION, json, &object, err) || !fill(f, object, a, &e, err)) {
        return false;
    }
    if (!e.hooks) {
        return err_set(err, ERR_INVALID, "hooks: a list is expected");
    }
    *ret = e;
    return true;
}

bool decode_evaluation(struct slice json, struct arena *a, struct evaluation *ret, struct err *err)
{
    return evaluation(&evaluation_fields, json, a, ret, err);
}

bool decode_evaluation_outline(struct slice json, struct arena *a, struct evaluation *ret,
                               struct err *err)
{
    return evaluation(&evaluation_outline_fields, json, a, ret, err);
}

static bool tool_execution(const struct fields *f, struct slice json, struct arena *a,
                           struct tool_execution *ret, struct err *err)
{
    struct tool_execution t = { 0 };
    struct json_value object;

    if (!open_as(RECORD_TOOL_EXECUTION, json, &object, err) || !fill(f, object, a, &t, err)) {
        return false;
    }
    *ret = t;
    return true;
}

bool decode_tool_execution(struct slice json, struct arena *a, struct tool_execution *ret,
                           struct err *err)
{
    return tool_execution(&tool_execution_fields, json, a, ret, err);
}

bool decode_tool_outline(struct slice json, struct arena *a, struct tool_execution *ret,
                         struct err *err)
{
    return tool_execution(&tool_execution_outline_fields, json, a, ret, err);
}

bool decode_hook_registry(struct slice json, struct arena *a, struct hook_registry *ret,
                          struct err *err)
{
    struct hook_registry r = { 0 };
    struct json_value object;

    if (!open_as(RECORD_HOOK_REGISTRY, json, &object, err) ||
        !fill(&hook_registry_fields, object, a, &r, err)) {
        return false;
    }
    *ret = r;
    return true;
}

bool decode_gap(struct slice json, struct arena *a, struct gap *ret, struct err *err)
{
    struct gap g = { 0 };
    struct json_value object;

    if (!open_as(RECORD_GAP, json, &object, err) || !fill(&gap_fields, object, a, &g, err)) {
        return false;
    }
    *ret = g;
    return true;
}

bool decode_admin(struct slice json, struct arena *a, struct admin *ret, struct err *err)
{
    struct admin admin = { 0 };
    struct json_value object;

    if (!open_as(RECORD_ADMIN, json, &object, err) ||
        !fill(&admin_fields, object, a, &admin, err)) {
        return false;
    }
    *ret = admin;
    return true;
}
