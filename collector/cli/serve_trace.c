/* trace: what happened in one thread, as a timeline. */
#include "collector/cli/commands.h"

#include "collector/cli/serve_ask.h"

static void print(const struct cli *cli, const struct trace *t, bool all)
{
    struct paint p = serve_ask_paint(cli);

    if (cli->json) {
        CLEANUP(buf_done) struct buf out;

        buf_init(&out, ANSWER_MAX_BYTES);
        trace_json(t, &out);
        (void)fwrite(out.ptr, 1, out.len_bytes, stdout);
    } else {
        trace_print(t, &p, all);
    }
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const char *from = NULL;
    const char *to = NULL;
    const char *limit = NULL;
    bool all = false;
    const struct cli_option options[] = { { "from", .value = &from },
                                          { "to", .value = &to },
                                          { "limit", .value = &limit },
                                          { "all", .flag = &all },
                                          { 0 } };
    int first = cli_options(cli, argc, argv, options);
    CLEANUP(serve_ask_close) struct serve_ask ask = { 0 };
    struct trace t;
    struct err err;

    if (first < 0) {
        return CLI_USAGE;
    }
    if (argc - first != 1) {
        return cli_usage(cli, "name one thread");
    }

    const struct trace_question q = { .thread = slice_from_cstr(argv[first]),
                                      .from = slice_from_cstr(from),
                                      .to = slice_from_cstr(to),
                                      .limit = slice_from_cstr(limit) };

    if (!answer_check_trace(&q, &err)) {
        return cli_fail(cli, &err);
    }

    int code = serve_ask_open(cli, &ask);

    if (code != CLI_DONE) {
        return code;
    }
    if (!answer_trace(&ask.source, &q, &ask.arena, &t, &err)) {
        return cli_fail(cli, &err);
    }
    serve_ask_tell_lag(cli, t.unshipped);
    print(cli, &t, all);
    return CLI_DONE;
}

const struct cli_command trace_command = {
    .name = "trace",
    .run = run,
    .usage = "[--from TIME] [--to TIME] [--limit N] [--all] [--json] THREAD",
    .help = "Show what happened in a thread, as a timeline: each event, what its hooks decided,\n"
            "who decided it and why, what failed, and how many hooks were skipped for what.\n\n"
            "  --from TIME   begin here (2026-11-30T14:00:00Z)\n"
            "  --to TIME     end before\n"
            "  --limit N     events at most (1000)\n"
            "  --all         each hook on a line, tool executions too\n\n"
            "Reads the store itself and needs no server. Exit code 1: no such thread.",
};
