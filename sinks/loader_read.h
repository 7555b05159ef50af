/*
 * loader_read: a loader's batch out of the partitions that it was given, and whether
 * that was all.
 *
 * A partition's end is where an open transaction begins, though there may be more
 * behind it: nobody is shown that until the transaction ends. What librdkafka
 * answers (measured, 2.0.2): rd_kafka_query_watermark_offsets() knows the end that we are
 * shown; rd_kafka_get_watermark_offsets() the true one, as of the last answer to a fetch,
 * at most fetch.wait.max.ms old. Both count the marks that end a transaction and the
 * messages of one that was given up, and the end that is reported lies behind these: where
 * no transaction is open they are equal.
 * Thread: the loader's.
 */
#pragma once

#include "sinks/loader_state.h"

/* Read until the batch is full, the time is over, or there is nothing more now. */
void loader_gather(struct loader *l);

/* While the database is away the group must hear of us, or it gives our partitions away. */
void loader_pause(struct loader *l, int64_t pause_ms);

/*
 * Whether something of what is to be read is kept from us, while the rest may flow: a topic
 * that we may not read, a group that we may not join, topics that are not there.
 * ERR_INVALID in *ret: a person must act.
 */
bool loader_is_refused(const struct loader *l, struct err *ret);

/* Say so of one topic. False. */
bool loader_may_not_read(const char *topic, struct err *err);

/* Whether every partition was read to the end that we are shown. */
bool loader_all_read(const struct loader *l);

/*
 * Whether that was all that was there when we came to it. False (err): an open transaction
 * hides the rest. What is sent later does not count, or this might never be true.
 */
bool loader_all_shown(const struct loader *l, struct err *err) MUST_CHECK;
