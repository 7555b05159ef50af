/* How the topics of a kafka_client are set, and batches that fit into it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sinks/kafka_client.h"

enum {
    EXTRA_MAX = 12,     /* properties that a driver sets, and the end */
    HEADER_BYTES = 200, /* of a batch, and what a broker may add */
    ASK_MS = 1000,
    BATCH_BYTES = 61, /* the header of a batch */
    RECORD_BYTES = 7, /* at least: a record's own fields in it, */
    FIELD_BYTES = 2,  /* and the lengths of a header's name and value */
    MOST_HEADERS = 2000,
};

/* A setting of a topic; NULL: it was not told. */
static const char *setting_of(const rd_kafka_ConfigResource_t *topic, const char *name)
{
    size_t n = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(topic, &n);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0) {
            return rd_kafka_ConfigEntry_value(entries[i]);
        }
    }
    return NULL;
}

static long limit_of(const rd_kafka_ConfigResource_t *topic)
{
    const char *value = setting_of(topic, "max.message.bytes");

    return value ? strtol(value, NULL, 10) : LONG_MAX;
}

/* Keep the answers, which come in the order of the topics. */
static void keep(struct kafka_client *c, rd_kafka_event_t *event)
{
    const rd_kafka_DescribeConfigs_result_t *result = rd_kafka_event_DescribeConfigs_result(event);
    size_t n = 0;
    const rd_kafka_ConfigResource_t **topics =
        rd_kafka_DescribeConfigs_result_resources(result, &n);

    for (size_t i = 0; i < n && i < KAFKA_TOPICS; i++) {
        c->limits[i] = limit_of(topics[i]);
    }
    if (n > KAFKA_TOPICS) {
        const char *policy = setting_of(topics[KAFKA_TOPICS], "cleanup.policy");

        (void)snprintf(c->positions_policy, sizeof(c->positions_policy), "%s",
                       policy ? policy : "");
    }
}

/* Any broker knows; librdkafka would wait for the controller. */
static rd_kafka_AdminOptions_t *options_for(const struct kafka_client *c)
{
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(c->rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    char text[200];

    if (c->broker >= 0) {
        (void)rd_kafka_AdminOptions_set_broker(options, c->broker, text, sizeof(text));
    }
    return options;
}

static rd_kafka_ConfigResource_t *question_of(const rd_kafka_topic_t *topic)
{
    return rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, rd_kafka_topic_name(topic));
}

/* Fill what the client knows of its topics; the smallest of the limits. */
static long ask(struct kafka_client *c, int timeout_ms)
{
    rd_kafka_AdminOptions_t *options = options_for(c);
    rd_kafka_ConfigResource_t *topics[KAFKA_TOPICS + 1];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    long least = LONG_MAX;
    size_t n = 0;

    for (; n < KAFKA_TOPICS; n++) {
        c->limits[n] = LONG_MAX;
        topics[n] = question_of(c->topics[n]);
    }
    if (c->positions) {
        topics[n++] = question_of(c->positions);
    }
    rd_kafka_DescribeConfigs(c->rk, topics, n, options, queue);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy_array(topics, n);

    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms < ASK_MS ? timeout_ms : ASK_MS);

    if (event) {
        keep(c, event);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    for (size_t i = 0; i < KAFKA_TOPICS; i++) {
        least = c->limits[i] < least ? c->limits[i] : least;
    }
    return least;
}

/* The size of batches that the client makes now. */
static long batch_size(const struct kafka_client *c)
{
    char text[32];

    kafka_client_property(c, "batch.size", text, sizeof(text));
    return strtol(text, NULL, 10);
}

/*
 * A position that is not moved for long, of a journal that nobody writes, must stay: with any
 * policy but compact alone it goes with the topic's retention, and its records are sent again.
 */
static bool keeps_for_good(const struct kafka_client *c, struct err *err)
{
    const char *policy = c->positions_policy;

    return policy[0] == '\0' || strcmp(policy, "compact") == 0 ||
           err_set(err, ERR_INVALID,
                   "kafka: topic %s has cleanup.policy=%s and would forget positions; it must be "
                   "compact, see hooktrail.yaml(5)",
                   rd_kafka_topic_name(c->positions), policy);
}

bool kafka_client_fit(struct kafka_client *c, const struct kafka_settings *set,
                      const char *const *extra, int timeout_ms, struct err *err)
{
    const char *with_size[EXTRA_MAX + 3] = { NULL };
    long limit = ask(c, timeout_ms);
    char text[32];
    size_t n = 0;

    if (!keeps_for_good(c, err)) {
        return false;
    }
    if (limit == LONG_MAX || limit - HEADER_BYTES >= batch_size(c)) {
        return true;
    }
    for (; extra[n] && n < EXTRA_MAX; n++) {
        with_size[n] = extra[n];
    }
    (void)snprintf(text, sizeof(text), "%ld", limit > HEADER_BYTES ? limit - HEADER_BYTES : 1);
    with_size[n] = "batch.size";
    with_size[n + 1] = text;
    kafka_client_close(c);
    return kafka_client_open(c, set, with_size, err) &&
           kafka_client_topics(c, set, timeout_ms, err);
}

/* Of a batch with this message alone, at least. */
static size_t bytes_of(const struct kafka_message *m, struct slice journal)
{
    rd_kafka_headers_t *headers = kafka_headers(m, journal);
    size_t bytes = BATCH_BYTES + RECORD_BYTES + m->key.len + m->value.len;
    const char *name;
    const void *value;
    size_t size;

    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
        bytes += FIELD_BYTES + strlen(name) + size;
    }
    rd_kafka_headers_destroy(headers);
    return bytes;
}

static bool is_compressed(const struct kafka_client *c)
{
    char text[32];

    kafka_client_property(c, "compression.codec", text, sizeof(text));
    return strcmp(text, "none") != 0;
}

bool kafka_client_too_large(struct kafka_client *c, const struct kafka_message *m,
                            struct slice journal, int timeout_ms)
{
    const long *limit = &c->limits[m->topic];

    if (m->key.len + m->value.len + MOST_HEADERS <= (size_t)*limit || is_compressed(c)) {
        return false;
    }

    size_t bytes = bytes_of(m, journal);

    if (bytes <= (size_t)*limit) {
        return false;
    }
    (void)ask(c, timeout_ms);
    return bytes > (size_t)*limit;
}
