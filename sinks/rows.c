#include "sinks/rows.h"

#include <assert.h>

#include "collector/base/clock.h"
#include "collector/record/decode.h"
#include "collector/record/encode.h"
#include "collector/record/payload.h"

enum { ARENA_LIMIT_BYTES = 8 * 1024 * 1024 }; /* a record of 256 KiB with its hooks, decoded */

static const char *const evaluation_columns[] = {
    "journal",
    "seq",
    "leaf",
    "id",
    "time",
    "collector",
    "dispatch_id",
    "source",
    "contract",
    "chain",
    "duration_us",
    "queue_us",
    "thread_id",
    "run_id",
    "call_id",
    "user_id",
    "agent_name",
    "task_id",
    "task_run_id",
    "hook_event_type",
    "tool_name",
    "turn",
    "final_decision",
    "reason",
    "allowing_hook",
    "hooks_configured",
    "hooks_run",
    "system_hooks_run",
    "agent_hooks_run",
    "user_global_hooks_run",
    "rejection_count",
    "config_digest",
    "body",
};
static const char *const execution_columns[] = {
    "journal",     "seq",
    "ordinal",     "leaf",
    "id",          "time",
    "source",      "contract",
    "thread_id",   "call_id",
    "agent_name",  "hook_event_type",
    "tool_name",   "final_decision",
    "hook_name",   "hook_type",
    "tier",        "decision",
    "reason",      "exception_type",
    "cause",       "intended",
    "exit_code",   "signal",
    "queue_us",    "duration_us",
    "left_behind", "body",
};
static const char *const tool_columns[] = {
    "journal",        "seq",      "leaf",  "id",        "time",    "collector", "dispatch_id",
    "source",         "contract", "phase", "thread_id", "call_id", "tool_name", "sub_agent_name",
    "tool_succeeded", "body",
};
static const char *const audit_columns[] = {
    "journal",  "seq",           "leaf",   "id",    "time",  "collector", "type",
    "contract", "config_digest", "action", "actor", "cause", "lost",      "body",
};

#define SHAPE(table_name, list)                            \
    {                                                      \
        table_name, list, sizeof(list) / sizeof((list)[0]) \
    }
const struct table_shape table_shapes[TABLE_COUNT] = {
    [TABLE_EVALUATION] = SHAPE("hook_evaluation", evaluation_columns),
    [TABLE_EXECUTION] = SHAPE("hook_execution", execution_columns),
    [TABLE_TOOL] = SHAPE("tool_execution", tool_columns),
    [TABLE_AUDIT] = SHAPE("audit_record", audit_columns),
};

void rows_init(struct rows *rs, struct rollup *rollup, rows_on_row on_row, void *ctx)
{
    *rs = (struct rows){ .rollup = rollup, .on_row = on_row, .ctx = ctx };
    arena_init(&rs->arena, ARENA_LIMIT_BYTES);
    buf_init(&rs->body, RECORD_MAX_BYTES);
    buf_init(&rs->identity, RECORD_MAX_BYTES);
}

void rows_done(struct rows *rs)
{
    arena_clear(&rs->arena);
    buf_done(&rs->body);
    buf_done(&rs->identity);
}

/* A row that is being filled, cell by cell in the order of its table's columns. */
struct filling {
    struct row row;
    size_t n;
};

static struct cell *next_cell(struct filling *f, enum cell_kind kind)
{
    struct cell *c = &f->row.cells[f->n++];

    c->kind = kind;
    return c;
}

static void add_text(struct filling *f, struct slice text)
{
    next_cell(f, text.len > 0 ? CELL_TEXT : CELL_NULL)->text = text;
}

static void add_word(struct filling *f, const char *word)
{
    add_text(f, slice_from_cstr(word));
}

static void add_integer(struct filling *f, int64_t n)
{
    next_cell(f, CELL_INTEGER)->number = n;
}

static void add_integer_if(struct filling *f, bool present, int64_t n)
{
    next_cell(f, present ? CELL_INTEGER : CELL_NULL)->number = n;
}

static void add_time(struct filling *f, int64_t us)
{
    next_cell(f, CELL_TIME)->number = us;
}

static void add_leaf(struct filling *f, const struct digest *leaf)
{
    next_cell(f, CELL_BYTES)->text = digest_slice(leaf);
}

static void start(struct filling *f, enum table table, struct slice journal,
                  const struct sink_record *r)
{
    f->row.table = table;
    f->n = 0;
    add_text(f, journal);
    add_integer(f, (int64_t)r->seq);
}

static enum sink_result finish(struct rows *rs, struct filling *f, struct err *err)
{
    assert(f->n == table_shapes[f->row.table].n_columns);
    return rs->on_row(rs->ctx, &f->row, err);
}

static void add_head(struct filling *f, const struct sink_record *r, const struct record_head *h)
{
    add_leaf(f, &r->leaf);
    add_text(f, h->id);
    add_time(f, h->time_us);
    add_text(f, h->collector);
}

