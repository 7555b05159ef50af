#include "tests/unit/sinks/fake_kafka.h"

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/mem.h"
#include "sinks/kafka_message.h"
#include "tests/unit/unit.h"

enum { ANSWER_MS = 5000 };

struct fake_kafka {
    rd_kafka_t *rk; /* owned: carries the cluster */
    rd_kafka_mock_cluster_t *cluster;
    rd_kafka_t *client; /* owned */
    json_t *settings;   /* owned */
};

static rd_kafka_t *carrier(const char *servers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[200];

    assert_int_equal(rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text)), 0);
    if (servers) {
        assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text)),
                         0);
    }
    return rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
}

/*
 * ThreadSanitizer (of gcc 12, clang 14) learns of no thread that is started as C11 says, as
 * librdkafka starts its own, and crashes in the first: such a test is skipped.
 */
#ifdef __has_feature
#define SEES_C11_THREADS !__has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define SEES_C11_THREADS false
#else
#define SEES_C11_THREADS true
#endif

struct fake_kafka *fake_kafka_new(void)
{
    if (!SEES_C11_THREADS) {
        skip();
    }

    struct fake_kafka *f = xcalloc(1, sizeof(*f));

    f->rk = carrier(NULL);
    assert_non_null(f->rk);
    f->cluster = rd_kafka_mock_cluster_new(f->rk, 1);
    assert_non_null(f->cluster);
    f->client = carrier(rd_kafka_mock_cluster_bootstraps(f->cluster));
    assert_non_null(f->client);
    return f;
}

void fake_kafka_free(struct fake_kafka *f)
{
    if (f) {
        rd_kafka_destroy(f->client);
        rd_kafka_mock_cluster_destroy(f->cluster);
        rd_kafka_destroy(f->rk);
        json_decref(f->settings);
        free(f);
    }
}

void fake_kafka_freep(struct fake_kafka **f)
{
    fake_kafka_free(*f);
}

rd_kafka_mock_cluster_t *fake_kafka_cluster(struct fake_kafka *f)
{
    return f->cluster;
}

void fake_kafka_topic(struct fake_kafka *f, const char *name, int partitions)
{
    assert_int_equal(rd_kafka_mock_topic_create(f->cluster, name, partitions, 1), 0);
}

void fake_kafka_record_topics(struct fake_kafka *f)
{
    for (int i = 0; i < KAFKA_TOPICS; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "t.%s", kafka_topic_name((enum kafka_topic)i));
        fake_kafka_topic(f, name, 1);
    }
}

void fake_kafka_topics(struct fake_kafka *f)
{
    fake_kafka_record_topics(f);
    fake_kafka_topic(f, "t.positions", 1);
}

const json_t *fake_kafka_settings(struct fake_kafka *f, const char *delivery)
{
    json_decref(f->settings);
    f->settings =
        json_pack("{s:{s:s, s:i}, s:s, s:s}", "properties", "bootstrap.servers",
                  rd_kafka_mock_cluster_bootstraps(f->cluster), "reconnect.backoff.max.ms", 100,
                  "delivery", delivery, "topic_prefix", "t");
    return f->settings;
}

rd_kafka_t *fake_kafka_client(struct fake_kafka *f)
{
    return f->client;
}

int64_t fake_kafka_count(struct fake_kafka *f, const char *name)
{
    int64_t low = 0;
    int64_t high = 0;

    assert_int_equal(rd_kafka_query_watermark_offsets(f->client, name, 0, &low, &high, ANSWER_MS),
                     0);
    return high - low;
}
