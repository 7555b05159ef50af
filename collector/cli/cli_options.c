#include "collector/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

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

int cli_options(const struct cli *cli, int argc, char **argv, const struct cli_option *options)
{
    struct option known[OPTIONS_MAX + 1] = { 0 };

    for (size_t i = 0; options[i].name && i < OPTIONS_MAX; i++) {
        known[i].name = options[i].name;
        known[i].has_arg = takes_value(&options[i]) ? required_argument : no_argument;
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
            (void)cli_usage(cli, "unknown option '%s'", argv[optind - 1]);
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
        (void)cli_usage(cli, "takes no operand");
    }
    return first == argc;
}
