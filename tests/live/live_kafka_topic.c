/*
 * Topics of a broker, for tests:
 *
 *     live_kafka_topic BOOTSTRAP create NAME PARTITIONS [KEY=VALUE]…
 *     live_kafka_topic BOOTSTRAP config NAME [KEY=VALUE]…
 *     live_kafka_topic BOOTSTRAP grow NAME PARTITIONS
 *     live_kafka_topic BOOTSTRAP trim NAME PARTITION OFFSET   (as retention does)
 *     live_kafka_topic BOOTSTRAP deny NAME                    (all but Describe, to every user)
 *     live_kafka_topic BOOTSTRAP deny-group NAME              (a consumer group of that name)
 *     live_kafka_topic BOOTSTRAP allow NAME                   (either again)
 *     live_kafka_topic BOOTSTRAP delete NAME
 *     live_kafka_topic BOOTSTRAP show NAME                    (its settings, KEY=VALUE a line)
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

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static void create(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    char text[TEXT_BYTES];
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(args[0], number(args[1]), -1, text, sizeof(text));

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

static void grow(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    char text[TEXT_BYTES];
    rd_kafka_NewPartitions_t *more =
        rd_kafka_NewPartitions_new(args[0], (size_t)number(args[1]), text, sizeof(text));

    (void)n;
    rd_kafka_CreatePartitions(rk, &more, 1, NULL, queue);
    rd_kafka_NewPartitions_destroy(more);
}

static void trim(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_DeleteRecords_t *records;

    (void)n;
    rd_kafka_topic_partition_list_add(list, args[0], number(args[1]))->offset = number(args[2]);
    records = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(rk, &records, 1, NULL, queue);
    rd_kafka_DeleteRecords_destroy(records);
    rd_kafka_topic_partition_list_destroy(list);
}

static void deny(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    char text[TEXT_BYTES];
    rd_kafka_AclBinding_t *rules[] = {
        rd_kafka_AclBinding_new(RD_KAFKA_RESOURCE_TOPIC, args[0], RD_KAFKA_RESOURCE_PATTERN_LITERAL,
                                "User:*", "*", RD_KAFKA_ACL_OPERATION_DESCRIBE,
                                RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, text, sizeof(text)),
        rd_kafka_AclBinding_new(RD_KAFKA_RESOURCE_TOPIC, args[0], RD_KAFKA_RESOURCE_PATTERN_LITERAL,
                                "User:*", "*", RD_KAFKA_ACL_OPERATION_WRITE,
                                RD_KAFKA_ACL_PERMISSION_TYPE_DENY, text, sizeof(text)),
    };

    (void)n;
    rd_kafka_CreateAcls(rk, rules, sizeof(rules) / sizeof(rules[0]), NULL, queue);
    rd_kafka_AclBinding_destroy_array(rules, sizeof(rules) / sizeof(rules[0]));
}

static void deny_group(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    char text[TEXT_BYTES];
    rd_kafka_AclBinding_t *rule = rd_kafka_AclBinding_new(
        RD_KAFKA_RESOURCE_GROUP, args[0], RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:*", "*",
        RD_KAFKA_ACL_OPERATION_READ, RD_KAFKA_ACL_PERMISSION_TYPE_DENY, text, sizeof(text));

    (void)n;
    rd_kafka_CreateAcls(rk, &rule, 1, NULL, queue);
    rd_kafka_AclBinding_destroy(rule);
}

static void allow(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    char text[TEXT_BYTES];
    rd_kafka_AclBindingFilter_t *rules = rd_kafka_AclBindingFilter_new(
        RD_KAFKA_RESOURCE_ANY, args[0], RD_KAFKA_RESOURCE_PATTERN_LITERAL, NULL, NULL,
        RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, text, sizeof(text));

    (void)n;
    rd_kafka_DeleteAcls(rk, &rules, 1, NULL, queue);
    rd_kafka_AclBinding_destroy(rules);
}

static void delete_topic(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(args[0]);

    (void)n;
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
    rd_kafka_DeleteTopic_destroy(topic);
}

static void show(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n)
{
    rd_kafka_ConfigResource_t *topic =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, args[0]);

    (void)n;
    rd_kafka_DescribeConfigs(rk, &topic, 1, NULL, queue);
    rd_kafka_ConfigResource_destroy(topic);
}

static const struct verb {
    const char *name;
    int args; /* the least that it needs */
    void (*ask)(rd_kafka_t *rk, rd_kafka_queue_t *queue, char **args, int n);
} verbs[] = {
    { "create", 2, create },       { "config", 1, configure }, { "grow", 2, grow },
    { "trim", 3, trim },           { "deny", 1, deny },        { "allow", 1, allow },
    { "delete", 1, delete_topic }, { "show", 1, show },        { "deny-group", 1, deny_group },
};

