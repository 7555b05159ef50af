#include "collector/cli/cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/base/suggest.h"

enum when { WHEN_TERMINAL, WHEN_ALWAYS, WHEN_NEVER };

struct globals {
    struct cli cli;
    enum when colored;
    bool help;
};

/*
 * The value of option `name` when argv[*i] is `--name=VALUE` or `--name VALUE`, and
 * *i then stands on its last word; "" where there is none. NULL when it is another word.
 */
static const char *value_of(const char *name, char **argv, int *i)
{
    size_t len = strlen(name);
    const char *word = argv[*i];

    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, len) != 0) {
        return NULL;
    }
    if (word[2 + len] == '=') {
        return word + 2 + len + 1;
    }
    if (word[2 + len] != '\0') {
        return NULL;
    }
    return argv[*i + 1] ? argv[++*i] : "";
}

/* Read a word of --color. False when it is none. */
static bool set_color(struct globals *g, const char *word)
{
    static const char *const words[] = { "auto", "always", "never" };

    for (int i = 0; i < 3; i++) {
        if (strcmp(word, words[i]) == 0) {
            g->colored = (enum when)i;
            return true;
        }
    }
    return false;
}

enum taken { TAKEN_NO, TAKEN_YES, TAKEN_BAD };

size_t cli_global_names(const char *ret[CLI_GLOBAL_NAMES])
{
    static const char *const names[CLI_GLOBAL_NAMES] = { "config", "state", "json", "color",
                                                         "help" };

    memcpy(ret, names, sizeof(names));
    return CLI_GLOBAL_NAMES;
}

/* Keep a value that is given once. False after a message. */
static bool set_once(const char **to, const char *name, const char *value)
{
    if (*to) {
        (void)fprintf(stderr, "hooktrail: --%s is given twice\n", name);
        return false;
    }
    *to = value;
    return true;
}

static enum taken take_value(struct globals *g, const char *name, const char *value)
{
    if (strcmp(name, "color") != 0) {
        const char **to = strcmp(name, "config") == 0 ? &g->cli.config : &g->cli.state;

        return set_once(to, name, value) ? TAKEN_YES : TAKEN_BAD;
    }
    if (!set_color(g, value)) {
        (void)fprintf(stderr, "hooktrail: --color takes auto, always or never\n");
        return TAKEN_BAD;
    }
    return TAKEN_YES;
}

/* Take argv[*i] (and its value) when it is a global option. */
static enum taken take_global(struct globals *g, char **argv, int *i)
{
    static const char *const with_value[] = { "config", "state", "color" };
    const char *word = argv[*i];

    if (strcmp(word, "--json") == 0) {
        g->cli.json = true;
        return TAKEN_YES;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        g->help = true;
        return TAKEN_YES;
    }
    for (size_t k = 0; k < sizeof(with_value) / sizeof(with_value[0]); k++) {
        const char *value = value_of(with_value[k], argv, i);

        if (value && !*value) {
            (void)fprintf(stderr, "hooktrail: %s needs a value\n", word);
            return TAKEN_BAD;
        }
        if (value) {
            return take_value(g, with_value[k], value);
        }
    }
    return TAKEN_NO;
}

/* Take the global options out of argv; *ret_argc words stay. */
static bool take_globals(struct globals *g, int argc, char **argv, int *ret_argc)
{
    int kept = 1;
    bool operands = false;

    for (int i = 1; i < argc; i++) {
        enum taken taken = operands ? TAKEN_NO : take_global(g, argv, &i);

        if (taken == TAKEN_BAD) {
            return false;
        }
        if (taken == TAKEN_NO) {
            operands = operands || strcmp(argv[i], "--") == 0;
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    *ret_argc = kept;
    return true;
}

/* Whether what is printed there wants colour (no-color.org). */
static bool wants_color(const struct globals *g, bool terminal)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool dumb = !term || strcmp(term, "dumb") == 0;

    switch (g->colored) {
    case WHEN_ALWAYS:
        return true;
    case WHEN_NEVER:
        return false;
    case WHEN_TERMINAL:
        break;
    }
    return terminal && !dumb && (!no_color || !*no_color);
}

static void look_at_terminal(struct globals *g)
{
    struct winsize size = { 0 };

    g->cli.terminal = isatty(STDOUT_FILENO) == 1;
    if (g->cli.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        g->cli.width = size.ws_col;
    }
    g->cli.color = wants_color(g, g->cli.terminal);
    g->cli.color_err = wants_color(g, isatty(STDERR_FILENO) == 1);
}

static const struct cli_command *find(const struct cli_command *const *commands, size_t n,
                                      const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static int unknown(const struct cli_command *const *commands, size_t n, const char *name)
{
    const char **names = xcalloc(n + 1, sizeof(*names));

    for (size_t i = 0; i < n; i++) {
        names[i] = commands[i]->name;
    }

    const char *near = suggest_name(slice_from_cstr(name), names, n);

    (void)fprintf(stderr, "hooktrail: there is no command '%s'%s%s%s\n", name,
                  near ? "; did you mean '" : "", near ? near : "",
                  near ? "'?" : "; see 'hooktrail help'");
    free(names);
    return CLI_USAGE;
}

static int help(const struct cli_command *c)
{
    (void)printf("Usage: hooktrail [--config FILE] [--state DIR] %s%s%s\n\n%s\n", c->name,
                 *c->usage ? " " : "", c->usage, c->help);
    return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
}

/* The words of argv from `first` on are the command and its arguments. */
static int run(struct globals *g, const struct cli_command *c, int argc, char **argv)
{
    g->cli.command = c->name;
    look_at_terminal(g);

    int code = c->run(&g->cli, argc, argv);

    /* What cannot be shown has not been done, whatever the answer is. */
    return cli_flush(&g->cli) ? code : CLI_FAILED;
}

static int unknown_option(const char *word)
{
    const char *names[CLI_GLOBAL_NAMES];
    size_t n = cli_global_names(names);
    const char *near = strlen(word) > 2 ? suggest_name(slice_from_cstr(word + 2), names, n) : NULL;

    (void)fprintf(stderr, "hooktrail: unknown option '%s'%s%s%s\n", word,
                  near ? "; did you mean '--" : "", near ? near : "",
                  near ? "'?" : "; see 'hooktrail help'");
    return CLI_USAGE;
}

int cli_main(int argc, char **argv, const struct cli_command *const *commands, size_t n)
{
    struct globals g = { 0 };
    struct err err;

    if (!fs_fill_standard(&err)) {
        (void)fprintf(stderr, "hooktrail: %s\n", err.text);
        return CLI_FAILED;
    }
    /* A reader that goes away (`| head`) shows as a failed write, not as our death. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (!take_globals(&g, argc, argv, &argc)) {
        return CLI_USAGE;
    }
    if (argc < 2) {
        (void)fprintf(stderr, "hooktrail: no command; see 'hooktrail help'\n");
        return CLI_USAGE;
    }

    const struct cli_command *c = find(commands, n, argv[1]);

    if (!c && argv[1][0] == '-') {
        return unknown_option(argv[1]);
    }
    if (!c) {
        return unknown(commands, n, argv[1]);
    }
    return g.help ? help(c) : run(&g, c, argc - 1, argv + 1);
}
