#include "collector/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

struct config *cli_config(const struct cli *cli)
{
    const struct config_options o = { .file = cli->config, .state = cli->state };
    CLEANUP(faults_done) struct faults faults;

    faults_init(&faults);

    struct config *c = config_load(&o, &faults);

    cli_put_faults(cli, &faults);
    return c;
}

int cli_state(const struct cli *cli, const struct config *c)
{
    DIR *d = opendir(c->state);
    bool open = d && access(c->state, X_OK) == 0;
    int why = errno;

    if (d) {
        (void)closedir(d);
    }
    if (open) {
        return CLI_DONE;
    }
    if (why == ENOENT) {
        (void)fprintf(stderr, "hooktrail %s: no state folder at %s; is --state right?\n",
                      cli->command, c->state);
    } else {
        (void)fprintf(stderr, "hooktrail %s: state folder %s: %s\n", cli->command, c->state,
                      strerror(why));
    }
    return CLI_FAILED;
}
