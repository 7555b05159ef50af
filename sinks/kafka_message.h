/*
 * kafka_message: a record as the Kafka messages that carry it.
 *
 * CloudEvents 1.0, binary mode: the value is the record's bytes, its attributes
 * are headers (ce_id, ce_source, ce_type, ce_specversion, ce_time, ce_subject,
 * content-type), beside `journal` and `seq`, by which a consumer drops a resend.
 * Equal records make equal messages, however often they are sent.
 *
 *     hook_evaluation ─▶ .hook_evaluation, and .hook_execution for each hook that ran
 *     tool_execution  ─▶ .tool_execution
 *     all others      ─▶ .audit
 *
 * The key keeps together what belongs together: the thread, else the task run,
 * else the user, else the collector.
 */
#pragma once

#include <librdkafka/rdkafka.h>

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "sinks/sink.h"

enum kafka_topic {
    KAFKA_HOOK_EVALUATION,
    KAFKA_HOOK_EXECUTION,
    KAFKA_TOOL_EXECUTION,
    KAFKA_AUDIT,
    KAFKA_TOPICS, /* how many */
};

/* "hook_evaluation", …: a topic's name behind the prefix and a dot. */
const char *kafka_topic_name(enum kafka_topic t);

struct kafka_message {
    enum kafka_topic topic;
    struct slice key;
    struct slice value;
    struct slice type;    /* ce_type */
    struct slice id;      /* ce_id */
    struct slice source;  /* ce_source */
    struct slice subject; /* ce_subject; empty: none */
    struct slice time;    /* ce_time */
    struct slice seq;     /* in decimal digits */
};

/* Where messages are made, for one record after another. */
struct kafka_space {
    struct arena arena;  /* the messages; reset it when they are no longer needed */
    struct buf identity; /* of an evaluation: scratch, as the next */
    struct buf row;      /* of an execution; what all messages of a record share */
};

/* Messages together stay below limit_bytes; keep_bytes as of an arena. */
void kafka_space_init(struct kafka_space *s, size_t limit_bytes, size_t keep_bytes);
void kafka_space_done(struct kafka_space *s);

/*
 * The messages of one record, in the space; slices may point into r->json.
 * SINK_REJECT: its bytes are no record. SINK_BROKEN: a newer program's.
 */
enum sink_result kafka_messages(const struct sink_record *r, struct kafka_space *s,
                                struct kafka_message **ret, size_t *ret_n, struct err *err)
    MUST_CHECK;

/* The headers of one message; owned by the caller until a produce call takes them. */
rd_kafka_headers_t *kafka_headers(const struct kafka_message *m, struct slice journal);
