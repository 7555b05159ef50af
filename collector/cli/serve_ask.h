/* serve_ask: what the commands that ask one question and end have in common. */
#pragma once

#include "collector/cli/cli.h"
#include "collector/cli/serve_store.h"
#include "queries/answer.h"

struct serve_ask {
    struct config *config; /* owned */
    struct store *store;   /* owned */
    struct arena arena;    /* of the answer */
    struct answer_source source;
};

/* Load the configuration and open the store. CLI_DONE, or the exit code after a message. */
int serve_ask_open(const struct cli *cli, struct serve_ask *ret) MUST_CHECK;
void serve_ask_close(struct serve_ask *a); /* for CLEANUP; accepts a zero one */

/* Where a question's answer is drawn. */
struct paint serve_ask_paint(const struct cli *cli);

/* Say on stderr that an answer may lack the newest records; nothing when n is 0. */
void serve_ask_tell_lag(const struct cli *cli, uint64_t n);
