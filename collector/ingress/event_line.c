#include "collector/ingress/event_line.h"

#include "collector/base/clock.h"
#include "collector/base/id.h"
#include "collector/record/decode.h"
#include "collector/record/encode.h"
#include "collector/record/fields.h"
#include "collector/recorder/redact.h"

enum {
    COMPLETED_MAX_BYTES = 2 * RECORD_MAX_BYTES, /* a line before redaction */
    VALUE_MAX_BYTES = 64 * 1024,                /* of a tool's input or output that is kept */
    CLEAN_MAX_BYTES = 2 * VALUE_MAX_BYTES,      /* redaction may lengthen a value */
    KEY_SHOWN = 64,
};

/* ---- Which keys there are --------------------------------------------------- */

static bool has_key(const struct fields *f, struct slice raw_key)
{
    for (size_t i = 0; i < f->n; i++) {
        struct slice lead = f->rows[i].lead; /* ,"key": */
        struct slice quoted = { .ptr = lead.ptr + 1, .len = lead.len - 2 };

        if (slice_equal(quoted, raw_key)) {
            return true;
        }
    }
    return false;
}

static bool is_one_of(struct slice raw_key, const char *const *keys)
{
    for (; *keys; keys++) {
        if (payload_string_is(raw_key, slice_from_cstr(*keys))) {
            return true;
        }
    }
    return false;
}

static bool check_keys(struct json_value record, const struct fields *f, struct err *err)
{
    /* They stand in no table: the encoder makes them, or of another key. */
    static const char *const both[] = { "type", "schema", NULL };
    static const char *const evaluation[] = { "payload", "hooks", "reason_truncated", NULL };
    struct payload_iter it = payload_iter(record);
    struct json_value value;
    struct slice key;

    while (payload_next(&it, &key, &value)) {
        if (!has_key(f, key) && !is_one_of(key, both) &&
            !(f == &evaluation_fields && is_one_of(key, evaluation))) {
            return err_set(err, ERR_INVALID, "%.*s: this record has no such key",
                           key.len < KEY_SHOWN ? (int)key.len : KEY_SHOWN, key.ptr);
        }
    }
    return true;
}

/* ---- What is filled in ------------------------------------------------------ */

static void complete(struct json_value record, struct slice key, struct slice value,
                     struct buf *out)
{
    if (payload_get(record, key).kind == JSON_KIND_NONE) {
        buf_add_char(out, ',');
        buf_add_json_string(out, key);
        buf_add_char(out, ':');
        buf_add(out, value);
    }
}

static void complete_text(struct json_value record, struct slice key, const char *text,
                          struct buf *out)
{
    CLEANUP(buf_done) struct buf quoted;

    buf_init(&quoted, COMPLETED_MAX_BYTES);
    buf_add_json_string(&quoted, slice_from_cstr(text));
    complete(record, key, buf_slice(&quoted), out);
}

/* The line with what is absent added at its end: of two equal keys the first counts. */
static bool complete_all(struct json_value record, bool tool, const char *collector,
                         struct buf *out, struct err *err)
{
    char now[CLOCK_TEXT_SIZE];
    const struct id id = id_new();

    clock_format(clock_now_us(), now);
    /* "type" has been found, so there is a member before what is added. */
    buf_add(out, (struct slice){ .ptr = record.raw.ptr, .len = record.raw.len - 1 });
    complete(record, SLICE("schema"), SLICE("1"), out);
    complete_text(record, SLICE("id"), id.text, out);
    complete_text(record, SLICE("collector"), collector, out);
    complete_text(record, SLICE("time"), now, out);
    complete_text(record, SLICE("source"), "host", out);
    if (!tool) {
        complete(record, SLICE("hooks"), SLICE("[]"), out);
    }
    buf_add_char(out, '}');
    if (!buf_ok(out)) {
        return err_set(err, ERR_TOO_BIG, "the line is longer than %d bytes", COMPLETED_MAX_BYTES);
    }
    return true;
}

/* ---- What is asked of a record ---------------------------------------------- */

static bool require(struct slice text, const char *key, struct err *err)
{
    return text.len > 0 ? true : err_set(err, ERR_INVALID, "%s: is missing", key);
}

static bool require_host(enum record_source source, struct err *err)
{
    return source == SOURCE_HOST ? true : err_set(err, ERR_INVALID, "source: must be \"host\"");
}

/* A host speaks for itself, and not for another machine. */
static bool check_head(const struct record_head *head, const char *collector, struct err *err)
{
    return slice_equal(head->collector, slice_from_cstr(collector))
               ? true
               : err_set(err, ERR_INVALID, "collector: must be \"%s\", whom the line was sent to",
                         collector);
}

