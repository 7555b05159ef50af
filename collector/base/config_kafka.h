/*
 * config_kafka: the librdkafka properties that the kafka sink has a say in. Pure.
 *
 * Every property can be set, but for those that its promises stand on; and none is
 * set by hooktrail itself that is not told here. hooktrail.yaml(5) has the same list.
 */
#pragma once

#include "collector/base/err.h"

struct kafka_property {
    const char *name;
    const char *rule;  /* for people: "must be all"; of what may be set: what holds then */
    const char *only;  /* the value that it must have; NULL: none */
    const char *also;  /* another spelling of that; NULL: none */
    const char *never; /* a value that it must not have; NULL: none */
    bool free;         /* may be set to anything */
};

/* The property's row; NULL: hooktrail has no say in it. */
const struct kafka_property *kafka_property_find(const char *name);

/* Row i of the list; NULL behind its end. */
const struct kafka_property *kafka_property_at(size_t i);

/* May it have this value? Errors: ERR_INVALID with the rule. */
bool kafka_property_check(const char *name, const char *value, struct err *err) MUST_CHECK;
