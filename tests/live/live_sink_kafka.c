/*
 * A Kafka driver against a real broker: live_sink_kafka BOOTSTRAP DELIVERY, where
 * DELIVERY is at-least-once or exactly-once. Each test has topics of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#include "collector/base/clock.h"
#include "sinks/kafka.h"
#include "sinks/kafka_message.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/unit.h"

static const char *bootstrap;
static json_t *settings;

static void reset(void)
{
    static int n;
    char prefix[64];

    (void)snprintf(prefix, sizeof(prefix), "live-%" PRId64 "-%d", clock_now_us(), n++);
    (void)json_object_set_new(settings, "topic_prefix", json_string(prefix));
}

static rd_kafka_t *open_consumer(void)
{
    static const char *const list[][2] = {
        { "group.id", "live" },
        { "isolation.level", "read_committed" },
        { "enable.auto.commit", "false" },
        { "enable.partition.eof", "true" },
        { "auto.offset.reset", "earliest" },
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[200];

    for (size_t i = 0; i < COUNT_OF(list); i++) {
        assert_int_equal(rd_kafka_conf_set(conf, list[i][0], list[i][1], text, sizeof(text)), 0);
    }
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text)),
                     0);

    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));

    assert_non_null(rk);
    (void)rd_kafka_poll_set_consumer(rk);
    return rk;
}

/* All partitions of the record topics that are there, derived rows left out. */
static int assign_all(rd_kafka_t *rk)
{
    static const enum kafka_topic topics[] = { KAFKA_HOOK_EVALUATION, KAFKA_TOOL_EXECUTION,
                                               KAFKA_AUDIT };
    const char *prefix = json_string_value(json_object_get(settings, "topic_prefix"));
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(9);
    const struct rd_kafka_metadata *metadata;
    int n = 0;

    assert_int_equal(rd_kafka_metadata(rk, 1, NULL, &metadata, 10000), 0);
    for (size_t t = 0; t < COUNT_OF(topics); t++) {
        char name[128];

        (void)snprintf(name, sizeof(name), "%s.%s", prefix, kafka_topic_name(topics[t]));
        for (int i = 0; i < metadata->topic_cnt; i++) {
            if (strcmp(metadata->topics[i].topic, name) != 0) {
                continue;
            }
            for (int p = 0; p < metadata->topics[i].partition_cnt; p++) {
                rd_kafka_topic_partition_list_add(list, name, p)->offset =
                    RD_KAFKA_OFFSET_BEGINNING;
                n++;
            }
        }
    }
    rd_kafka_metadata_destroy(metadata);
    assert_int_equal(rd_kafka_assign(rk, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
    return n;
}

static bool is_of(const rd_kafka_message_t *m, struct slice journal)
{
    rd_kafka_headers_t *headers;
    const void *value;
    size_t len;

    return !rd_kafka_message_headers(m, &headers) &&
           !rd_kafka_header_get_last(headers, "journal", &value, &len) &&
           slice_equal((struct slice){ .ptr = value, .len = len }, journal);
}

static uint64_t count(struct slice journal)
{
    rd_kafka_t *rk = open_consumer();
    int open_partitions = assign_all(rk);
    int64_t deadline_ms = clock_mono_ms() + 20000;
    uint64_t n = 0;

    while (open_partitions > 0 && clock_left_ms(deadline_ms) > 0) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 200);

        if (!m) {
            continue;
        }
        open_partitions -= m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        n += !m->err && is_of(m, journal);
        rd_kafka_message_destroy(m);
    }
    assert_int_equal(open_partitions, 0);
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return n;
}

int main(int argc, char **argv)
{
    struct sink_config cfg = { .timeout_ms = 10000, .name = "kafka", .state_dir = "/tmp" };
    struct sink_subject subject = { .name = "sinks/kafka",
                                    .cfg = &cfg,
                                    .reset = reset,
                                    .count = count,
                                    .forgets = true,
                                    .fences = true,
                                    .refuses_data = true };
    int failed;

    if (argc != 3) {
        (void)fputs("usage: live_sink_kafka BOOTSTRAP DELIVERY\n", stderr);
        return 2;
    }
    bootstrap = argv[1];
    settings = json_pack("{s:{s:s}, s:s, s:s}", "properties", "bootstrap.servers", bootstrap,
                         "delivery", argv[2], "topic_prefix", "unset");
    cfg.settings = settings;
    subject.ops = sink_kafka_driver(settings);
    failed = sink_contract_run(&subject);
    json_decref(settings);
    return failed;
}
