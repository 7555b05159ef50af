#include "collector/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/suggest.h"

enum { OPTIONS_MAX = 32 }; /* of one command */

static bool takes_value(const struct cli_option *o)
{
    return o->value || o->number;
}

static bool set_number(const struct cli *cli, const struct cli_option *o, const char *text)
{
    char *end = NULL;

    errno = 0;

    long long v = strtoll(text, &end, 10);

    if (errno != 0 || end == text || *end != '\0' || v < o->min || v > o->max) {
        (void)cli_usage(cli, "--%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'",
                        o->name, o->min, o->max, text);
        return false;
    }
    *o->number = v;
    return true;
}

static bool set(const struct cli *cli, const struct cli_option *o, const char *text)
{
    if (o->number) {
        return set_number(cli, o, text);
    }
    if (o->value) {
        *o->value = text;
    } else {
        *o->flag = true;
    }
    return true;
}

/* The option that a word names in full, "--NAME" or "--NAME=VALUE"; NULL: none. */
static const struct cli_option *find(const struct cli_option *options, struct slice word)
{
    struct slice name;
    struct slice value;

    (void)slice_cut((struct slice){ .ptr = word.ptr + 2, .len = word.len - 2 }, '=', &name, &value);
    for (size_t i = 0; options[i].name; i++) {
        if (slice_equal(name, slice_from_cstr(options[i].name))) {
            return &options[i];
        }
    }
    return NULL;
}

static void tell_unknown(const struct cli *cli, const struct cli_option *options, const char *word)
{
    const char *names[OPTIONS_MAX + CLI_GLOBAL_NAMES];
    size_t n = cli_global_names(names);

    for (size_t i = 0; options[i].name && i < OPTIONS_MAX; i++) {
        names[n++] = options[i].name;
    }

    const char *near = suggest_name(slice_from_cstr(word + 2), names, n);

    if (near) {
        (void)fprintf(stderr, "hooktrail %s: unknown option '%s'; did you mean '--%s'?\n",
                      cli->command, word, near);
    } else {
        (void)cli_usage(cli, "unknown option '%s'", word);
    }
}

/*
 * getopt takes abbreviations, and the last of two values, both in silence: a script that
 * does so breaks with the next option that is new, or loses what was meant.
 */
static bool check_words(const struct cli *cli, int argc, char **argv,
                        const struct cli_option *options)
{
    bool given[OPTIONS_MAX] = { false };

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            continue;
        }

        const struct cli_option *o = find(options, slice_from_cstr(argv[i]));

        if (!o) {
            tell_unknown(cli, options, argv[i]);
            return false;
        }
        if (!takes_value(o) && strchr(argv[i], '=')) {
            (void)cli_usage(cli, "--%s takes no value", o->name);
            return false;
        }
        if (takes_value(o) && given[o - options]) {
            (void)cli_usage(cli, "--%s is given twice", o->name);
            return false;
        }
        given[o - options] = true;
        i += takes_value(o) && !strchr(argv[i], '=') ? 1 : 0;
    }
    return true;
}

int cli_options(const struct cli *cli, int argc, char **argv, const struct cli_option *options)
{
    struct option known[OPTIONS_MAX + 1] = { 0 };

    for (size_t i = 0; options[i].name && i < OPTIONS_MAX; i++) {
        known[i].name = options[i].name;
        known[i].has_arg = takes_value(&options[i]) ? required_argument : no_argument;
    }
    if (!check_words(cli, argc, argv, options)) {
        return -1;
    }
    opterr = 0;
    optind = 0; /* glibc: begin anew, whatever was parsed before */
    for (;;) {
        int at = -1;
        int c = getopt_long(argc, argv, ":", known, &at);

        if (c == -1) {
            return optind;
        }
        if (c == ':') {
            (void)cli_usage(cli, "%s needs a value", argv[optind - 1]);
            return -1;
        }
        if (c != 0) {
            (void)cli_usage(cli, "unknown option '-%c'", optopt);
            return -1;
        }
        if (!set(cli, &options[at], optarg)) {
            return -1;
        }
    }
}

bool cli_options_only(const struct cli *cli, int argc, char **argv,
                      const struct cli_option *options)
{
    int first = cli_options(cli, argc, argv, options);

    if (first >= 0 && first < argc) {
        (void)cli_usage(cli, "takes no operand, not '%s'", argv[first]);
    }
    return first == argc;
}