static bool check_tool(const struct tool_execution *t, struct err *err)
{
    if (t->phase == PHASE_NONE) {
        return err_set(err, ERR_INVALID, "phase: must be \"start\" or \"end\"");
    }
    return require_host(t->source, err) && require(t->thread_id, "thread_id", err) &&
           require(t->tool_name, "tool_name", err);
}

/* Of one chain, or of one hook; years of it would be a fault of the host's clock. */
static bool check_duration(int64_t us, const char *key, struct err *err)
{
    static const int64_t most_us = 366LL * 86400 * 1000000;

    if (us < 0 || us > most_us) {
        return err_set(err, ERR_INVALID, "%s: must be from 0 to %lld", key, (long long)most_us);
    }
    return true;
}

static bool check_hooks(const struct evaluation *e, struct err *err)
{
    for (size_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].hook_name.len == 0) {
            return err_set(err, ERR_INVALID, "hooks[%zu].hook_name: is missing", i);
        }
        if (e->hooks[i].decision == DECISION_NONE) {
            return err_set(err, ERR_INVALID, "hooks[%zu].decision: is missing", i);
        }
        if (!check_duration(e->hooks[i].duration_us, "hooks: duration_us", err) ||
            !check_duration(e->hooks[i].queue_us, "hooks: queue_us", err)) {
            return false;
        }
        e->hooks[i].ordinal = (uint32_t)i;
    }
    return true;
}

static bool check_evaluation(const struct evaluation *e, struct err *err)
{
    if (e->final_decision == DECISION_NONE || e->final_decision == DECISION_SKIPPED) {
        return err_set(err, ERR_INVALID, "final_decision: must be a decision of a chain");
    }
    return check_duration(e->duration_us, "duration_us", err) &&
           check_duration(e->queue_us, "queue_us", err) && require_host(e->source, err) &&
           require(e->contract, "contract", err) && require(e->thread_id, "thread_id", err) &&
           require(e->hook_event_type, "hook_event_type", err) && check_hooks(e, err);
}

/* What a list tells of the counts; a hook of another loop is listed, and not configured. */
static void count_listed(const struct evaluation *e, struct evaluation *ret)
{
    uint32_t *const of_tier[TIER_COUNT] = {
        [TIER_SYSTEM] = &ret->system_hooks_run,
        [TIER_AGENT] = &ret->agent_hooks_run,
        [TIER_USER_GLOBAL] = &ret->user_global_hooks_run,
    };

    ret->hooks_configured = e->hooks_unlisted;
    for (size_t i = 0; i < e->n_hooks; i++) {
        const struct execution *x = &e->hooks[i];
        uint32_t *tier = of_tier[x->tier];

        if (x->decision == DECISION_SKIPPED) {
            ret->hooks_configured += x->skip_reason == SKIP_SCOPE ? 0 : 1;
            continue;
        }
        ret->hooks_configured++;
        ret->hooks_run++;
        *(tier ? tier : &ret->user_global_hooks_run) += 1;
        ret->rejection_count += x->decision == DECISION_REJECT ? 1 : 0;
    }
}

/* The counts that the host left out: from its list, which need not have all that ran. */
static bool complete_counts(struct evaluation *e, struct err *err)
{
    struct evaluation listed = { 0 };

    count_listed(e, &listed);
    if (e->hooks_run == 0) {
        e->hooks_run = listed.hooks_run;
        e->system_hooks_run = listed.system_hooks_run;
        e->agent_hooks_run = listed.agent_hooks_run;
        e->user_global_hooks_run = listed.user_global_hooks_run;
    }
    if (e->rejection_count == 0) {
        e->rejection_count = listed.rejection_count;
    }
    if (e->hooks_configured == 0) {
        e->hooks_configured =
            listed.hooks_configured > e->hooks_run ? listed.hooks_configured : e->hooks_run;
    }
    return e->hooks_configured >= e->hooks_run
               ? true
               : err_set(err, ERR_INVALID, "hooks_configured: is less than hooks_run");
}

/* ---- Redaction -------------------------------------------------------------- */

/* A failure leaves nothing of the text. */
static void redact_in_place(struct slice *text, struct arena *a, uint32_t *erased)
{
    struct slice clean = SLICE("[redacted]");

    if (text->len > 0) {
        if (!redact_text(*text, a, &clean, erased)) {
            (*erased)++;
        }
        *text = clean;
    }
}

