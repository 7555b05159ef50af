#include "sinks/kafka_position.h"

#include <stdio.h>

#include "collector/base/clock.h"

void kafka_position_topic(const struct kafka_settings *set, char *ret_name, size_t size)
{
    (void)snprintf(ret_name, size, "%s.positions", set->topic_prefix);
}

/* A consumer that stands at the topic's beginning; NULL: *err. */
static rd_kafka_t *open_consumer(const struct kafka_settings *set, struct err *err)
{
    static const char *const extra[] = { "group.id",
                                         "hooktrail-positions",
                                         "isolation.level",
                                         "read_committed",
                                         "enable.partition.eof",
                                         "true",
                                         "enable.auto.commit",
                                         "false",
                                         "auto.offset.reset",
                                         "earliest",
                                         "fetch.wait.max.ms", /* at the end nothing comes */
                                         "10",
                                         NULL };
    struct kafka_settings plain = *set;
    char topic[256];
    rd_kafka_conf_t *conf;

    if (!kafka_conf_new(&plain, extra, &conf, err)) {
        return NULL;
    }

    rd_kafka_t *rk = kafka_new(RD_KAFKA_CONSUMER, conf, err);

    if (!rk) {
        return NULL;
    }

    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    kafka_position_topic(set, topic, sizeof(topic));
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    (void)rd_kafka_poll_set_consumer(rk);
    (void)rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return rk;
}

enum reading { READING_ON, READING_DONE, READING_FAILED };

/* One message of the topic: a value of ours moves *next, its end ends the reading. */
static enum reading take(const rd_kafka_message_t *m, struct slice journal, uint64_t *next,
                         struct err *err)
{
    struct slice key = { .ptr = m->key, .len = m->key_len };
    struct slice value = { .ptr = m->payload, .len = m->len };

    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        return READING_DONE;
    }
    if (m->err) {
        (void)err_set(err, ERR_IO, "kafka: positions: %s", rd_kafka_message_errstr(m));
        return READING_FAILED;
    }
    if (slice_equal(key, journal) && !slice_to_u64(value, next)) {
        (void)err_set(err, ERR_CORRUPT,
                      "kafka: the position of journal %" SLICE_FMT " is no number",
                      SLICE_ARG(journal));
        return READING_FAILED;
    }
    return READING_ON;
}

static bool read_to_end(rd_kafka_t *rk, struct slice journal, int64_t timeout_ms,
                        uint64_t *ret_next, struct err *err)
{
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    uint64_t next = 1;

    while (clock_left_ms(deadline_ms) > 0) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, clock_left_ms(deadline_ms));
        enum reading reading = READING_ON;

        if (m) {
            reading = take(m, journal, &next, err);
            rd_kafka_message_destroy(m);
        }
        if (reading == READING_DONE) {
            *ret_next = next;
        }
        if (reading != READING_ON) {
            return reading == READING_DONE;
        }
    }
    return err_set(err, ERR_IO, "kafka: positions: not read to the end in %lld ms",
                   (long long)timeout_ms);
}

bool kafka_position_read(const struct kafka_settings *set, struct slice journal, int64_t timeout_ms,
                         uint64_t *ret_next, struct err *err)
{
    rd_kafka_t *rk = open_consumer(set, err);

    if (!rk) {
        return false;
    }

    bool ok = read_to_end(rk, journal, timeout_ms, ret_next, err);

    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok;
}
