#include "collector/cli/commands.h"

static int run(const struct cli *cli, int argc, char **argv)
{
    static const struct cli_option none[] = { { 0 } };

    if (!cli_options_only(cli, argc, argv, none)) {
        return CLI_USAGE;
    }
    if (cli->json) {
        (void)puts("{\"version\":\"" HOOKTRAIL_VERSION "\"}");
        return CLI_DONE;
    }
    (void)puts("hooktrail " HOOKTRAIL_VERSION);
    return CLI_DONE;
}

const struct cli_command version_command = { "version", run, "", "Print the version." };
