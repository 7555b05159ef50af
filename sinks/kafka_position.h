/*
 * kafka_position: how far each journal has come, in a compacted topic.
 *
 * Topic PREFIX.positions, one partition; key: the journal's id, value: the next
 * sequence in decimal digits, and behind blanks the last record's sequence and leaf, where
 * they are known. The exactly-once driver writes it in the records' transaction; it is
 * read here, committed values alone.
 */
#pragma once

#include <stdint.h>

#include "collector/base/slice.h"
#include "sinks/kafka_settings.h"
#include "sinks/sink.h"

enum { KAFKA_POSITION_SIZE = 2 * 21 + DIGEST_HEX_SIZE }; /* of a value, with a NUL */

/* A position as a value; the result is its length. */
size_t kafka_position_format(const struct sink_position *at, char ret[KAFKA_POSITION_SIZE]);

/* The inverse; a number alone is a position, too. False: it is none. */
bool kafka_position_parse(struct slice value, struct sink_position *ret) MUST_CHECK;

/* The topic's name. */
void kafka_position_topic(const struct kafka_settings *set, char *ret_name, size_t size);

/*
 * Where a journal stands; `next` is 1 when the topic knows none. Reads the topic from its
 * beginning to its end.
 * Errors: ERR_IO: not reachable, or not read to the end within timeout_ms.
 */
bool kafka_position_read(const struct kafka_settings *set, struct slice journal, int64_t timeout_ms,
                         struct sink_position *ret, struct err *err) MUST_CHECK;
