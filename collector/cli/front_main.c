#include "collector/cli/front.h"

#include <stdio.h>
#include <string.h>

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

static int version(void)
{
    return puts("hooktrail " HOOKTRAIL_VERSION) >= 0 && fflush(stdout) == 0 ? FRONT_DONE
                                                                            : FRONT_FAILED;
}

/* Take --config and --state out of words; the others stay. Returns how many stay. */
static int take_globals(struct front_globals *g, int argc, char **argv)
{
    int kept = 0;

    for (int i = 0; i < argc; i++) {
        bool joined = strncmp(argv[i], "--config=", 9) == 0 || strncmp(argv[i], "--state=", 8) == 0;
        bool apart = takes_next(argv[i]) && i + 1 < argc;

        if ((joined || apart) && g->n < 6) {
            g->words[g->n++] = argv[i];
            if (apart) {
                g->words[g->n++] = argv[++i];
            }
        } else {
            argv[kept++] = argv[i];
        }
    }
    return kept;
}

static int run(int argc, char **argv, int at)
{
    struct front_globals g = { 0 };
    int before = take_globals(&g, at - 1, argv + 1);
    int left = take_globals(&g, argc - at, argv + at);

    if (before > 0) {
        (void)fprintf(stderr, "hooktrail: unknown option '%s'; see 'hooktrail help'\n", argv[1]);
        return FRONT_USAGE;
    }
    return front_run(&g, left, argv + at);
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
        return version();
    }
    if (strcmp(name, "completion") == 0) {
        return front_completion(argc - at, argv + at);
    }
    return front_help(argc - at, argv + at);
}

int main(int argc, char **argv)
{
    int at = command_at(argc, argv);

    if (at == argc) {
        if (wants(argc, argv, "--version")) {
            return version();
        }
        if (wants(argc, argv, "--help") || wants(argc, argv, "-h")) {
            return front_help(0, NULL);
        }
        (void)fprintf(stderr, "hooktrail: no command; see 'hooktrail help'\n");
        return FRONT_USAGE;
    }

    const struct front_command *c = front_find(argv[at]);

    if (!c) {
        return front_unknown(argv[at]);
    }
    return c->role ? front_exec(c->role, argv + 1) : own(c->name, argc, argv, at);
}
