#include "collector/cli/commands.h"

int main(int argc, char **argv)
{
    static const struct cli_command *const commands[] = {
        &check_command, &collect_command, &config_command, &dispatch_command, &status_command,
        &tail_command,  &token_command,   &verify_command, &version_command,
    };

    return cli_main(argc, argv, commands, sizeof(commands) / sizeof(commands[0]));
}