static const struct verb *find_verb(const char *name, int args)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, name) == 0 && args >= verbs[i].args) {
            return &verbs[i];
        }
    }
    return NULL;
}

static const char *topic_fault(const rd_kafka_topic_result_t **topics, size_t n)
{
    return n == 1 ? rd_kafka_topic_result_error_string(topics[0]) : "no result";
}

static const char *config_fault(rd_kafka_event_t *event)
{
    size_t n = 0;
    const rd_kafka_ConfigResource_t **list =
        rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &n);

    return n == 1 ? rd_kafka_ConfigResource_error_string(list[0]) : "no result";
}

/* What was told of a topic's settings is printed. */
static const char *settings_fault(rd_kafka_event_t *event)
{
    size_t n = 0;
    const rd_kafka_ConfigResource_t **list =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);
    const rd_kafka_ConfigEntry_t **entries;

    if (n != 1) {
        return "no result";
    }
    entries = rd_kafka_ConfigResource_configs(list[0], &n);
    for (size_t i = 0; i < n; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);

        (void)printf("%s=%s\n", rd_kafka_ConfigEntry_name(entries[i]), value ? value : "");
    }
    return rd_kafka_ConfigResource_error_string(list[0]);
}

static const char *rule_fault(rd_kafka_event_t *event)
{
    size_t n = 0;
    const rd_kafka_acl_result_t **list =
        rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event), &n);
    const rd_kafka_error_t *error = n > 0 ? rd_kafka_acl_result_error(list[0]) : NULL;

    return error ? rd_kafka_error_string(error) : NULL;
}

static const char *records_fault(rd_kafka_event_t *event)
{
    const rd_kafka_topic_partition_list_t *list =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));

    return list->elems[0].err ? rd_kafka_err2str(list->elems[0].err) : NULL;
}

/* What the broker says; NULL: done. */
static const char *answer(rd_kafka_event_t *event)
{
    const rd_kafka_topic_result_t **topics;
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
        return topic_fault(topics, n);
    case RD_KAFKA_EVENT_DELETETOPICS_RESULT:
        topics = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &n);
        return topic_fault(topics, n);
    case RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT:
        topics = rd_kafka_CreatePartitions_result_topics(
            rd_kafka_event_CreatePartitions_result(event), &n);
        return topic_fault(topics, n);
    case RD_KAFKA_EVENT_ALTERCONFIGS_RESULT:
        return config_fault(event);
    case RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT:
        return settings_fault(event);
    case RD_KAFKA_EVENT_CREATEACLS_RESULT:
        return rule_fault(event);
    case RD_KAFKA_EVENT_DELETERECORDS_RESULT:
        return records_fault(event);
    default:
        return NULL;
    }
}

int main(int argc, char **argv)
{
    const struct verb *verb = argc >= 4 ? find_verb(argv[2], argc - 3) : NULL;
    rd_kafka_t *rk = verb ? connect_to(argv[1]) : NULL;

    if (!rk) {
        (void)fputs("usage: live_kafka_topic BOOTSTRAP VERB NAME …\n", stderr);
        return 2;
    }

    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);

    verb->ask(rk, queue, argv + 3, argc - 3);

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
