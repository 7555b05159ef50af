#include "collector/record/decode.h"

#include "collector/record/fields.h"

/* No record's time; 0 is one: a clock that was never set begins at 1970. */
#define NO_TIME_US INT64_MIN

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

/* A whole record, which begins with its head. */
static bool record(const struct fields *f, struct slice json, struct arena *a, void *ret,
                   struct err *err)
{
    struct record_head *head = ret;
    struct payload_reader r;

    payload_reader_init(&r, json, err);
    if (payload_kind(&r) != JSON_KIND_OBJECT) {
        struct json_value v;

        return payload_take(&r, &v) && err_set(err, ERR_INVALID, "a record is an object");
    }
    head->time_us = NO_TIME_US;
    return fields_decode(f, &r, ret, a, err) && payload_reader_done(&r) && check_head(head, err);
}

bool decode_head(struct slice json, struct arena *a, enum record_type *ret_type,
                 struct record_head *ret, struct err *err)
{
    struct any_record any = { 0 };

    if (!record(&head_fields, json, a, &any, err)) {
        return false;
    }
    *ret_type = any.type;
    *ret = any.head;
    return true;
}

bool decode_evaluation(struct slice json, struct arena *a, struct evaluation *ret, struct err *err)
{
    struct evaluation e = { 0 };

    if (!record(&evaluation_fields, json, a, &e, err)) {
        return false;
    }
    if (!e.hooks) {
        return err_set(err, ERR_INVALID, "hooks: a list is expected");
    }
    *ret = e;
    return true;
}

bool decode_tool_execution(struct slice json, struct arena *a, struct tool_execution *ret,
                           struct err *err)
{
    struct tool_execution t = { 0 };

    if (!record(&tool_execution_fields, json, a, &t, err)) {
        return false;
    }
    *ret = t;
    return true;
}

bool decode_hook_registry(struct slice json, struct arena *a, struct hook_registry *ret,
                          struct err *err)
{
    struct hook_registry r = { 0 };

    if (!record(&hook_registry_fields, json, a, &r, err)) {
        return false;
    }
    *ret = r;
    return true;
}

bool decode_gap(struct slice json, struct arena *a, struct gap *ret, struct err *err)
{
    struct gap g = { 0 };

    if (!record(&gap_fields, json, a, &g, err)) {
        return false;
    }
    *ret = g;
    return true;
}

bool decode_admin(struct slice json, struct arena *a, struct admin *ret, struct err *err)
{
    struct admin admin = { 0 };

    if (!record(&admin_fields, json, a, &admin, err)) {
        return false;
    }
    *ret = admin;
    return true;
}
