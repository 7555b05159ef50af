/*
 * loader_message: what a message of Kafka says, as a record of ours.
 * Thread: any, of one message one at a time.
 */
#pragma once

#include <librdkafka/rdkafka.h>

#include "collector/base/arena.h"
#include "sinks/sink.h"

/* Texts lie in the message. */
struct loader_message {
    struct sink_record record;
    struct slice journal;
    int64_t time_us;
};

/* Whose it is, and its number there, by its headers; false when they say nothing of the kind. */
bool loader_message_place(const rd_kafka_message_t *m, struct slice *ret_journal, uint64_t *ret_seq)
    MUST_CHECK;

/*
 * Read it, as rows_of() takes a record: a type that is not known is kept, what is newer than
 * we are waits (SINK_BROKEN), and what is no record of ours is SINK_REJECT; *ret then has what
 * the headers said. The arena is cleared before and in use for the head.
 */
enum sink_result loader_message_read(const rd_kafka_message_t *m, struct arena *a,
                                     struct loader_message *ret, struct err *err) MUST_CHECK;

/*
 * Keep it as a dead letter of the sink postgres. What is no record of ours has a place for
 * its name, and may be larger than any record: then its beginning is kept.
 */
bool loader_message_letter(const rd_kafka_message_t *m, struct arena *a, const char *state_dir,
                           const char *why, struct err *err) MUST_CHECK;
