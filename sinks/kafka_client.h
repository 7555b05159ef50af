/*
 * kafka_client: one librdkafka producer, what it last complained of, and the
 * topics that it writes.
 * Thread: the sink's. librdkafka's callbacks come only out of its poll calls there.
 */
#pragma once

#include "sinks/kafka_message.h"
#include "sinks/kafka_settings.h"
#include "sinks/kafka_trouble.h"

struct kafka_client {
    /* Set by the owner before the client is opened; on_delivery may be NULL. */
    bool keeps_positions; /* the topic of positions is among its topics */
    void (*on_delivery)(void *ctx, void *opaque, const rd_kafka_message_t *m);
    void *ctx;

    rd_kafka_t *rk;                         /* owned; NULL while closed */
    rd_kafka_topic_t *topics[KAFKA_TOPICS]; /* owned */
    rd_kafka_topic_t *positions;            /* owned; NULL where it keeps none */
    int32_t broker;            /* a broker's number, once the topics are open; -1: none is known */
    long limits[KAFKA_TOPICS]; /* max.message.bytes of each, as last told; LONG_MAX: unknown */
    int positions_parts;       /* partitions that the topic of positions was found with; 0: none */
    char positions_policy[32]; /* its cleanup.policy, as last told; "": unknown */
    struct kafka_trouble trouble;
    char prefix[200];
};

/*
 * A producer with the settings and `extra` properties. Nothing is sent yet; a
 * broker that cannot be reached is no error here.
 */
bool kafka_client_open(struct kafka_client *c, const struct kafka_settings *set,
                       const char *const *extra, struct err *err) MUST_CHECK;

/* A property as it is in force, cut where it is longer; "" where librdkafka does not tell. */
void kafka_client_property(const struct kafka_client *c, const char *name, char *ret, size_t size);

/* Drop what is queued and release everything. Waits for the broker at most 1 s. Twice is once. */
void kafka_client_close(struct kafka_client *c);

/*
 * Look for the four record topics, and the compacted one of positions where it is kept;
 * make those that are missing, where that is allowed; then open them. Not before: the
 * broker would make what is asked for in its own way, with as many partitions as it likes.
 * Errors: ERR_IO: not reachable within timeout_ms; ERR_INVALID: we or the topics are refused.
 */
bool kafka_client_topics(struct kafka_client *c, const struct kafka_settings *set, int timeout_ms,
                         struct err *err) MUST_CHECK;

/*
 * Open the client anew with smaller batches where a record topic takes no larger ones
 * (max.message.bytes, which counts a batch), so that one message that is too large is
 * refused alone and not with its neighbours. A topic of positions that would forget some
 * is refused (ERR_INVALID). Where the broker does not tell, within a second or at all,
 * nothing is done.
 */
bool kafka_client_fit(struct kafka_client *c, const struct kafka_settings *set,
                      const char *const *extra, int timeout_ms, struct err *err) MUST_CHECK;

/*
 * Is the message certainly larger than its topic takes? Told from what kafka_client_fit() heard,
 * which is asked for anew before anything is refused: somebody may have raised the limit. False
 * where the limit is not known, or what is sent is compressed.
 */
bool kafka_client_too_large(struct kafka_client *c, const struct kafka_message *m,
                            struct slice journal, int timeout_ms);

/* Queue one message; the value is copied. `opaque` comes back in on_delivery. */
rd_kafka_resp_err_t kafka_client_produce(struct kafka_client *c, const struct kafka_message *m,
                                         struct slice journal, void *opaque);

/* The same; a full queue is waited for until the monotonic deadline_ms. */
rd_kafka_resp_err_t kafka_client_produce_by(struct kafka_client *c, const struct kafka_message *m,
                                            struct slice journal, void *opaque,
                                            int64_t deadline_ms);

/* A record's sequence as the opaque of its messages, where nothing may be pointed at; and back. */
void *kafka_opaque(uint64_t seq);
uint64_t kafka_opaque_seq(const void *opaque);

/* librdkafka's parameters lack the const that its promises have: keys and values are copied. */
void *kafka_bytes(struct slice bytes);

/* A message was refused before it was sent: what kafka_client_fail() will tell. */
void kafka_client_refused(struct kafka_client *c, rd_kafka_resp_err_t code,
                          const struct kafka_message *m);

/* Fill *err with the code's words and with the trouble behind it, if there was any. */
bool kafka_client_fail(struct kafka_client *c, rd_kafka_resp_err_t code, const char *what,
                       struct err *err);

/* What a refusal of one message, or of a whole request, means. SINK_RETRY for all that may pass. */
enum sink_result kafka_result_of(rd_kafka_resp_err_t code);
