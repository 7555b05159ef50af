/*
 * kafka_producer: the transactional producer of one journal, and where that stands.
 *
 * Its transactional id is made of topic prefix, sink and journal. Who opens one fences an
 * older one, and ends what that left open; only then is the position read. For late records
 * there is another id, PREFIX.SINK.JOURNAL.late: it fences no ship that is at work.
 * Thread: the sink's.
 */
#pragma once

#include <stdint.h>

#include "sinks/kafka_client.h"
#include "sinks/kafka_ends.h"

/* Whose producer it is. All borrowed, and outlives the producer. */
struct kafka_owner {
    struct kafka_settings set;
    const char *sink;       /* its name */
    const char *state_dir;  /* NULL: nothing is kept beside the topics */
    struct kafka_ends ends; /* of all its producers */
    bool late;              /* for late records alone, which move no position */
    bool looked;            /* the ends were compared with what is there */
    int64_t timeout_ms;
};

struct kafka_producer {
    struct kafka_owner *owner;  /* borrowed */
    char journal[40];           /* its id; "": nobody's */
    struct kafka_client client; /* open while client.rk is there */
    struct sink_position at;    /* where the journal stands: the topic of positions says so */
    uint64_t used;              /* the higher, the later */

    /* The transaction of now. */
    int64_t begun_ms;           /* monotonic */
    int64_t limit_ms;           /* after so long the broker ends it */
    bool in_doubt;              /* its commit got no answer: ask again before anything else */
    uint64_t doubt_to;          /* its last sequence */
    rd_kafka_resp_err_t failed; /* the first refusal of a message */
    uint64_t failed_seq;        /* whose; 0: nobody's, or several records' */

    uint64_t bad_seq; /* a record that was refused in a larger span; 0: none */
};

/*
 * Open the producer of a journal; one that is open is closed before.
 * SINK_DOWN: not reachable, or not within the time; SINK_BROKEN: refused, or the topic of
 * positions knows less than was committed through it.
 */
enum sink_result kafka_producer_open(struct kafka_producer *p, struct err *err) MUST_CHECK;

/* What it has begun and not committed is never seen. Whose it is stays. */
void kafka_producer_close(struct kafka_producer *p);

/* Take over an error object: its words to *err, what to do about it as the result. */
enum sink_result kafka_producer_fail(struct kafka_producer *p, rd_kafka_error_t *error,
                                     const char *what, struct err *err);
