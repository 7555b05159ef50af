/* What the record topics of a kafka_client take, and batches that fit into it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sinks/kafka_client.h"

enum {
    EXTRA_MAX = 12,     /* properties that a driver sets, and the end */
    HEADER_BYTES = 200, /* of a batch, and what a broker may add */
};

/* The smallest max.message.bytes among the answers; INT_MAX: none was told. */
static int smallest(rd_kafka_event_t *event)
{
    const rd_kafka_DescribeConfigs_result_t *result = rd_kafka_event_DescribeConfigs_result(event);
    size_t n_topics = 0;
    const rd_kafka_ConfigResource_t **topics =
        rd_kafka_DescribeConfigs_result_resources(result, &n_topics);
    long least = INT_MAX;

    for (size_t t = 0; t < n_topics; t++) {
        size_t n = 0;
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(topics[t], &n);

        for (size_t i = 0; i < n; i++) {
            const char *value = rd_kafka_ConfigEntry_value(entries[i]);
            bool is_limit = strcmp(rd_kafka_ConfigEntry_name(entries[i]), "max.message.bytes") == 0;
            long limit = is_limit && value ? strtol(value, NULL, 10) : 0;

            least = limit > 0 && limit < least ? limit : least;
        }
    }
    return (int)least;
}

static int ask(struct kafka_client *c, int timeout_ms)
{
    rd_kafka_ConfigResource_t *topics[KAFKA_TOPICS];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    int least = INT_MAX;

    for (size_t i = 0; i < KAFKA_TOPICS; i++) {
        topics[i] =
            rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, rd_kafka_topic_name(c->topics[i]));
    }
    rd_kafka_DescribeConfigs(c->rk, topics, KAFKA_TOPICS, NULL, queue);
    rd_kafka_ConfigResource_destroy_array(topics, KAFKA_TOPICS);

    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);

    if (event) {
        least = smallest(event);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    return least;
}

/* The size of batches that the client makes now. */
static int batch_size(const struct kafka_client *c)
{
    char text[32];
    size_t size = sizeof(text);

    if (rd_kafka_conf_get(rd_kafka_conf(c->rk), "batch.size", text, &size) != RD_KAFKA_CONF_OK) {
        return INT_MAX;
    }
    return (int)strtol(text, NULL, 10);
}

bool kafka_client_fit(struct kafka_client *c, const struct kafka_settings *set,
                      const char *const *extra, int timeout_ms, struct err *err)
{
    const char *with_size[EXTRA_MAX + 3] = { NULL };
    int limit = ask(c, timeout_ms);
    char text[32];
    size_t n = 0;

    if (limit == INT_MAX || limit - HEADER_BYTES >= batch_size(c)) {
        return true;
    }
    for (; extra[n] && n < EXTRA_MAX; n++) {
        with_size[n] = extra[n];
    }
    (void)snprintf(text, sizeof(text), "%d", limit > 2 * HEADER_BYTES ? limit - HEADER_BYTES : 1);
    with_size[n] = "batch.size";
    with_size[n + 1] = text;
    kafka_client_close(c);
    return kafka_client_open(c, set, with_size, err);
}
