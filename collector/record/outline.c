#include "collector/record/outline.h"

#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/id.h"
#include "collector/record/fields.h"
#include "collector/record/payload_scan.h"

enum { NO_ORDINAL = -1 };

/* What is read at the moment. */
struct outlining {
    struct payload_reader reader;
    struct arena *arena;
    struct err *err;
    struct buf *identity; /* NULL: the record derives no rows */
    struct slice run;     /* members that go there and stand side by side */
    bool id_added;        /* the evaluation's id is there */
    bool listed;          /* there is a list of hooks */
    size_t cap;           /* of the hooks that ran */
    struct outline *to;
};

static bool refuse(const struct outlining *o, const char *what)
{
    return err_set(o->err, ERR_INVALID, "%s", what);
}

static bool too_big(const struct outlining *o)
{
    return err_set(o->err, ERR_TOO_BIG, "the record's texts are too long");
}

/* ---- Hooks ------------------------------------------------------------------------------ */

/* What is known of the hook at hand. */
struct facts {
    int64_t ordinal; /* NO_ORDINAL: none was there */
    bool ran;
};

static bool take_fact(struct outlining *o, enum outline_part part, struct facts *h)
{
    struct json_value v;

    if (!payload_take(&o->reader, &v)) {
        return false;
    }
    if (part == OUTLINE_ORDINAL && !payload_integer(v, &h->ordinal)) {
        h->ordinal = NO_ORDINAL;
    }
    if (part == OUTLINE_DECISION) {
        h->ran = !payload_string_is(v.raw, slice_from_cstr(decision_name(DECISION_SKIPPED)));
    }
    return true;
}

static bool take_facts(struct outlining *o, struct facts *h)
{
    struct fields_walk w = { .f = &execution_fields, .r = &o->reader };
    const struct field *row;

    if (!payload_enter(&o->reader, JSON_KIND_OBJECT)) {
        return !o->reader.failed && refuse(o, "hooks: an object is expected");
    }
    while (fields_next(&w, &row)) {
        if (!take_fact(o, row ? row->outline : OUTLINE_NONE, h)) {
            return false;
        }
    }
    return !o->reader.failed;
}

/* A place in the list. NULL at the limit. */
static struct outline_hook *new_hook(struct outlining *o)
{
    struct outline *to = o->to;

    if (to->n_ran == o->cap) {
        struct outline_hook *list = arena_grow(o->arena, to->ran, &o->cap, sizeof(*list));

        if (!list) {
            return NULL;
        }
        to->ran = list;
    }
    return &to->ran[to->n_ran++];
}

/* Into the list when it ran; its row is known by its ordinal. */
static bool take_hook(struct outlining *o)
{
    struct facts facts = { .ordinal = NO_ORDINAL, .ran = true };
    const char *first = o->reader.at;
    struct outline_hook *hook;

    if (!take_facts(o, &facts)) {
        return false;
    }
    if (!facts.ran) {
        return true;
    }
    if (facts.ordinal < 0 || facts.ordinal > UINT32_MAX) {
        return refuse(o, "hooks: ordinal: a number is expected");
    }
    hook = new_hook(o);
    if (!hook) {
        return too_big(o);
    }
    hook->ordinal = (uint32_t)facts.ordinal;
    hook->json = (struct slice){ .ptr = first, .len = (size_t)(o->reader.at - first) };
    return true;
}

static bool take_hooks(struct outlining *o)
{
    if (!payload_enter(&o->reader, JSON_KIND_ARRAY)) {
        return !o->reader.failed && refuse(o, "hooks: a list is expected");
    }
    o->listed = true;
    while (payload_item(&o->reader)) {
        if (!take_hook(o)) {
            return false;
        }
    }
    return !o->reader.failed;
}

/* ---- Identity --------------------------------------------------------------------------- */

static void end_run(struct outlining *o)
{
    buf_add(o->identity, o->run);
    o->run = (struct slice){ 0 };
}

/* The evaluation's id, behind the head; at the end where that came late. Once. */
static void add_evaluation_id(struct outlining *o)
{
    if (o->id_added || o->to->id.len == 0) {
        return;
    }
    end_run(o);
    buf_add(o->identity, SLICE(",\"evaluation_id\":"));
    buf_add_json_string(o->identity, o->to->id);
    o->id_added = true;
}

/* One more member, from the comma before it on. */
static void add_identity(struct outlining *o, bool of_head, struct slice member)
{
    member = payload_skip_blanks(member);
    if (!of_head) {
        add_evaluation_id(o);
    }
    if (o->run.len > 0 && o->run.ptr + o->run.len == member.ptr) {
        o->run.len += member.len;
        return;
    }
    end_run(o);
    if (member.ptr[0] != ',') {
        buf_add_char(o->identity, ','); /* the object's first one has none */
    }
    o->run = member;
}

