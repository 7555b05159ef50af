/* What the roles that stay have in common. */
#include <signal.h>

#include "collector/cli/cli.h"

void cli_block_signals(sigset_t *ret)
{
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGINT);
    (void)sigaddset(ret, SIGTERM);
    (void)sigaddset(ret, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, ret, NULL);
}
