/*
 * loader_look: what became of messages that were seen before.
 *
 * A number that is not above the last one of its partition is a resend's, or a dead letter's
 * that was sent at last; or it was given away twice (loader_known.h). Who has it is known to
 * the tables and to the loader's own dead letters, which are asked here, for all of a
 * batch at once; a batch without such messages asks nothing.
 * Thread: the loader's.
 */
#pragma once

#include "sinks/loader_known.h"
#include "sinks/postgres_batch.h"

/* A message that is asked about. */
struct loader_asked {
    uint64_t seq;
    int64_t time_us;
    struct digest leaf;
    bool seen; /* its number is not above the last; else it is only looked at to be sure */
};

struct loader_question {
    struct postgres_batch *db;
    const char *state_dir; /* of the dead letters */
    struct slice journal;
    const struct loader_asked *asked;
    size_t n;
};

/*
 * Add to `known` who has the numbers of these messages of a journal. What was seen, is found
 * nowhere and is older than what retention keeps was removed by it: it has its number.
 */
enum sink_result loader_look(const struct loader_question *q, struct loader_known *known,
                             struct err *err) MUST_CHECK;
