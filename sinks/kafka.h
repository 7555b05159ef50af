/*
 * kafka: records to Apache Kafka, as CloudEvents (kafka_message.h).
 *
 * Two drivers of one name: `delivery: at-least-once` keeps its position with the
 * pump, `delivery: exactly-once` writes it to a compacted topic in the same
 * transaction as the records. Both keep the journal's order within a key, and
 * never send again what the broker has or still gets.
 */
#pragma once

#include "sinks/sink.h"

enum { KAFKA_SPAN_BYTES = 256 * 1024 * 1024 }; /* the messages of a span; over it, it is halved */

extern const struct sink_ops sink_kafka_ops;
extern const struct sink_ops sink_kafka_exact_ops;

/* The driver that the settings (NULL: defaults) ask for. */
const struct sink_ops *sink_kafka_driver(const json_t *settings);
