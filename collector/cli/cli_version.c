#include "collector/cli/commands.h"

static int run(const struct cli *cli, int argc, char **argv)
{
    static const struct cli_option none[] = { { 0 } };

    if (cli_options(cli, argc, argv, none) < 0) {
        return CLI_USAGE;
    }
    (void)puts("hooktrail " HOOKTRAIL_VERSION);
    return CLI_DONE;
}

const struct cli_command version_command = { "version", run, "", "Print the version." };
