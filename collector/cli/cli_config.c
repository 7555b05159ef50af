#include "collector/cli/cli.h"

struct config *cli_config(const struct cli *cli)
{
    const struct config_options o = { .file = cli->config, .state = cli->state };
    CLEANUP(faults_done) struct faults faults;

    faults_init(&faults);

    struct config *c = config_load(&o, &faults);

    faults_print(&faults, stderr);
    return c;
}