/* ---- The record ------------------------------------------------------------------------- */

static struct slice *text_of(struct outline *to, enum outline_part part)
{
    switch (part) {
    case OUTLINE_TYPE:
        return &to->type;
    case OUTLINE_ID:
        return &to->id;
    case OUTLINE_COLLECTOR:
        return &to->collector;
    case OUTLINE_TIME:
        return &to->time;
    case OUTLINE_THREAD_ID:
        return &to->thread_id;
    case OUTLINE_TASK_RUN_ID:
        return &to->task_run_id;
    case OUTLINE_USER_ID:
        return &to->user_id;
    case OUTLINE_NONE:
    case OUTLINE_ORDINAL:
    case OUTLINE_DECISION:
        break;
    }
    return NULL;
}

/* Of what derives no rows any type and schema may pass. */
static bool check_opening(const struct outlining *o, const struct fields *f,
                          const struct field *row, struct json_value v)
{
    if (f->type == RECORD_NONE) {
        return true;
    }
    if (row->kind == FIELD_TYPE) {
        return fields_check_type(f, v, NULL, o->err);
    }
    return row->kind != FIELD_SCHEMA || fields_check_schema(v, o->err);
}

/* The value of a member, and its text where the outline has it. */
static bool take_text(struct outlining *o, const struct fields *f, const struct field *row)
{
    struct slice *text = text_of(o->to, row->outline);
    struct json_value v;

    if (!payload_take(&o->reader, &v) || !check_opening(o, f, row, v)) {
        return false;
    }
    if (text && v.kind != JSON_KIND_STRING) {
        return err_set(o->err, ERR_INVALID, "%" SLICE_FMT ": a string is expected",
                       SLICE_ARG(field_key(row)));
    }
    return !text || payload_string(v.raw, o->arena, text, NULL) || too_big(o);
}

static bool take_member(struct outlining *o, const struct fields_walk *w, const struct field *row,
                        const char *first)
{
    struct json_value unknown;

    if (!row) {
        return payload_take(&o->reader, &unknown);
    }
    if (row->kind == FIELD_HOOKS) {
        return take_hooks(o);
    }
    if (!take_text(o, w->f, row)) {
        return false;
    }
    if (o->identity && row->identity) {
        const struct slice member = { .ptr = first, .len = (size_t)(o->reader.at - first) };

        add_identity(o, row < w->f->rows + HEAD_FIELDS, member);
    }
    return true;
}

static bool take_record(struct outlining *o, const struct fields *f)
{
    struct fields_walk w = { .f = f, .r = &o->reader };
    const struct field *row;

    if (!payload_enter(&o->reader, JSON_KIND_OBJECT)) {
        return !o->reader.failed && refuse(o, "a record is an object");
    }
    for (const char *first = o->reader.at; fields_next(&w, &row); first = o->reader.at) {
        if (!take_member(o, &w, row, first)) {
            return false;
        }
    }
    return payload_reader_done(&o->reader) && fields_opened(&w, o->err);
}

static bool check(struct outlining *o)
{
    int64_t time_us;

    if (!id_valid(o->to->id)) {
        return refuse(o, "id: a UUID is expected");
    }
    if (!clock_parse(o->to->time, &time_us)) {
        return refuse(o, "time: an RFC 3339 time is expected");
    }
    if (!o->identity) {
        return true;
    }
    if (!o->listed) {
        return refuse(o, "hooks: a list is expected");
    }
    add_evaluation_id(o);
    end_run(o);
    return buf_ok(o->identity) || too_big(o);
}

static bool read(struct outlining *o, struct slice json, const struct fields *f)
{
    payload_reader_init(&o->reader, json, o->err);
    return take_record(o, f) && check(o);
}

bool outline_read(struct slice json, enum record_type type, struct arena *a, struct buf *identity,
                  struct outline *ret, struct err *err)
{
    struct outlining o = { .arena = a, .err = err, .to = ret };

    *ret = (struct outline){ 0 };
    switch (type) {
    case RECORD_HOOK_EVALUATION:
        o.identity = identity;
        buf_clear(identity);
        return read(&o, json, &evaluation_fields);
    case RECORD_TOOL_EXECUTION:
        return read(&o, json, &tool_execution_fields);
    case RECORD_NONE:
    case RECORD_HOOK_REGISTRY:
    case RECORD_GAP:
    case RECORD_CHECKPOINT:
    case RECORD_ADMIN:
    case RECORD_TYPE_COUNT:
        break;
    }
    return read(&o, json, &head_fields);
}
