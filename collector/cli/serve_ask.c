#include "collector/cli/serve_ask.h"

#include <inttypes.h>

int serve_ask_open(const struct cli *cli, struct serve_ask *ret)
{
    struct serve_store place;
    struct err err;

    *ret = (struct serve_ask){ .config = cli_config(cli) };
    arena_init(&ret->arena, ANSWER_ARENA_BYTES);
    if (!ret->config) {
        return CLI_USAGE;
    }
    if (!serve_store_find(ret->config, &ret->arena, &place, &err) ||
        !serve_store_open(&place, &ret->store, &err)) {
        return cli_fail(cli, &err);
    }
    ret->source = (struct answer_source){ .store = ret->store,
                                          .state_dir = ret->config->state,
                                          .max_rows = ret->config->serve.max_rows };
    return CLI_DONE;
}

void serve_ask_close(struct serve_ask *a)
{
    serve_store_closep(&a->store);
    arena_clear(&a->arena);
    config_free(a->config);
    *a = (struct serve_ask){ 0 };
}

struct paint serve_ask_paint(const struct cli *cli)
{
    return (struct paint){ .out = stdout, .color = cli->color, .width = (int)cli->width };
}

void serve_ask_tell_lag(const struct cli *cli, uint64_t n)
{
    if (n > 0) {
        (void)fprintf(stderr,
                      "hooktrail %s: %" PRIu64 " record%s not shipped yet; the newest may lack "
                      "here\n",
                      cli->command, n, n == 1 ? " is" : "s are");
    }
}
