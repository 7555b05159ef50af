/* hooktrail dispatch: one dispatch without a daemon; nothing is journalled. */
#include "collector/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/dispatcher/chain.h"
#include "collector/dispatcher/hookset.h"
#include "collector/recorder/recorder.h"

enum {
    SIGNALLED = 128,
    REQUEST_BYTES = 16 * 1024 * 1024,
    RESULT_BYTES = 64 * 1024 * 1024,
    OUTPUT_BUDGET_BYTES = 64 * 1024 * 1024,
    SCRIPT_DIR_SIZE = 4096,
    HOST_SIZE = 256,
};

struct asked {
    const char *hooks;
    const char *contract; /* NULL: the request names it */
    const char *secrets;
    const char *record;
    const char *appinsights;
};

/* ---- What is written beside the result ------------------------------------ */

struct lines {
    struct buf record;
    struct buf rows;
    void (*telemetry)(const struct evaluation *e, on_telemetry_row on_row, void *ctx);
};

static void add_row(void *ctx, const struct telemetry_row *row)
{
    struct lines *l = ctx;
    char time[CLOCK_TEXT_SIZE];
    char *text;
    json_t *line;

    clock_format(row->time_us, time);
    line = json_pack("{ss,ss,sO}", "timestamp", time, "name", row->name, "customDimensions",
                     row->dimensions);
    text = json_dumps(line, JSON_COMPACT);
    buf_addf(&l->rows, "%s\n", text ? text : "{}");
    free(text);
    json_decref(line);
}

/* "--record appends each evaluation record": other records of a dispatch are not asked for. */
static void add_record(void *ctx, enum record_type type, struct slice json,
                       const struct evaluation *e)
{
    struct lines *l = ctx;

    if (type != RECORD_HOOK_EVALUATION) {
        return;
    }
    buf_add(&l->record, json);
    buf_add_char(&l->record, '\n');
    if (l->telemetry) {
        l->telemetry(e, add_row, l);
    }
}

static bool append(const char *path, const struct buf *lines, struct err *err)
{
    if (!path) {
        return true;
    }

    CLEANUP(fs_closep) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0) {
        return err_errno(err, errno, "open %s", path);
    }
    return fs_write_all(fd, buf_slice(lines), err) || err_wrap(err, "%s", path);
}

/* ---- One dispatch --------------------------------------------------------- */

static bool write_all(struct dispatch *d, const struct asked *asked, int *ret_exit_code,
                      struct err *err)
{
    struct lines lines = { .telemetry = d->set->ops->telemetry };
    char host[HOST_SIZE] = "";
    struct buf out;

    (void)gethostname(host, sizeof(host) - 1);

    struct recorder *recorder = recorder_new(&(struct recorder_options){ .collector = host });

    buf_init(&lines.record, RESULT_BYTES);
    buf_init(&lines.rows, RESULT_BYTES);
    buf_init(&out, RESULT_BYTES);
    recorder_encode(recorder, d, add_record, &lines);
    recorder_free(recorder);

    bool ok = append(asked->record, &lines.record, err) &&
              append(asked->appinsights, &lines.rows, err) &&
              d->set->ops->reply(d, &out, ret_exit_code, err);

    if (ok) {
        buf_add_char(&out, '\n');
        ok = fs_write_all(STDOUT_FILENO, buf_slice(&out), err);
    }
    buf_done(&lines.record);
    buf_done(&lines.rows);
    buf_done(&out);
    return ok;
}

/* ---- Being told to stop ----------------------------------------------------- */

/* The end that a signal closes; what runs sees the other one hang up, and is cancelled. */
static volatile sig_atomic_t hang_up_fd = -1;
static volatile sig_atomic_t told_by;

static void on_signal(int signal)
{
    told_by = signal;
    if (hang_up_fd >= 0) {
        (void)close((int)hang_up_fd);
        hang_up_fd = -1;
    }
}

/* A descriptor for dispatch.cancel_fd; -1 when there can be none. */
static int cancel_on_signals(void)
{
    const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0) {
        return -1;
    }
    hang_up_fd = pair[1];
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    return pair[0];
}

static int run_dispatch(const struct cli *cli, const struct hookset *set, struct slice request,
                        const struct asked *asked, int cancel_fd)
{
    struct budget budget = { .limit_bytes = OUTPUT_BUDGET_BYTES };
    const struct process_options process = { .budget = &budget };
    const struct chain_options options = { .process = &process };
    struct dispatch d;
    struct err err = { 0 };
    int code = CLI_DONE;

    dispatch_init(&d, set, request);
    d.cancel_fd = cancel_fd;
    if (!chain_prepare(&d, &err)) {
        code = cli_fail(cli, &err);
    } else {
        chain_run(&d, &options);
        if (told_by) {
            code = SIGNALLED + told_by; /* as a shell says it */
        } else if (!write_all(&d, asked, &code, &err)) {
            code = cli_fail(cli, &err);
        }
    }
    dispatch_done(&d);
    return code;
}

/* ---- The hooks ------------------------------------------------------------ */

