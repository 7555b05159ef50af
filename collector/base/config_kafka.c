#include "collector/base/config_kafka.h"

#include <string.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

#define ROW(key, text, ...)                        \
    {                                              \
        .name = (key), .rule = (text), __VA_ARGS__ \
    }

/* Aliases stand beside their names: librdkafka takes either. */
static const struct kafka_property list[] = {
    ROW("enable.idempotence", "must be true", .only = "true"),
    ROW("acks", "must be all", .only = "all", .also = "-1"),
    ROW("request.required.acks", "must be all", .only = "all", .also = "-1"),
    ROW("delivery.report.only.error", "must be false", .only = "false"),
    ROW("partitioner", "must not be random", .never = "random"),
    ROW("transactional.id", "must not be set"),
    ROW("message.timeout.ms", "must not be set: nothing is given up"),
    ROW("delivery.timeout.ms", "must not be set: nothing is given up"),
    ROW("group.id", "must not be set: it is sinks.kafka.group"),
    ROW("isolation.level", "must not be set"),
    ROW("auto.offset.reset", "must not be set"),
    ROW("enable.auto.commit", "must not be set"),
    ROW("auto.commit.enable", "must not be set"),
    ROW("enable.partition.eof", "must not be set"),
    ROW("partition.assignment.strategy", "must not be set"),
    ROW("batch.size", "is lowered to what the topics take", .free = true),
    ROW("transaction.timeout.ms", "unless set: timeout_ms and 30 s, at least 60 s", .free = true),
    ROW("reconnect.backoff.max.ms", "unless set: 2000", .free = true),
    ROW("client.id", "unless set: hooktrail", .free = true),
    ROW("fetch.wait.max.ms", "holds for the loader", .free = true),
    ROW("fetch.error.backoff.ms", "holds for the loader", .free = true),
};

const struct kafka_property *kafka_property_at(size_t i)
{
    return i < COUNT_OF(list) ? &list[i] : NULL;
}

const struct kafka_property *kafka_property_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

static bool allows(const struct kafka_property *p, const char *value)
{
    if (p->only) {
        return strcmp(value, p->only) == 0 || (p->also && strcmp(value, p->also) == 0);
    }
    return p->free || (p->never && strcmp(value, p->never) != 0);
}

bool kafka_property_check(const char *name, const char *value, struct err *err)
{
    const struct kafka_property *p = kafka_property_find(name);

    return !p || allows(p, value) || err_set(err, ERR_INVALID, "%s", p->rule);
}
