/*
 * kafka_flight: which records' messages are on their way, and which arrived.
 *
 * A span that was refused or not acknowledged in time comes again, whole or in
 * halves. What librdkafka still carries must not be sent a second time, and what
 * has arrived neither: a record is sent again only when one of its messages
 * failed. So an outage neither repeats nor reorders anything; only a new producer
 * (a restart) can repeat, with equal ids.
 *
 * A record may have several messages (an evaluation and its executions); it has
 * arrived when all of them have.
 * Thread: the sink's.
 */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdint.h>

#include "collector/base/slice.h"

struct kafka_flight;
struct kafka_block;

/* One record on its way. Stays in place until forgotten: librdkafka holds its address. */
struct kafka_entry {
    struct kafka_flight *flight;
    uint64_t seq;
    uint32_t pending;           /* messages without an answer yet */
    rd_kafka_resp_err_t failed; /* the first refusal; NO_ERROR: none */
    struct kafka_entry *next;   /* of the next higher sequence */
};

/* The records of one journal that are on their way. */
struct kafka_flight {
    char journal[40];          /* its id */
    struct kafka_entry *first; /* by sequence */
    struct kafka_entry *last;
    struct kafka_entry *found; /* the last one looked for: the next is behind it; may be NULL */
    struct kafka_entry *spare; /* forgotten ones, for the next span */
    struct kafka_entry *spare_last;
    struct kafka_block *blocks; /* where all entries lie; owned */
    uint64_t pending;           /* of all of them */
    uint64_t failed;            /* records with a refusal */
    uint64_t resent;            /* records sent more than once */
    struct kafka_flight *next;
};

/* The flight of a journal in the list *head, made when it is new. The caller owns the list. */
struct kafka_flight *kafka_flight_of(struct kafka_flight **head, struct slice journal);

/* True when the messages of record seq are to be sent: it is new, or failed before. */
bool kafka_flight_wants(struct kafka_flight *f, uint64_t seq);

/*
 * The entry of record seq, and whether its messages are to be sent: it is new, or
 * failed before.
 */
struct kafka_entry *kafka_flight_enter(struct kafka_flight *f, uint64_t seq, bool *ret_send);

/* One message of the entry is on its way; and got its answer. */
void kafka_entry_sent(struct kafka_entry *e);
void kafka_entry_answered(struct kafka_entry *e, rd_kafka_resp_err_t code);

/*
 * Is a record up to `to` on its way in part alone, the rest refused (the queue was full)? Until
 * it is answered, and sent again, no later record may pass it.
 */
bool kafka_flight_torn(const struct kafka_flight *f, uint64_t to);

/* Has a record up to `to` a message without an answer? */
bool kafka_flight_waits(const struct kafka_flight *f, uint64_t to);

/* How the records from..to stand: still `pending`, and the first refusal among them. */
struct kafka_standing {
    uint64_t pending;
    rd_kafka_resp_err_t failed;
    uint64_t failed_seq;
};
struct kafka_standing kafka_flight_standing(const struct kafka_flight *f, uint64_t from,
                                            uint64_t to);

/* Forget records up to `to`, all of them answered. */
void kafka_flight_forget(struct kafka_flight *f, uint64_t to);

/* Release the whole list; only once no producer holds an entry any more. */
void kafka_flights_free(struct kafka_flight *head);
