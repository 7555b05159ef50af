#include "collector/cli/commands.h"

int main(int argc, char **argv)
{
    static const struct cli_command *const commands[] = {
        &ship_command,
        &deadletter_command,
        &version_command,
    };

    return cli_main(argc, argv, commands, sizeof(commands) / sizeof(commands[0]));
}
