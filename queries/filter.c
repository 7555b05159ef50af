#include "queries/filter.h"

#include <assert.h>

enum { SQL_MAX_BYTES = 16 * 1024 };

/* Columns that not every table has, as bits: a condition on one that is missing rules it out. */
enum {
    HAS_DISPATCH = 1 << 0,
    HAS_THREAD = 1 << 1, /* with call_id and tool_name */
    HAS_EVENT = 1 << 2,
    HAS_DIGEST = 1 << 3,
    HAS_CONTRACT = 1 << 4,
};

struct table {
    const char *name;
    const char *type; /* SQL for the type of its records */
    unsigned types;   /* that it can hold */
    unsigned columns;
};

static const struct table tables[] = {
    { "hook_evaluation", "'hook_evaluation'", 1U << RECORD_HOOK_EVALUATION,
      HAS_DISPATCH | HAS_THREAD | HAS_EVENT | HAS_DIGEST | HAS_CONTRACT },
    { "tool_execution", "'tool_execution'", 1U << RECORD_TOOL_EXECUTION,
      HAS_DISPATCH | HAS_THREAD | HAS_CONTRACT },
    { "audit_record", "type",
      1U << RECORD_HOOK_REGISTRY | 1U << RECORD_GAP | 1U << RECORD_CHECKPOINT | 1U << RECORD_ADMIN,
      HAS_DIGEST | HAS_CONTRACT },
};

enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

/* A statement being built. */
struct builder {
    const struct store_filter *f;
    enum filter_mark mark;
    struct filter_query *q;
    const char *glue; /* before the next condition */
};

static void add(struct builder *b, const char *sql)
{
    buf_add(&b->q->sql, slice_from_cstr(sql));
}

static void bind(struct builder *b, struct filter_bind value)
{
    assert(b->q->n_binds < FILTER_BINDS);
    b->q->binds[b->q->n_binds++] = value;
    if (b->mark == FILTER_NUMBER) {
        buf_addf(&b->q->sql, "$%zu", b->q->n_binds);
    } else {
        buf_add_char(&b->q->sql, '?');
    }
}

static void condition(struct builder *b)
{
    add(b, b->glue);
    b->glue = " AND ";
}

static void equals(struct builder *b, const char *column, struct slice text)
{
    if (text.len > 0) {
        condition(b);
        add(b, column);
        add(b, " = ");
        bind(b, (struct filter_bind){ .kind = FILTER_TEXT, .text = text });
    }
}

static void time_is(struct builder *b, const char *comparison, int64_t us)
{
    if (us > 0) {
        condition(b);
        add(b, "time ");
        add(b, comparison);
        add(b, " ");
        bind(b, (struct filter_bind){ .kind = FILTER_MOMENT, .number = us });
    }
}

/* Which of a table's types are asked for; told only where it can hold others too. */
static void types_are(struct builder *b, const struct table *t, unsigned types)
{
    const char *comma = "";

    if (types == t->types) {
        return;
    }
    condition(b);
    add(b, "type IN (");
    for (int i = 1; i < RECORD_TYPE_COUNT; i++) {
        if (types & 1U << i) {
            buf_addf(&b->q->sql, "%s'%s'", comma, record_type_name((enum record_type)i));
            comma = ", ";
        }
    }
    add(b, ")");
}

static void order_and_limit(struct builder *b)
{
    add(b,
        b->f->newest_first ? " ORDER BY time DESC, id DESC LIMIT " : " ORDER BY time, id LIMIT ");
    bind(b, (struct filter_bind){ .kind = FILTER_INTEGER,
                                  .number = b->f->limit > 0 ? b->f->limit : FILTER_ROWS });
}

static void select_from(struct builder *b, const struct table *t, unsigned types)
{
    const struct store_filter *f = b->f;

    buf_addf(&b->q->sql,
             "SELECT * FROM (SELECT %s AS type, id, time, journal, seq, leaf, body FROM %s",
             t->type, t->name);
    b->glue = " WHERE ";
    types_are(b, t, types);
    equals(b, "id", f->id);
    equals(b, "dispatch_id", f->dispatch_id);
    equals(b, "thread_id", f->thread_id);
    equals(b, "call_id", f->call_id);
    equals(b, "tool_name", f->tool_name);
    equals(b, "hook_event_type", f->event);
    equals(b, "contract", f->contract);
    equals(b, "config_digest", f->config_digest);
    time_is(b, ">=", f->from_us);
    time_is(b, "<", f->to_us);
    order_and_limit(b);
    buf_addf(&b->q->sql, ") AS of_%s", t->name);
}

static unsigned needed_columns(const struct store_filter *f)
{
    bool thread = f->thread_id.len > 0 || f->call_id.len > 0 || f->tool_name.len > 0;

    return (f->dispatch_id.len > 0 ? HAS_DISPATCH : 0U) | (thread ? HAS_THREAD : 0U) |
           (f->event.len > 0 ? HAS_EVENT : 0U) | (f->config_digest.len > 0 ? HAS_DIGEST : 0U) |
           (f->contract.len > 0 ? HAS_CONTRACT : 0U);
}

bool filter_build(const struct store_filter *f, enum filter_mark mark, struct filter_query *ret)
{
    struct builder b = { .f = f, .mark = mark, .q = ret };
    unsigned needed = needed_columns(f);
    unsigned asked = f->types != 0 ? f->types : ~0U;
    size_t n = 0;

    *ret = (struct filter_query){ 0 };
    buf_init(&ret->sql, SQL_MAX_BYTES);
    for (size_t i = 0; i < TABLES; i++) {
        unsigned types = asked & tables[i].types;

        if (types == 0 || (tables[i].columns & needed) != needed) {
            continue;
        }
        add(&b, n++ > 0 ? " UNION ALL " : "SELECT * FROM (");
        select_from(&b, &tables[i], types);
    }
    if (n == 0) {
        return false;
    }
    add(&b, ") AS found");
    order_and_limit(&b);
    return buf_ok(&ret->sql);
}

void filter_done(struct filter_query *q)
{
    buf_done(&q->sql);
}
