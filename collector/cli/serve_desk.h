/*
 * serve_desk: the threads that answer questions, so that no listener waits.
 *
 *     listener ─▶ desk_put() ─▶ queue ─▶ one of DESK_THREADS, each with a store of its own
 *                    └ full: 503                  └─▶ web_reply()
 *
 * A store that cannot be opened is tried again with the next question: serve may start
 * before there is anything to serve. One that was open and is lost is opened anew, and
 * asked once more. DESK_READY asks it too. The log says when it stops and begins to answer.
 */
#pragma once

#include <stdint.h>

#include "collector/cli/serve_store.h"
#include "collector/web/web.h"

enum {
    DESK_THREADS = 4, /* questions answered side by side; the rest waits */
    DESK_QUEUE = 64,  /* that wait; beyond they are refused */
};

enum desk_question { DESK_READY, DESK_EVALUATION, DESK_TRACE, DESK_WHY, DESK_QUESTIONS };

struct desk;

struct desk_stats {
    uint64_t answered[DESK_QUESTIONS];
    uint64_t failed;  /* answered with an error that is ours or the store's */
    uint64_t refused; /* the queue was full */
    uint64_t waiting;
};

/* Everything is borrowed until desk_close(). */
bool desk_open(const struct serve_store *place, const struct config *config, struct desk **ret,
               struct err *err) MUST_CHECK;
/* Answer what waits, then end. Accepts NULL. */
void desk_close(struct desk *d);

/* Take the request over; it is answered in any case. Thread: any. */
void desk_put(struct desk *d, enum desk_question question, struct web_request *r);

/* Thread: any. */
void desk_stats(struct desk *d, struct desk_stats *ret);