/* A private folder for scripts, which goes when the dispatch is done. */
static bool make_script_dir(char path[SCRIPT_DIR_SIZE], struct err *err)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, SCRIPT_DIR_SIZE, "%s/hooktrail-scripts-XXXXXX",
                     base && *base ? base : "/tmp");

    if (n < 0 || n >= SCRIPT_DIR_SIZE) {
        return err_set(err, ERR_INVALID, "TMPDIR is too long");
    }
    return mkdtemp(path) || err_errno(err, errno, "make folder %s", path);
}

static int load_and_run(const struct cli *cli, const struct contract_ops *ops, struct slice request,
                        const struct asked *asked)
{
    char script_dir[SCRIPT_DIR_SIZE];
    const struct hook_source src = {
        .path = asked->hooks,
        .secrets_path = asked->secrets,
        .script_dir = script_dir,
    };
    /* From here on there is something that a signal must not leave behind. */
    CLEANUP(fs_closep) int cancel_fd = cancel_on_signals();
    struct faults faults;
    struct err err = { 0 };
    int code = CLI_USAGE;

    if (!make_script_dir(script_dir, &err)) {
        return cli_fail(cli, &err);
    }
    faults_init(&faults);

    struct hookset *set = hookset_load(ops, &src, &faults);

    if (set) {
        code = run_dispatch(cli, set, request, asked, cancel_fd);
    } else {
        cli_put_faults(cli, &faults);
    }
    hookset_unref(set);
    faults_done(&faults);
    fs_remove_tree(script_dir);
    return code;
}

/* ---- The request ---------------------------------------------------------- */

/* What the request calls its contract. */
static bool name_contract(struct slice request, struct arena *a, struct slice *ret, struct err *err)
{
    struct json_value root;

    if (!payload_check(request, &root, err)) {
        return err_wrap(err, "request");
    }

    struct json_value name = payload_get(root, SLICE("contract"));

    if (root.kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "request: must be an object");
    }
    if (name.kind != JSON_KIND_STRING) {
        return err_set(err, ERR_INVALID, "/contract: is missing or no string; known: %s",
                       contract_names());
    }
    return payload_string(name.raw, a, ret, NULL) ||
           err_set(err, ERR_TOO_BIG, "/contract: is too long");
}

static bool find_contract(const struct asked *asked, struct slice request,
                          const struct contract_ops **ret, struct err *err)
{
    struct arena arena;
    struct slice name = slice_from_cstr(asked->contract);

    arena_init(&arena, REQUEST_BYTES);

    bool ok = asked->contract || name_contract(request, &arena, &name, err);

    if (ok) {
        *ret = contract_find(name);
        ok = *ret || err_set(err, ERR_INVALID, "/contract: '%.*s' is unknown; known: %s",
                             name.len > 64 ? 64 : (int)name.len, name.ptr, contract_names());
    }
    arena_clear(&arena);
    return ok;
}

static bool read_request(struct buf *ret, struct err *err)
{
    return fs_read_all(STDIN_FILENO, ret, err) || err_wrap(err, "stdin");
}

static int read_and_run(const struct cli *cli, const struct asked *asked)
{
    const struct contract_ops *ops = NULL;
    struct buf request;
    struct err err = { 0 };
    int code;

    buf_init(&request, REQUEST_BYTES);
    if (!process_init(&err) || !read_request(&request, &err) ||
        !find_contract(asked, buf_slice(&request), &ops, &err)) {
        code = cli_fail(cli, &err);
    } else {
        code = load_and_run(cli, ops, buf_slice(&request), asked);
    }
    buf_done(&request);
    return code;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct asked asked = { 0 };
    const struct cli_option options[] = {
        { "hooks", .value = &asked.hooks },
        { "contract", .value = &asked.contract },
        { "secrets", .value = &asked.secrets },
        { "record", .value = &asked.record },
        { "appinsights", .value = &asked.appinsights },
        { 0 },
    };
    int first = cli_options(cli, argc, argv, options);

    if (first < 0) {
        return CLI_USAGE;
    }
    if (first < argc) {
        return cli_usage(cli, "takes no operand; the request comes on stdin");
    }
    if (!asked.hooks) {
        return cli_usage(cli, "--hooks PATH is missing");
    }
    return read_and_run(cli, &asked);
}

const struct cli_command dispatch_command = {
    "dispatch",
    run,
    "--hooks PATH [--contract NAME] [--secrets FILE] [--record FILE] [--appinsights FILE]",
    "Run the hooks of one event without any daemon: the request is read on stdin, the\n"
    "result is printed as JSON. Nothing is journalled.\n"
    "\n"
    "  --hooks PATH        hook definitions: a file, or a folder\n"
    "  --contract NAME     whose protocol; when not given, the request names it\n"
    "  --secrets FILE      the secrets that the hooks refer to (oscova)\n"
    "  --record FILE       append the evaluation records, a line each\n"
    "  --appinsights FILE  append the SRE contract's raw hook telemetry, a line a row\n"
    "\n"
    "Exit codes: 0 dispatched, whatever the decision; 2 refused, no hook ran; 3 could not;\n"
    "128 and the signal's number when a signal ended it.",
};
