/*
 * cli: what the commands of all role programs share.
 *
 * A role program is called as `hooktrail-ROLE [global options] COMMAND ARGS…` and
 * consists of a table of commands. Global options may stand before and behind
 * the command: --config FILE, --state DIR, --json, --color auto|always|never,
 * --help. cli_main() takes them out; a command sees only what is its own.
 *
 * A command is one file, which exports a struct cli_command (commands.h):
 *
 *     static int run(const struct cli *cli, int argc, char **argv)
 *     {
 *         const char *hooks = NULL;
 *         bool strict = false;
 *         const struct cli_option options[] = {
 *             { "hooks", .value = &hooks }, { "strict", .flag = &strict }, { 0 },
 *         };
 *         int first = cli_options(cli, argc, argv, options);
 *
 *         if (first < 0) {
 *             return CLI_USAGE;
 *         }
 *         …argv[first] to argv[argc - 1] are the operands
 *     }
 *
 *     const struct cli_command check_command = {
 *         "check", run, "--hooks PATH [--contract NAME]", "Check hook files…",
 *     };
 *
 * Thread: the main thread.
 */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include "collector/base/buf.h"
#include "collector/base/config.h"
#include "collector/base/err.h"
#include "queries/paint.h"

enum cli_exit {
    CLI_DONE = 0,
    CLI_NEGATIVE = 1, /* a negative answer: faults, a failed verification, nothing found */
    CLI_USAGE = 2,    /* refused: usage, or bad input */
    CLI_FAILED = 3,   /* could not: I/O, unreachable */
};

struct cli {
    const char *command; /* its name, for messages */
    const char *config;  /* --config; NULL: not given */
    const char *state;   /* --state; NULL: not given */
    bool json;
    bool color;     /* colour may go to stdout */
    bool color_err; /* and to stderr */
    bool terminal;  /* stdout is a terminal */
    size_t width;   /* columns of the terminal; 0 when it is none */
};

struct cli_command {
    const char *name;
    /* argv[0] is the name; the result is an exit code. */
    int (*run)(const struct cli *cli, int argc, char **argv);
    const char *usage; /* what follows the name: "[--json] THREAD" */
    const char *help;  /* some lines: what it does, its options, its exit codes where special */
};

/* Parse the global options, run the command; the result is the exit code of the program. */
int cli_main(int argc, char **argv, const struct cli_command *const *commands, size_t n);

/* Options of a command ------------------------------------------------------ */

/* One of `value`, `flag`, `on_value` is set. A table ends with a zero entry. */
struct cli_option {
    const char *name;   /* "hooks" for --hooks PATH and --hooks=PATH */
    const char **value; /* gets the argument */
    bool *flag;         /* set to true */
    int64_t *number;    /* gets the argument as a decimal number from min to max */
    int64_t min, max;
};

/*
 * Parse; the result is the index of the first operand in argv (argc: none), or -1
 * after an error, which has been printed: return CLI_USAGE then. Operands may
 * stand among options (they are moved to the end); what follows "--" is an operand.
 * An option is written in full, and one that takes a value is given once.
 */
int cli_options(const struct cli *cli, int argc, char **argv, const struct cli_option *options)
    MUST_CHECK;

/* As cli_options() where there is no operand: false after a message, return CLI_USAGE then. */
bool cli_options_only(const struct cli *cli, int argc, char **argv,
                      const struct cli_option *options) MUST_CHECK;

enum { CLI_GLOBAL_NAMES = 5 };

/* The names of the global options, for suggestions; how many they are. */
size_t cli_global_names(const char *ret[CLI_GLOBAL_NAMES]);

/* Messages ------------------------------------------------------------------ */

/* "hooktrail check: …" on stderr, and where help is found. Returns CLI_USAGE. */
int cli_usage(const struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "hooktrail check: …" on stderr. Returns the exit code that fits err->code. */
int cli_fail(const struct cli *cli, const struct err *err);

/* Faults on stderr, one a line: "hooks.yaml:12: error: spec.hook.matcher: …". */
void cli_put_faults(const struct cli *cli, const struct faults *faults);

/* Configuration ------------------------------------------------------------- */

/*
 * What --config and --state say, loaded. NULL after faults, which have been printed:
 * return CLI_USAGE then. Warnings are printed too. Release with config_free().
 */
struct config *cli_config(const struct cli *cli) MUST_CHECK;

/*
 * Whether the state folder is there and may be looked into: CLI_DONE, or CLI_FAILED after
 * a message. What cannot be read must never look like what is not there.
 */
int cli_state(const struct cli *cli, const struct config *c) MUST_CHECK;

/* Output -------------------------------------------------------------------- */

/* The escape sequence that begins a colour, or ends it; "" where colour is off. */
const char *cli_color(const struct cli *cli, enum color color);
const char *cli_plain(const struct cli *cli);

/*
 * Write text from outside: control characters become \xHH, so that no record can
 * steer the terminal. Newlines too, unless keep_lines.
 */
void cli_put(FILE *out, struct slice text, bool keep_lines);

/* Print a value on stdout: two spaces deep on a terminal, else on one line. CLI_DONE or CLI_FAILED.
 */
int cli_print_json(const struct cli *cli, const json_t *value);

/*
 * False (and a message was printed) when what was written to stdout did not get there.
 * Done for every command at its end.
 */
bool cli_flush(const struct cli *cli) MUST_CHECK;

/* Tables -------------------------------------------------------------------- */

enum { CLI_TABLE_COLUMNS = 16 };

/* Rows of cells, each column as wide as its widest cell, counted in characters. */
struct cli_table {
    const struct cli *cli;
    size_t columns;
    const char *const *heads; /* borrowed; '>' before: aligned right; '=' or '>': never cut */
    size_t width[CLI_TABLE_COLUMNS]; /* characters */
    struct cli_cell *cells;          /* owned */
    size_t n, cap;
    struct buf text; /* of all cells */
};

/* heads: `columns` names (at most CLI_TABLE_COLUMNS), borrowed. */
void cli_table_init(struct cli_table *t, const struct cli *cli, const char *const *heads,
                    size_t columns);
void cli_table_done(struct cli_table *t);

/* Add the next cell, copied; rows fill from left to right. Control characters become \xHH. */
void cli_table_cell(struct cli_table *t, enum color color, struct slice text);
void cli_table_cellf(struct cli_table *t, enum color color, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Print heads and rows on stdout; on a terminal cells are cut, so that a row is one line. */
void cli_table_print(const struct cli_table *t);

/* Roles that stay ----------------------------------------------------------- */

/*
 * Block SIGINT, SIGTERM and SIGHUP, which *ret then holds: call it before any thread
 * is started, so that only the one who waits for them gets them.
 */
void cli_block_signals(sigset_t *ret);
