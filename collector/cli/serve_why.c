/* why: why a hook did not fire, in eight steps. */
#include "collector/cli/commands.h"

#include "collector/cli/serve_ask.h"

static void print(const struct cli *cli, const struct why *w)
{
    struct paint p = serve_ask_paint(cli);

    if (cli->json) {
        CLEANUP(buf_done) struct buf out;

        buf_init(&out, ANSWER_MAX_BYTES);
        why_json(w, &out);
        (void)fwrite(out.ptr, 1, out.len_bytes, stdout);
    } else {
        why_print(w, &p);
    }
}

static int answer(const struct cli *cli, const struct why_question *q)
{
    CLEANUP(serve_ask_close) struct serve_ask ask = { 0 };
    struct why w;
    struct err err;

    if (!answer_check_why(q, &err)) {
        return cli_fail(cli, &err);
    }

    int code = serve_ask_open(cli, &ask);

    if (code != CLI_DONE) {
        return code;
    }
    if (!answer_why(&ask.source, q, &ask.arena, &w, &err)) {
        return cli_fail(cli, &err);
    }
    serve_ask_tell_lag(cli, w.unshipped);
    print(cli, &w);
    return w.found ? CLI_DONE : CLI_NEGATIVE;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const char *call = NULL;
    const char *thread = NULL;
    const char *tool = NULL;
    const char *event = NULL;
    const char *at = NULL;
    const struct cli_option options[] = {
        { "call", .value = &call },   { "thread", .value = &thread }, { "tool", .value = &tool },
        { "event", .value = &event }, { "at", .value = &at },         { 0 }
    };
    int first = cli_options(cli, argc, argv, options);

    if (first < 0) {
        return CLI_USAGE;
    }
    if (argc - first != 1) {
        return cli_usage(cli, "name one hook");
    }
    if (!call && !thread) {
        return cli_usage(cli, "say of which call (--call ID) or thread (--thread T)");
    }
    if (call && thread) {
        return cli_usage(cli, "--call names one call; --thread does not go with it");
    }

    const struct why_question q = { .hook = slice_from_cstr(argv[first]),
                                    .call = slice_from_cstr(call),
                                    .thread = slice_from_cstr(thread),
                                    .tool = slice_from_cstr(tool),
                                    .event = slice_from_cstr(event),
                                    .at = slice_from_cstr(at) };

    return answer(cli, &q);
}

const struct cli_command why_command = {
    .name = "why",
    .run = run,
    .usage = "HOOK (--call ID | --thread T [--tool N] [--event E] [--at TIME]) [--json]",
    .help =
        "Say why a hook did not fire, or what it did: eight conditions, for each whether it\n"
        "holds, fails or cannot be told, with the evidence; then one sentence and what to do.\n\n"
        "  --call ID     of this tool call\n"
        "  --thread T    of this thread: its latest event that fits\n"
        "  --tool N      of this tool\n"
        "  --event E     Start, PreToolUse, PostToolUse, Stop\n"
        "  --at TIME     the event nearest to this time (2026-11-30T14:00:00Z)\n\n"
        "Reads the store itself and needs no server. Exit code 1: no such call, thread or\n"
        "hook.",
};
