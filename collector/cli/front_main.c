#include "collector/cli/front.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/fs.h"
#include "collector/base/suggest.h"

/* True for a global option that takes the next word as its value. */
static bool takes_next(const char *word)
{
    static const char *const names[] = { "--config", "--state", "--color" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(word, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The same, its value behind a =. */
static bool has_value(const char *word)
{
    static const char *const starts[] = { "--config=", "--state=", "--color=" };

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (strncmp(word, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_global(const char *word)
{
    return takes_next(word) || has_value(word) || strcmp(word, "--json") == 0;
}

/* The index of the command in argv: the first word that is no option; argc: none. */
static int command_at(int argc, char **argv)
{
    int i = 1;

    while (i < argc && argv[i][0] == '-') {
        i += takes_next(argv[i]) ? 2 : 1;
    }
    return i < argc ? i : argc;
}

static bool wants(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], option) == 0) {
            return true;
        }
    }
    return false;
}

static int version(bool json)
{
    const char *text =
        json ? "{\"version\":\"" HOOKTRAIL_VERSION "\"}" : "hooktrail " HOOKTRAIL_VERSION;

    return puts(text) >= 0 && fflush(stdout) == 0 ? FRONT_DONE : FRONT_FAILED;
}

static int unknown_option(const char *word)
{
    static const char *const names[] = { "--config", "--state", "--json",
                                         "--color",  "--help",  "--version" };
    const char *near = suggest_name(slice_from_cstr(word), names, sizeof(names) / sizeof(names[0]));

    (void)fprintf(stderr, "hooktrail: unknown option '%s'%s%s%s\n", word,
                  near ? "; did you mean '" : "", near ? near : "",
                  near ? "'?" : "; see 'hooktrail help'");
    return FRONT_USAGE;
}

/* There is no command: what is there instead? */
static int no_command(int argc, char **argv)
{
    if (wants(argc, argv, "--version") || wants(argc, argv, "-V")) {
        return version(wants(argc, argv, "--json"));
    }
    if (wants(argc, argv, "--help") || wants(argc, argv, "-h")) {
        return front_help(0, NULL);
    }
    for (int i = 1; i < argc; i += takes_next(argv[i]) ? 2 : 1) {
        if (takes_next(argv[i]) && i + 1 == argc) {
            (void)fprintf(stderr, "hooktrail: %s needs a value\n", argv[i]);
            return FRONT_USAGE;
        }
        if (!takes_next(argv[i]) && !is_global(argv[i])) {
            return unknown_option(argv[i]);
        }
    }
    (void)fprintf(stderr, "hooktrail: no command; see 'hooktrail help'\n");
    return FRONT_USAGE;
}

/* Take global options with a value out of words; the others stay. Returns how many stay. */
static int take_globals(struct front_globals *g, int argc, char **argv)
{
    int kept = 0;

    for (int i = 0; i < argc; i++) {
        bool joined = has_value(argv[i]);
        bool apart = takes_next(argv[i]) && i + 1 < argc;

        if ((!joined && !apart) || g->n + 2 > FRONT_GLOBALS) {
            argv[kept++] = argv[i];
            continue;
        }
        g->words[g->n++] = argv[i];
        if (apart) {
            g->words[g->n++] = argv[++i];
        }
    }
    return kept;
}

/* What is left of a command that takes nothing; true after a message. */
static bool has_more(const char *name, int argc, char **argv)
{
    if (argc < 2) {
        return false;
    }
    if (argv[1][0] == '-' && !is_global(argv[1])) {
        (void)unknown_option(argv[1]);
    } else if (argv[1][0] == '-') {
        (void)fprintf(stderr, "hooktrail %s: %s means nothing here\n", name, argv[1]);
    } else {
        (void)fprintf(stderr, "hooktrail %s: takes no operand, not '%s'\n", name, argv[1]);
    }
    return true;
}

static int run(int argc, char **argv, int at)
{
    struct front_globals g = { 0 };
    int before = take_globals(&g, at - 1, argv + 1);
    int left = take_globals(&g, argc - at, argv + at);

    if (before > 0) {
        (void)has_more("run", 2, argv);
        return FRONT_USAGE;
    }
    return has_more("run", left, argv + at) ? FRONT_USAGE : front_run(&g);
}

/* Of the global options --json alone says something here; the others are taken as they are. */
static int print_version(int argc, char **argv, int at)
{
    struct front_globals ignored = { 0 };
    bool json = wants(argc, argv, "--json");
    int left = take_globals(&ignored, argc - at, argv + at);
    int kept = 1;

    for (int i = 1; i < left; i++) {
        if (strcmp(argv[at + i], "--json") != 0) {
            argv[at + kept++] = argv[at + i];
        }
    }
    return has_more("version", kept, argv + at) ? FRONT_USAGE : version(json);
}

/* A command of ours. Every one of them explains itself. */
static int own(const char *name, int argc, char **argv, int at)
{
    bool help = wants(argc, argv, "--help") || wants(argc, argv, "-h");

    if (help) {
        char *words[] = { argv[0], argv[at] };

        return front_help(2, words);
    }
    if (strcmp(name, "run") == 0) {
        return run(argc, argv, at);
    }
    if (strcmp(name, "version") == 0) {
        return print_version(argc, argv, at);
    }
    if (strcmp(name, "completion") == 0) {
        return front_completion(argc - at, argv + at);
    }
    return front_help(argc - at, argv + at);
}

/* The first word before the command that is no option of ours; NULL: none. */
static const char *unknown_before(int at, char **argv)
{
    for (int i = 1; i < at; i += takes_next(argv[i]) ? 2 : 1) {
        if (!is_global(argv[i])) {
            return argv[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int at = command_at(argc, argv);
    struct err err;

    if (!fs_fill_standard(&err)) {
        (void)fprintf(stderr, "hooktrail: %s\n", err.text);
        return FRONT_FAILED;
    }

    if (at == argc) {
        return no_command(argc, argv);
    }

    const struct front_command *c = front_find(argv[at]);

    if (!c) {
        /* Behind a misspelt option this may be that option's value. */
        const char *option = unknown_before(at, argv);

        return option ? unknown_option(option) : front_unknown(argv[at]);
    }
    return c->role ? front_exec(c->role, argv + 1) : own(c->name, argc, argv, at);
}
