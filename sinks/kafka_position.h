/*
 * kafka_position: how far each journal has come, in a compacted topic.
 *
 * Topic PREFIX.positions, one partition; key: the journal's id, value: the next
 * sequence in decimal digits. The exactly-once driver writes it in the records'
 * transaction; it is read here, committed values alone.
 */
#pragma once

#include <stdint.h>

#include "collector/base/slice.h"
#include "sinks/kafka_settings.h"

/* The topic's name. */
void kafka_position_topic(const struct kafka_settings *set, char *ret_name, size_t size);

/*
 * The next sequence of a journal; 1 when the topic knows none. Reads the topic
 * from its beginning to its end.
 * Errors: ERR_IO: not reachable, or not read to the end within timeout_ms.
 */
bool kafka_position_read(const struct kafka_settings *set, struct slice journal, int64_t timeout_ms,
                         uint64_t *ret_next, struct err *err) MUST_CHECK;
