/*
 * Topics of a broker, for tests:
 *
 *     live_kafka_topic BOOTSTRAP create NAME PARTITIONS [KEY=VALUE]…
 *     live_kafka_topic BOOTSTRAP config NAME [KEY=VALUE]…
 *     live_kafka_topic BOOTSTRAP delete NAME
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

enum { ANSWER_MS = 20000, TEXT_BYTES = 200 };

static rd_kafka_t *connect_to(const char *bootstrap)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[TEXT_BYTES];

    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text)) !=
        RD_KAFKA_CONF_OK) {
        return NULL;
    }
    return rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
}

/* "KEY=VALUE" cut in place; false: no '='. */
static bool cut(char *pair, const char **ret_value)
{
    char *equals = strchr(pair, '=');

    if (!equals) {
        return false;
    }
    *equals = '\0';
    *ret_value = equals + 1;
    return true;
}

static void create(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    char text[TEXT_BYTES];
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(args[0], (int)strtol(args[1], NULL, 10), -1, text, sizeof(text));

    for (int i = 2; i < n; i++) {
        const char *value;

        if (cut(args[i], &value)) {
            (void)rd_kafka_NewTopic_set_config(topic, args[i], value);
        }
    }
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    rd_kafka_NewTopic_destroy(topic);
}

static void configure(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    rd_kafka_ConfigResource_t *topic =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, args[0]);

    for (int i = 1; i < n; i++) {
        const char *value;

        if (cut(args[i], &value)) {
            (void)rd_kafka_ConfigResource_set_config(topic, args[i], value);
        }
    }
    rd_kafka_AlterConfigs(rk, &topic, 1, NULL, queue);
    rd_kafka_ConfigResource_destroy(topic);
}

static void delete_topic(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *name)
{
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);

    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
    rd_kafka_DeleteTopic_destroy(topic);
}

/* What the broker says; NULL: done. */
static const char *answer(rd_kafka_event_t *event)
{
    const rd_kafka_topic_result_t **topics = NULL;
    const rd_kafka_ConfigResource_t **resources = NULL;
    size_t n = 0;

    if (!event) {
        return "no answer in time";
    }
    if (rd_kafka_event_error(event)) {
        return rd_kafka_event_error_string(event);
    }
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_CREATETOPICS_RESULT:
        topics = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
        break;
    case RD_KAFKA_EVENT_DELETETOPICS_RESULT:
        topics = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &n);
        break;
    default:
        resources =
            rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &n);
        break;
    }
    if (n != 1 || (!topics && !resources)) {
        return "no result";
    }
    return topics ? rd_kafka_topic_result_error_string(topics[0])
                  : rd_kafka_ConfigResource_error_string(resources[0]);
}

int main(int argc, char **argv)
{
    rd_kafka_t *rk = argc >= 4 ? connect_to(argv[1]) : NULL;

    if (!rk) {
        (void)fputs("usage: live_kafka_topic BOOTSTRAP create|config|delete NAME …\n", stderr);
        return 2;
    }

    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);

    if (strcmp(argv[2], "create") == 0 && argc >= 5) {
        create(rk, queue, argv + 3, argc - 3);
    } else if (strcmp(argv[2], "config") == 0) {
        configure(rk, queue, argv + 3, argc - 3);
    } else {
        delete_topic(rk, queue, argv[3]);
    }

    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ANSWER_MS);
    const char *fault = answer(event);

    if (fault) {
        (void)fprintf(stderr, "%s: %s\n", argv[3], fault);
    }
    if (event) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return fault ? 3 : 0;
}
