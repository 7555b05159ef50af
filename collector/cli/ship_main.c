#include <malloc.h>

#include "collector/cli/commands.h"

int main(int argc, char **argv)
{
    static const struct cli_command *const commands[] = {
        &ship_command,
        &deadletter_command,
        &version_command,
    };

    /*
     * librdkafka frees a message's headers one by one, all of them small. glibc keeps such
     * chunks apart and merges them again and again: a tenth of what a delivery takes.
     */
    (void)mallopt(M_MXFAST, 0);
    return cli_main(argc, argv, commands, sizeof(commands) / sizeof(commands[0]));
}