static bool redact_value(struct slice *json, struct arena *a, uint32_t *erased, struct err *err)
{
    CLEANUP(buf_done) struct buf clean;
    struct json_value v;

    buf_init(&clean, CLEAN_MAX_BYTES);
    if (json->len == 0) {
        return true;
    }
    if (!payload_check(*json, &v, err)) {
        return false;
    }
    redact_json(v, VALUE_MAX_BYTES, &clean, erased);
    if (!arena_dup(a, buf_slice(&clean), json)) {
        return err_set(err, ERR_TOO_BIG, "the request's records take too much memory");
    }
    return true;
}

/*
 * What a host writes freely: every text and every JSON of the table's rows. Words
 * and numbers are no place for a secret; a plain id has the shape of none.
 */
static bool redact_fields(const struct fields *f, void *object, struct arena *a, uint32_t *erased,
                          struct err *err)
{
    for (size_t i = 0; i < f->n; i++) {
        struct slice *text = (void *)((char *)object + f->rows[i].offset);

        switch (f->rows[i].kind) {
        case FIELD_TEXT:
            redact_in_place(text, a, erased);
            break;
        case FIELD_REASON: /* begins with its text */
            redact_in_place(&((struct cut_text *)(void *)text)->text, a, erased);
            break;
        case FIELD_JSON:
        case FIELD_ARRAY:
        case FIELD_OBJECT:
            if (!redact_value(text, a, erased, err)) {
                return false;
            }
            break;
        case FIELD_REASON_CHARS:
        case FIELD_WORD:
        case FIELD_BOOL:
        case FIELD_U32:
        case FIELD_U64:
        case FIELD_I32:
        case FIELD_I64:
        case FIELD_TIME:
        case FIELD_PAYLOAD:
        case FIELD_HOOKS:
        case FIELD_TYPE:
        case FIELD_SCHEMA:
            break;
        }
    }
    return true;
}

static bool read_tool(struct slice json, const char *collector, struct arena *a, struct buf *out,
                      struct err *err)
{
    struct tool_execution t;
    uint32_t erased = 0;

    if (!decode_tool_execution(json, a, &t, err) || !check_head(&t.head, collector, err) ||
        !check_tool(&t, err) || !redact_fields(&tool_execution_fields, &t, a, &erased, err)) {
        return false;
    }
    encode_tool_execution(&t, out);
    return true;
}

static bool read_evaluation(struct slice json, const char *collector, struct arena *a,
                            struct buf *out, struct err *err)
{
    struct evaluation e;
    uint32_t erased = 0;

    if (!decode_evaluation(json, a, &e, err) || !check_head(&e.head, collector, err) ||
        !check_evaluation(&e, err) || !redact_fields(&evaluation_fields, &e, a, &erased, err) ||
        !redact_fields(&payload_fields, &e.payload, a, &erased, err) || !complete_counts(&e, err)) {
        return false;
    }
    for (size_t i = 0; i < e.n_hooks; i++) {
        if (!redact_fields(&execution_fields, &e.hooks[i], a, &erased, err)) {
            return false;
        }
    }
    e.payload.erased += erased;
    encode_evaluation(&e, out);
    return true;
}

bool event_line_read(struct slice line, const char *collector, struct arena *a, struct buf *out,
                     enum record_type *ret_type, struct err *err)
{
    CLEANUP(buf_done) struct buf whole;
    struct json_value record;

    buf_init(&whole, COMPLETED_MAX_BYTES);
    if (!payload_check(line, &record, err)) {
        return false;
    }
    if (record.kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "a record is an object");
    }

    struct json_value type = payload_get(record, SLICE("type"));
    bool string = type.kind == JSON_KIND_STRING;
    bool tool = string && payload_string_is(type.raw, SLICE("tool_execution"));

    if (!tool && !(string && payload_string_is(type.raw, SLICE("hook_evaluation")))) {
        return err_set(err, ERR_INVALID, "type: must be tool_execution or hook_evaluation");
    }
    if (!check_keys(record, tool ? &tool_execution_fields : &evaluation_fields, err) ||
        !complete_all(record, tool, collector, &whole, err)) {
        return false;
    }

    /* What was decoded points into `whole` until it has been encoded again. */
    bool ok = tool ? read_tool(buf_slice(&whole), collector, a, out, err)
                   : read_evaluation(buf_slice(&whole), collector, a, out, err);

    if (ok && !buf_ok(out)) {
        ok = err_set(err, ERR_TOO_BIG, "the record is longer than %d bytes", RECORD_MAX_BYTES);
    }
    if (ok) {
        *ret_type = tool ? RECORD_TOOL_EXECUTION : RECORD_HOOK_EVALUATION;
    }
    return ok;
}
