/*
 * kafka_ends: where each partition ended when its last message was acknowledged.
 *
 * A partition never ends before that again, unless its topic was deleted and made
 * anew, or lost what it had acknowledged. What was lost there is not sent again on
 * our own account: other topics may have it still, and consumers may have seen it.
 * It is told, once, and a person decides.
 *
 * Kept in STATE/sinks/NAME.ends.json, {"TOPIC/PARTITION": offset}, at most once a
 * second; a crash leaves it behind the truth, and then less is noticed, never more.
 * Thread: the sink's.
 */
#pragma once

#include <librdkafka/rdkafka.h>

#include "collector/base/err.h"

struct kafka_end {
    char topic[256];
    int32_t partition;
    int64_t end; /* behind the last message that was acknowledged */
};

struct kafka_ends {
    const char *state_dir; /* borrowed; NULL: nothing is kept */
    const char *sink;      /* borrowed */
    struct kafka_end *list;
    size_t n;
    size_t cap;
    size_t latest; /* index of the one that was seen last */
    bool changed;
    int64_t written_ms; /* monotonic */
};

/* Read what is kept, if there is any. ERR_CORRUPT: it cannot be understood. */
bool kafka_ends_load(const char *state_dir, const char *sink, struct kafka_ends *ret,
                     struct err *err) MUST_CHECK;
void kafka_ends_done(struct kafka_ends *e);

/* A message was acknowledged at `offset` (negative: the broker did not say where). */
void kafka_ends_saw(struct kafka_ends *e, const char *topic, int32_t partition, int64_t offset);

/* Ask the broker where every partition ends that is kept; one that cannot be asked is left. */
void kafka_ends_check(struct kafka_ends *e, rd_kafka_t *rk, int64_t timeout_ms);

/* Write what changed, at most once a second unless `now`. A failure is only logged. */
void kafka_ends_flush(struct kafka_ends *e, bool now);