static void fill_evaluation(struct filling *f, const struct evaluation *e)
{
    add_text(f, e->dispatch_id);
    add_word(f, record_source_name(e->source));
    add_text(f, e->contract);
    add_word(f, chain_kind_name(e->chain));
    add_integer(f, e->duration_us);
    add_integer(f, e->queue_us);
    add_text(f, e->thread_id);
    add_text(f, e->run_id);
    add_text(f, e->call_id);
    add_text(f, e->user_id);
    add_text(f, e->agent_name);
    add_text(f, e->task_id);
    add_text(f, e->task_run_id);
    add_text(f, e->hook_event_type);
    add_text(f, e->tool_name);
    add_integer_if(f, e->has_turn, e->turn);
    add_word(f, decision_name(e->final_decision));
    add_text(f, e->reason.text);
    add_text(f, e->allowing_hook);
    add_integer(f, e->hooks_configured);
    add_integer(f, e->hooks_run);
    add_integer(f, e->system_hooks_run);
    add_integer(f, e->agent_hooks_run);
    add_integer(f, e->user_global_hooks_run);
    add_integer(f, e->rejection_count);
    add_text(f, e->config_digest);
}

static void fill_execution(struct filling *f, const struct evaluation *e, const struct execution *h)
{
    add_time(f, e->head.time_us);
    add_word(f, record_source_name(e->source));
    add_text(f, e->contract);
    add_text(f, e->thread_id);
    add_text(f, e->call_id);
    add_text(f, e->agent_name);
    add_text(f, e->hook_event_type);
    add_text(f, e->tool_name);
    add_word(f, decision_name(e->final_decision));
    add_text(f, h->hook_name);
    add_word(f, hook_type_name(h->hook_type));
    add_word(f, tier_name(h->tier));
    add_word(f, decision_name(h->decision));
    add_text(f, h->reason.text);
    add_text(f, h->exception_type);
    add_word(f, cause_name(h->cause));
    add_word(f, decision_name(h->intended));
    add_integer_if(f, h->has_exit_code, h->exit_code);
    add_integer_if(f, h->signal != 0, h->signal);
    add_integer(f, h->queue_us);
    add_integer(f, h->duration_us);
    add_integer(f, h->left_behind);
}

/* The parts of a derived row that are made here: its id, and its JSON behind it. */
static void make_texts(struct rows *rs, const struct evaluation *e, size_t i, struct slice *ret_id,
                       struct slice *ret_json)
{
    buf_clear(&rs->body);
    encode_execution_id(e->head.id, e->hooks[i].ordinal, &rs->body);

    size_t id_len = rs->body.len_bytes;

    encode_hook_execution(e, i, buf_slice(&rs->identity), &rs->body);
    *ret_id = (struct slice){ .ptr = rs->body.ptr, .len = id_len };
    *ret_json = (struct slice){ .ptr = rs->body.ptr + id_len, .len = rs->body.len_bytes - id_len };
}

static enum sink_result execution_row(struct rows *rs, struct slice journal,
                                      const struct sink_record *r, const struct evaluation *e,
                                      size_t i, struct err *err)
{
    struct filling f;
    struct slice id;
    struct slice json;

    make_texts(rs, e, i, &id, &json);
    if (!buf_ok(&rs->body) || !buf_ok(&rs->identity)) {
        (void)err_set(err, ERR_TOO_BIG, "hook %zu of the evaluation is too large", i);
        return SINK_REJECT;
    }
    start(&f, TABLE_EXECUTION, journal, r);
    add_integer(&f, e->hooks[i].ordinal);
    add_leaf(&f, &r->leaf);
    add_text(&f, id);
    fill_execution(&f, e, &e->hooks[i]);
    add_text(&f, json);
    return finish(rs, &f, err);
}

enum sink_result rows_not_decoded(const struct sink_record *r, struct err *err)
{
    struct json_value v;
    struct err ignored; /* that they do not decode is what is told */
    int64_t schema = 0;

    if (payload_check(r->json, &v, &ignored) &&
        payload_integer(payload_get(v, SLICE("schema")), &schema) && schema > RECORD_SCHEMA) {
        (void)err_set(err, ERR_INVALID,
                      "record %llu has schema %lld, this program knows up to %d: use a newer one",
                      (unsigned long long)r->seq, (long long)schema, RECORD_SCHEMA);
        return SINK_BROKEN;
    }
    return SINK_REJECT;
}

static enum sink_result evaluation_rows(struct rows *rs, struct slice journal,
                                        const struct sink_record *r, struct err *err)
{
    struct evaluation e;
    struct filling f;

    if (!decode_evaluation(r->json, &rs->arena, &e, err)) {
        return rows_not_decoded(r, err);
    }
    start(&f, TABLE_EVALUATION, journal, r);
    add_head(&f, r, &e.head);
    fill_evaluation(&f, &e);
    add_text(&f, r->json);

    enum sink_result result = finish(rs, &f, err);

    buf_clear(&rs->identity);
    encode_identity(&e, &rs->identity);
    for (size_t i = 0; result == SINK_OK && i < e.n_hooks; i++) {
        if (e.hooks[i].decision != DECISION_SKIPPED) {
            result = execution_row(rs, journal, r, &e, i, err);
        }
    }
    if (result == SINK_OK && rs->rollup && !rollup_count(rs->rollup, &e, err)) {
        return SINK_REJECT; /* the caller halves the batch; one record's keys always fit */
    }
    return result;
}

