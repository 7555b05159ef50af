#include "collector/cli/collect_line.h"

#include "collector/base/clock.h"
#include "collector/base/utf8.h"
#include "collector/record/decode.h"
#include "collector/record/payload.h"

enum {
    DECODE_BYTES = 4 * RECORD_MAX_BYTES,
    TIME_FROM = 11, /* of "2026-11-30T14:22:45.000001Z": the time of day, to the millisecond */
    TIME_CHARS = 12,
    REASON_CHARS = 80,
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

static enum cli_style style_of(enum decision d)
{
    switch (d) {
    case DECISION_PASS:
    case DECISION_ALLOW:
        return CLI_GREEN;
    case DECISION_REJECT:
    case DECISION_DENY:
    case DECISION_ERROR:
        return CLI_RED;
    case DECISION_ASK:
    case DECISION_CANCELLED:
    case DECISION_INTERRUPTED:
        return CLI_YELLOW;
    case DECISION_NONE:
    case DECISION_SKIPPED:
    case DECISION_COUNT:
        return CLI_DIM;
    }
    return CLI_PLAIN;
}

/* A word of the line, padded, and a blank. */
static void put(const struct cli *cli, enum cli_style style, struct slice text, int width)
{
    (void)fputs(cli_style(cli, style), stdout);
    cli_put(stdout, text, false);
    (void)fputs(cli_plain(cli), stdout);
    (void)printf("%*s ", (int)text.len < width ? width - (int)text.len : 0, "");
}

static void put_time(const struct cli *cli, int64_t time_us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(time_us, text);
    put(cli, CLI_DIM, (struct slice){ .ptr = text + TIME_FROM, .len = TIME_CHARS }, TIME_CHARS);
}

static void print_evaluation(const struct cli *cli, struct slice record, struct arena *a)
{
    struct evaluation e;
    struct err err;

    if (!decode_evaluation(record, a, &e, &err)) {
        return;
    }
    put(cli, style_of(e.final_decision), slice_from_cstr(decision_name(e.final_decision)), 11);
    put(cli, CLI_PLAIN, e.hook_event_type, 12);
    put(cli, CLI_BOLD, e.tool_name, 16);
    put(cli, CLI_CYAN, e.thread_id, 12);
    (void)printf("%u of %zu hooks run ", e.hooks_run, e.n_hooks);
    cli_put(stdout, utf8_prefix(e.reason.text, REASON_CHARS), false);
}

static void print_tool(const struct cli *cli, struct slice record, struct arena *a)
{
    struct tool_execution t;
    struct err err;

    if (decode_tool_execution(record, a, &t, &err)) {
        put(cli, CLI_DIM, t.phase == PHASE_START ? SLICE("tool") : SLICE("tool end"), 11);
        put(cli, CLI_PLAIN, SLICE(""), 12);
        put(cli, CLI_BOLD, t.tool_name, 16);
        put(cli, CLI_CYAN, t.thread_id, 12);
    }
}

static void print_admin(const struct cli *cli, struct slice record, struct arena *a)
{
    struct admin admin;
    struct err err;

    if (decode_admin(record, a, &admin, &err)) {
        put(cli, CLI_YELLOW, SLICE("admin"), 11);
        put(cli, CLI_PLAIN, admin.action, 12);
        put(cli, CLI_PLAIN, admin.actor, 16);
        cli_put(stdout, admin.details, false);
    }
}

static void print_words(const struct cli *cli, struct slice record, struct arena *a)
{
    struct record_head head;
    enum record_type type;
    struct err err;

    if (!decode_head(record, a, &type, &head, &err)) {
        return;
    }
    put_time(cli, head.time_us);
    switch (type) {
    case RECORD_HOOK_EVALUATION:
        print_evaluation(cli, record, a);
        break;
    case RECORD_TOOL_EXECUTION:
        print_tool(cli, record, a);
        break;
    case RECORD_ADMIN:
        print_admin(cli, record, a);
        break;
    case RECORD_GAP:
        put(cli, CLI_RED, SLICE("gap"), 11);
        break;
    case RECORD_HOOK_REGISTRY:
    case RECORD_CHECKPOINT:
    case RECORD_NONE:
    case RECORD_TYPE_COUNT:
        put(cli, CLI_DIM, slice_from_cstr(record_type_name(type)), 11);
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
