#include "collector/cli/collect_line.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "collector/base/plural.h"
#include "collector/base/utf8.h"
#include "collector/record/decode.h"
#include "collector/record/payload.h"

enum {
    DECODE_BYTES = 4 * RECORD_MAX_BYTES,
    TIME_FROM = 11, /* of "2026-11-30T14:22:45.000001Z": the time of day, to the millisecond */
    TIME_CHARS = 12,
    REASON_CHARS = 80,
    LINE_BYTES = 4096,
    KIND_CHARS = 11, /* columns, each with a gap behind it */
    EVENT_CHARS = 12,
    TOOL_CHARS = 16,
    THREAD_CHARS = 24,
    GAP = 2,
};

bool line_wanted(struct slice record, struct slice thread, int64_t *ret_time_us)
{
    struct record_head head;
    enum record_type type;
    struct json_value root;
    struct arena a;
    struct err err;

    arena_init(&a, DECODE_BYTES);

    bool ok = decode_head(record, &a, &type, &head, &err);

    if (ok && thread.len > 0) {
        ok = payload_check(record, &root, &err) &&
             payload_string_is(payload_get(root, SLICE("thread_id")).raw, thread);
    }
    *ret_time_us = ok ? head.time_us : 0;
    arena_clear(&a);
    return ok;
}

/* A line as it grows. Blanks are owed until something follows, so that none ends the line. */
struct line {
    const struct cli *cli;
    size_t column;
    size_t owed;
    bool full; /* the edge of the terminal is reached */
};

/* The characters of text that go before the edge; all of it where there is none. */
static struct slice fitting(struct line *l, struct slice text)
{
    size_t room = l->cli->width > l->column + l->owed ? l->cli->width - l->column - l->owed : 0;

    if (l->cli->width == 0 || utf8_count(text) <= room) {
        return text;
    }
    l->full = true;
    return utf8_prefix(text, room > 0 ? room - 1 : 0);
}

/* A word of the line; what comes next stands `width` columns further, and a gap behind it. */
static void put(struct line *l, enum color color, struct slice text, size_t width)
{
    if (l->full) {
        return;
    }

    struct slice shown = fitting(l, text);
    size_t chars = utf8_count(shown);

    if (shown.len > 0) {
        (void)printf("%*s%s", (int)l->owed, "", cli_color(l->cli, color));
        cli_put(stdout, shown, false);
        (void)fputs(l->full ? "…" : "", stdout);
        (void)fputs(cli_plain(l->cli), stdout);
        l->column += l->owed + chars;
        l->owed = 0;
    }
    l->owed += (chars < width ? width - chars : 0) + GAP;
}

static void put_time(struct line *l, int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    put(l, COLOR_DIM, (struct slice){ .ptr = text + TIME_FROM, .len = TIME_CHARS }, TIME_CHARS);
}

/* "2 of 5 hooks ran: Not permitted." */
static void put_hooks(struct line *l, const struct evaluation *e)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, LINE_BYTES);
    buf_addf(&text, "%" PRIu32 " of %zu hook%s ran", e->hooks_run, e->n_hooks, plural(e->n_hooks));
    if (e->reason.text.len > 0) {
        buf_add(&text, SLICE(": "));
        buf_add(&text, utf8_prefix(e->reason.text, REASON_CHARS));
    }
    put(l, COLOR_NONE, buf_slice(&text), 0);
}

static void put_evaluation(struct line *l, struct slice record, struct arena *a)
{
    struct evaluation e;
    struct err err;

    if (!decode_evaluation(record, a, &e, &err)) {
        return;
    }
    put(l, paint_decision_color(e.final_decision), slice_from_cstr(decision_name(e.final_decision)),
        KIND_CHARS);
    put(l, COLOR_NONE, e.hook_event_type, EVENT_CHARS);
    put(l, COLOR_BOLD, e.tool_name, TOOL_CHARS);
    put(l, COLOR_CYAN, e.thread_id, THREAD_CHARS);
    put_hooks(l, &e);
}

static void put_tool(struct line *l, struct slice record, struct arena *a)
{
    struct tool_execution t;
    struct err err;

    if (decode_tool_execution(record, a, &t, &err)) {
        put(l, COLOR_DIM, t.phase == PHASE_START ? SLICE("tool starts") : SLICE("tool ends"),
            KIND_CHARS);
        put(l, COLOR_NONE, SLICE(""), EVENT_CHARS);
        put(l, COLOR_BOLD, t.tool_name, TOOL_CHARS);
        put(l, COLOR_CYAN, t.thread_id, THREAD_CHARS);
    }
}

static void put_admin(struct line *l, struct slice record, struct arena *a)
{
    struct admin admin;
    struct err err;

    if (decode_admin(record, a, &admin, &err)) {
        put(l, COLOR_YELLOW, SLICE("admin"), KIND_CHARS);
        put(l, COLOR_NONE, admin.action, EVENT_CHARS);
        put(l, COLOR_NONE, admin.actor, TOOL_CHARS);
        put(l, COLOR_NONE, admin.details, 0);
    }
}

/* "gap  12 records were lost (disk_full)" */
static void put_gap(struct line *l, struct slice record, struct arena *a)
{
    CLEANUP(buf_done) struct buf text;
    struct gap g;
    struct err err;

    if (!decode_gap(record, a, &g, &err)) {
        return;
    }
    buf_init(&text, LINE_BYTES);
    if (g.known) {
        buf_addf(&text, "%" PRIu64 " record%s lost", g.lost, g.lost == 1 ? " was" : "s were");
    } else {
        buf_add(&text, SLICE("records may be missing"));
    }
    buf_addf(&text, " (%" SLICE_FMT ")", SLICE_ARG(g.cause));
    put(l, COLOR_RED, SLICE("gap"), KIND_CHARS);
    put(l, COLOR_NONE, buf_slice(&text), 0);
}

static void print_words(const struct cli *cli, struct slice record, struct arena *a)
{
    struct line l = { .cli = cli };
    struct record_head head;
    enum record_type type;
    struct err err;

    if (!decode_head(record, a, &type, &head, &err)) {
        return;
    }
    put_time(&l, head.time_us);
    switch (type) {
    case RECORD_HOOK_EVALUATION:
        put_evaluation(&l, record, a);
        break;
    case RECORD_TOOL_EXECUTION:
        put_tool(&l, record, a);
        break;
    case RECORD_ADMIN:
        put_admin(&l, record, a);
        break;
    case RECORD_GAP:
        put_gap(&l, record, a);
        break;
    case RECORD_HOOK_REGISTRY:
    case RECORD_CHECKPOINT:
    case RECORD_NONE:
    case RECORD_TYPE_COUNT:
        put(&l, COLOR_DIM, slice_from_cstr(record_type_name(type)), KIND_CHARS);
        break;
    }
    (void)fputc('\n', stdout);
}

void line_print(const struct cli *cli, struct slice record)
{
    struct arena a;

    if (cli->json) {
        (void)fwrite(record.ptr, 1, record.len, stdout);
        (void)fputc('\n', stdout);
        return;
    }
    arena_init(&a, DECODE_BYTES);
    print_words(cli, record, &a);
    arena_clear(&a);
}
