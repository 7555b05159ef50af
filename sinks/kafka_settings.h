/*
 * kafka_settings: the `kafka` sink's mapping in hooktrail.yaml, and a librdkafka
 * configuration made from it.
 *
 * Every librdkafka property can be set under `properties`, but for those that what we
 * promise stands on (collector/base/config_kafka.h).
 */
#pragma once

#include <jansson.h>
#include <librdkafka/rdkafka.h>

#include "collector/base/err.h"

enum {
    KAFKA_PARTITIONS = 3, /* of a topic that we make, unless told */
    KAFKA_TIMEOUT_MS = 10000,
};

struct kafka_settings {
    json_t *properties;       /* object; NULL: none */
    const char *topic_prefix; /* "hooktrail" */
    bool exactly_once;
    bool create_topics;
    int partitions;
    int timeout_ms;  /* of every wait */
    int replication; /* -1: as the broker does by default */
};

/* Read `settings` (NULL: all defaults); what it points to must live as long as *ret. */
bool kafka_settings_read(const json_t *settings, struct kafka_settings *ret, struct err *err)
    MUST_CHECK;

/*
 * A configuration with the properties and, over them, `extra` (name, value, …,
 * NULL; only what config_kafka.h tells). Owned by the caller until rd_kafka_new() takes it.
 * Errors: ERR_INVALID names the property.
 */
bool kafka_conf_new(const struct kafka_settings *set, const char *const *extra,
                    rd_kafka_conf_t **ret, struct err *err) MUST_CHECK;

/* A client of the configuration, which it takes over. NULL: ERR_INVALID says what is wrong with it.
 */
rd_kafka_t *kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct err *err) MUST_CHECK;
