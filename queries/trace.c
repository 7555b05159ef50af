#include "queries/trace.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "collector/record/decode.h"
#include "queries/rows.h"

static bool decode_event(const struct store_row *row, struct arena *a, struct trace_event *ret,
                         struct err *err)
{
    *ret = (struct trace_event){ .type = row->type, .at_us = row->time_us, .body = row->body };
    switch (row->type) {
    case RECORD_HOOK_EVALUATION:
        return decode_evaluation(row->body, a, &ret->evaluation, err);
    case RECORD_TOOL_EXECUTION:
        return decode_tool_execution(row->body, a, &ret->tool, err);
    case RECORD_GAP:
        if (!decode_gap(row->body, a, &ret->gap, err)) {
            return false;
        }
        ret->at_us = ret->gap.first_us > 0 ? ret->gap.first_us : row->time_us;
        return true;
    case RECORD_NONE:
    case RECORD_HOOK_REGISTRY:
    case RECORD_CHECKPOINT:
    case RECORD_ADMIN:
    case RECORD_TYPE_COUNT:
        break;
    }
    return err_set(err, ERR_CORRUPT, "the store answered with a record of another type");
}

/* The thread's own events; one row more than the limit tells whether there is more. */
static bool select_events(struct store *s, const struct trace_options *o, struct arena *a,
                          struct rows *rows, struct err *err)
{
    uint32_t limit = o->limit > 0 ? o->limit : TRACE_LIMIT;
    struct store_filter f = {
        .types = 1U << RECORD_HOOK_EVALUATION | 1U << RECORD_TOOL_EXECUTION,
        .thread_id = o->thread,
        .from_us = o->from_us,
        .to_us = o->to_us,
        .limit = limit < UINT32_MAX ? limit + 1 : limit,
    };

    return rows_select(s, &f, a, rows, err);
}

/* A gap is written after what it counts was lost: look at all from the thread's begin on. */
static bool select_gaps(struct store *s, const struct trace *t, struct arena *a, struct rows *rows,
                        struct err *err)
{
    struct store_filter f = { .types = 1U << RECORD_GAP, .from_us = t->from_us };

    return rows_select(s, &f, a, rows, err);
}

/* A gap of unknown times (an unclean boot) is where its record is. */
static bool gap_touches(const struct gap *g, int64_t from_us, int64_t to_us)
{
    int64_t first = g->first_us > 0 ? g->first_us : g->head.time_us;
    int64_t last = g->last_us > 0 ? g->last_us : g->head.time_us;

    return first <= to_us && last >= from_us;
}

/* Rows come in order already: a gap goes behind what is as old as it. */
static void insert_gap(struct trace *t, const struct trace_event *gap)
{
    size_t i = t->n++;

    for (; i > 0 && t->events[i - 1].at_us > gap->at_us; i--) {
        t->events[i] = t->events[i - 1];
    }
    t->events[i] = *gap;
}

static bool add_gaps(struct trace *t, const struct rows *gaps, struct arena *a, struct err *err)
{
    int64_t from_us = t->from_us;
    int64_t to_us = t->to_us;

    for (size_t i = 0; i < gaps->n; i++) {
        struct trace_event event;

        if (!decode_event(&gaps->items[i], a, &event, err)) {
            return false;
        }
        if (gap_touches(&event.gap, from_us, to_us)) {
            insert_gap(t, &event);
        }
    }
    return true;
}

/* What was asked for bounds the time in which a gap matters; else the events do. */
static void set_time(struct trace *t, const struct trace_options *o, const struct rows *rows,
                     size_t n)
{
    t->from_us = rows->items[0].time_us;
    t->to_us = rows->items[n - 1].time_us;
    t->truncated = n < rows->n;
    t->next_us = t->truncated ? rows->items[n].time_us : 0;
    if (o->from_us > 0 && o->from_us < t->from_us) {
        t->from_us = o->from_us;
    }
    if (o->to_us > t->to_us && !t->truncated) {
        t->to_us = o->to_us;
    }
}

static bool fill_events(struct trace *t, const struct rows *rows, size_t n, struct arena *a,
                        struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!decode_event(&rows->items[i], a, &t->events[t->n], err)) {
            return err_wrap(err, "record %" SLICE_FMT, SLICE_ARG(rows->items[i].id));
        }
        t->evaluations += t->events[t->n].type == RECORD_HOOK_EVALUATION;
        t->n++;
    }
    return true;
}

bool trace_query(struct store *s, const struct trace_options *o, struct arena *a, struct trace *ret,
                 struct err *err)
{
    size_t limit = o->limit > 0 ? o->limit : TRACE_LIMIT;
    struct trace t = { 0 };
    struct rows rows = { 0 };
    struct rows gaps = { 0 };

    if (!select_events(s, o, a, &rows, err)) {
        return false;
    }
    if (rows.n == 0) {
        return err_set(err, ERR_NOT_FOUND, "no record of thread '%" SLICE_FMT "'%s",
                       SLICE_ARG(o->thread), o->from_us > 0 || o->to_us > 0 ? " in that time" : "");
    }

    size_t n = rows.n < limit ? rows.n : limit;

    set_time(&t, o, &rows, n);
    if (!select_gaps(s, &t, a, &gaps, err)) {
        return false;
    }
    t.events = arena_alloc(a, n + gaps.n, sizeof(*t.events));
    if (!t.events || !arena_dup(a, o->thread, &t.thread)) {
        return err_set(err, ERR_TOO_BIG, "the trace is over %zu MiB", a->limit_bytes >> 20);
    }
    if (!fill_events(&t, &rows, n, a, err) || !add_gaps(&t, &gaps, a, err)) {
        return false;
    }
    *ret = t;
    return true;
}

static void add_time(struct buf *out, const char *key, int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    buf_addf(out, ",\"%s\":\"%s\"", key, text);
}

/* The record's own object with one key in front. */
static void add_event(struct buf *out, const struct trace_event *e)
{
    const char *kind = e->type == RECORD_HOOK_EVALUATION ? "evaluation" : record_type_name(e->type);

    buf_addf(out, "{\"kind\":\"%s\",", kind);
    buf_add(out, (struct slice){ .ptr = e->body.ptr + 1, .len = e->body.len - 1 });
}

void trace_json(const struct trace *t, struct buf *out)
{
    buf_add(out, SLICE("{\"thread_id\":"));
    buf_add_json_string(out, t->thread);
    add_time(out, "from", t->from_us);
    add_time(out, "to", t->to_us);
    buf_add(out, SLICE(",\"events\":["));
    for (size_t i = 0; i < t->n; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        add_event(out, &t->events[i]);
    }
    buf_addf(out, "],\"truncated\":%s", t->truncated ? "true" : "false");
    if (t->truncated) {
        add_time(out, "next_from", t->next_us);
    }
    buf_addf(out, ",\"unshipped\":%" PRIu64 "}\n", t->unshipped);
}