static enum sink_result tool_row(struct rows *rs, struct slice journal, const struct sink_record *r,
                                 struct err *err)
{
    struct tool_execution t;
    struct filling f;

    if (!decode_tool_execution(r->json, &rs->arena, &t, err)) {
        return rows_not_decoded(r, err);
    }
    start(&f, TABLE_TOOL, journal, r);
    add_head(&f, r, &t.head);
    add_text(&f, t.dispatch_id);
    add_word(&f, record_source_name(t.source));
    add_text(&f, t.contract);
    add_word(&f, tool_phase_name(t.phase));
    add_text(&f, t.thread_id);
    add_text(&f, t.call_id);
    add_text(&f, t.tool_name);
    add_text(&f, t.sub_agent_name);
    add_integer_if(&f, t.has_succeeded, t.tool_succeeded);
    add_text(&f, r->json);
    return finish(rs, &f, err);
}

/* What the audit table knows beside the head. */
struct audit_facts {
    struct slice contract;
    struct slice config_digest;
    struct slice action;
    struct slice actor;
    struct slice cause;
    bool has_lost;
    uint64_t lost;
};

static bool audit_facts(struct rows *rs, const struct sink_record *r, struct audit_facts *ret,
                        struct err *err)
{
    struct hook_registry registry;
    struct gap gap;
    struct admin admin;

    if (r->type == RECORD_HOOK_REGISTRY) {
        if (!decode_hook_registry(r->json, &rs->arena, &registry, err)) {
            return false;
        }
        ret->contract = registry.contract;
        ret->config_digest = registry.config_digest;
    } else if (r->type == RECORD_GAP) {
        if (!decode_gap(r->json, &rs->arena, &gap, err)) {
            return false;
        }
        ret->cause = gap.cause;
        ret->has_lost = gap.known;
        ret->lost = gap.lost;
    } else if (r->type == RECORD_ADMIN) {
        if (!decode_admin(r->json, &rs->arena, &admin, err)) {
            return false;
        }
        ret->action = admin.action;
        ret->actor = admin.actor;
    }
    return true;
}

static bool text_at(struct arena *a, struct json_value v, struct slice key, struct slice *ret)
{
    v = payload_get(v, key);
    return v.kind == JSON_KIND_STRING && payload_string(v.raw, a, ret, NULL);
}

bool rows_head(const struct sink_record *r, struct arena *a, struct record_head *ret,
               struct slice *ret_type, struct err *err)
{
    struct json_value v;
    struct slice time;

    *ret = (struct record_head){ 0 };
    if (!payload_check(r->json, &v, err)) {
        return false;
    }
    if (!text_at(a, v, SLICE("type"), ret_type) || !text_at(a, v, SLICE("id"), &ret->id) ||
        !text_at(a, v, SLICE("collector"), &ret->collector) ||
        !text_at(a, v, SLICE("time"), &time) || !clock_parse(time, &ret->time_us)) {
        return err_set(err, ERR_INVALID, "record %llu has no type, id, collector or time",
                       (unsigned long long)r->seq);
    }
    return true;
}

static enum sink_result audit_row(struct rows *rs, struct slice journal,
                                  const struct sink_record *r, struct err *err)
{
    struct record_head head;
    struct audit_facts facts = { 0 };
    struct slice type;
    struct filling f;

    if (!rows_head(r, &rs->arena, &head, &type, err) || !audit_facts(rs, r, &facts, err)) {
        return rows_not_decoded(r, err);
    }
    start(&f, TABLE_AUDIT, journal, r);
    add_head(&f, r, &head);
    add_text(&f, type);
    add_text(&f, facts.contract);
    add_text(&f, facts.config_digest);
    add_text(&f, facts.action);
    add_text(&f, facts.actor);
    add_text(&f, facts.cause);
    add_integer_if(&f, facts.has_lost, (int64_t)facts.lost);
    add_text(&f, r->json);
    return finish(rs, &f, err);
}

enum sink_result rows_of(struct rows *rs, struct slice journal, const struct sink_record *r,
                         struct err *err)
{
    arena_reset(&rs->arena);
    switch (r->type) {
    case RECORD_HOOK_EVALUATION:
        return evaluation_rows(rs, journal, r, err);
    case RECORD_TOOL_EXECUTION:
        return tool_row(rs, journal, r, err);
    case RECORD_NONE:
    case RECORD_HOOK_REGISTRY:
    case RECORD_GAP:
    case RECORD_CHECKPOINT:
    case RECORD_ADMIN:
    case RECORD_TYPE_COUNT:
        break;
    }
    return audit_row(rs, journal, r, err);
}
