/* The topics of a kafka_client: look for them, make the missing ones. */
#include <stdio.h>
#include <string.h>

#include "collector/base/clock.h"
#include "sinks/kafka_client.h"
#include "sinks/kafka_position.h"

enum { MOST_TOPICS = KAFKA_TOPICS + 1, NAME_BYTES = 256 };

/* A topic of ours, and where the client holds it. */
struct wanted {
    char name[NAME_BYTES];
    bool positions; /* compacted, of one partition */
    rd_kafka_topic_t **open;
};

static size_t list_wanted(struct kafka_client *c, const struct kafka_settings *set,
                          struct wanted ret[MOST_TOPICS])
{
    size_t n = 0;

    for (; n < KAFKA_TOPICS; n++) {
        (void)snprintf(ret[n].name, sizeof(ret[n].name), "%s.%s", set->topic_prefix,
                       kafka_topic_name((enum kafka_topic)n));
        ret[n].positions = false;
        ret[n].open = &c->topics[n];
    }
    if (c->keeps_positions) {
        kafka_position_topic(set, ret[n].name, sizeof(ret[n].name));
        ret[n].positions = true;
        ret[n].open = &c->positions;
        n++;
    }
    return n;
}

/* How many partitions the topic has; 0: it is not there. */
static int partitions_of(const struct rd_kafka_metadata *metadata, const char *name)
{
    for (int i = 0; i < metadata->topic_cnt; i++) {
        if (strcmp(metadata->topics[i].topic, name) == 0) {
            return metadata->topics[i].partition_cnt > 0 ? metadata->topics[i].partition_cnt : 1;
        }
    }
    return 0;
}

/*
 * The cluster's topics. librdkafka waits out the whole time where no broker lets us in: a
 * first short wait brings the reason, and who is refused need not wait on.
 */
static rd_kafka_resp_err_t ask(struct kafka_client *c, const struct rd_kafka_metadata **ret,
                               int timeout_ms)
{
    enum { FIRST_MS = 1000 };
    int first_ms = timeout_ms < FIRST_MS ? timeout_ms : FIRST_MS;
    rd_kafka_resp_err_t code = rd_kafka_metadata(c->rk, 1, NULL, ret, first_ms);

    (void)rd_kafka_poll(c->rk, 0); /* brings the error behind a time-out */
    if (!code || c->trouble.lasting || first_ms == timeout_ms) {
        return code;
    }
    code = rd_kafka_metadata(c->rk, 1, NULL, ret, timeout_ms - first_ms);
    (void)rd_kafka_poll(c->rk, 0);
    return code;
}

/* Those of the n topics that the cluster does not have. */
static bool find_missing(struct kafka_client *c, const struct wanted *list, size_t n,
                         const struct wanted *ret[MOST_TOPICS], size_t *ret_n, int timeout_ms,
                         struct err *err)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code = ask(c, &metadata, timeout_ms);

    if (code) {
        return kafka_client_fail(c, code, "kafka", err);
    }
    c->broker = metadata->broker_cnt > 0 ? metadata->brokers[0].id : -1;
    c->positions_parts = 0;
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        int parts = partitions_of(metadata, list[i].name);

        if (parts == 0) {
            ret[(*ret_n)++] = &list[i];
        } else if (list[i].positions) {
            c->positions_parts = parts;
        }
    }
    rd_kafka_metadata_destroy(metadata);
    return true;
}

/* The broker's answer to one topic's creation; that it is there already is fine. */
static bool was_made(const rd_kafka_topic_result_t *r, struct err *err)
{
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(r);

    if (!code || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
        return true;
    }
    return err_set(err, ERR_INVALID, "topic %s is not there and cannot be made: %s",
                   rd_kafka_topic_result_name(r), rd_kafka_topic_result_error_string(r));
}

static bool all_were_made(rd_kafka_event_t *event, struct err *err)
{
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    size_t n = 0;

    if (rd_kafka_event_error(event)) {
        return err_set(err, ERR_IO, "topics cannot be made: %s",
                       rd_kafka_event_error_string(event));
    }

    const rd_kafka_topic_result_t **list = rd_kafka_CreateTopics_result_topics(result, &n);

    for (size_t i = 0; i < n; i++) {
        if (!was_made(list[i], err)) {
            return false;
        }
    }
    return true;
}

/* Ask for the topics and wait for the answer. */
static bool request(struct kafka_client *c, rd_kafka_NewTopic_t **topics, size_t n, int timeout_ms,
                    struct err *err)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    bool made = false;

    rd_kafka_CreateTopics(c->rk, topics, n, NULL, queue);

    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);

    if (event) {
        made = all_were_made(event, err);
        rd_kafka_event_destroy(event);
    } else {
        (void)err_set(err, ERR_IO, "topics cannot be made: no answer in %d ms", timeout_ms);
    }
    rd_kafka_queue_destroy(queue);
    return made;
}

/* The request for one topic; NULL: *err. */
static rd_kafka_NewTopic_t *new_topic(const struct kafka_settings *set, const struct wanted *w,
                                      struct err *err)
{
    char text[200];
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(w->name, w->positions ? 1 : set->partitions,
                                                       set->replication, text, sizeof(text));

    if (!topic) {
        (void)err_set(err, ERR_INVALID, "topic %s: %s", w->name, text);
    } else if (w->positions) {
        (void)rd_kafka_NewTopic_set_config(topic, "cleanup.policy", "compact");
    }
    return topic;
}

/* All at once: the broker makes five as quickly as one. */
static bool make_topics(struct kafka_client *c, const struct kafka_settings *set,
                        const struct wanted *const *missing, size_t n, int timeout_ms,
                        struct err *err)
{
    rd_kafka_NewTopic_t *topics[MOST_TOPICS];
    bool made;

    if (!set->create_topics) {
        return err_set(
            err, ERR_INVALID, "topic %s is not there, and create_topics is off%s", missing[0]->name,
            missing[0]->positions ? ": make it with one partition and cleanup.policy=compact" : "");
    }
    for (size_t i = 0; i < n; i++) {
        topics[i] = new_topic(set, missing[i], err);
        if (!topics[i]) {
            rd_kafka_NewTopic_destroy_array(topics, i);
            return false;
        }
    }
    made = request(c, topics, n, timeout_ms, err);
    rd_kafka_NewTopic_destroy_array(topics, n);
    return made;
}

static bool open_topics(struct kafka_client *c, const struct wanted *list, size_t n,
                        struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        *list[i].open = rd_kafka_topic_new(c->rk, list[i].name, NULL);
        if (!*list[i].open) {
            return err_set(err, ERR_INVALID, "topic %s: %s", list[i].name,
                           rd_kafka_err2str(rd_kafka_last_error()));
        }
    }
    return true;
}

static bool all_have_leaders(const struct rd_kafka_metadata *metadata)
{
    for (int t = 0; t < metadata->topic_cnt; t++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[t];

        for (int i = 0; i < topic->partition_cnt; i++) {
            if (topic->partitions[i].leader < 0) {
                return false;
            }
        }
        if (topic->err || topic->partition_cnt == 0) {
            return false;
        }
    }
    return true;
}

/*
 * A leader that was just chosen may not know it yet, and refuse. Of several batches that are
 * on their way to it then, librdkafka can take one for stored that is not (KAFKA-15591): so
 * nothing is sent before each leader has told the offsets of its partition, as only one does.
 */
static bool all_lead(struct kafka_client *c, const struct rd_kafka_metadata *metadata,
                     int64_t deadline_ms)
{
    for (int t = 0; t < metadata->topic_cnt; t++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[t];

        for (int i = 0; i < topic->partition_cnt; i++) {
            int64_t low;
            int64_t high;

            if (rd_kafka_query_watermark_offsets(c->rk, topic->topic, topic->partitions[i].id, &low,
                                                 &high, clock_left_ms(deadline_ms))) {
                return false;
            }
        }
    }
    return true;
}

/*
 * Let librdkafka learn now who leads the topics' partitions; by itself it looks once a
 * second. That it could not is no error: messages wait for it.
 */
static void learn_leaders(struct kafka_client *c, bool are_new)
{
    enum { PATIENCE_MS = 1000, PATIENCE_NEW_MS = 5000, PAUSE_MS = 10 };
    int64_t deadline_ms = clock_mono_ms() + (are_new ? PATIENCE_NEW_MS : PATIENCE_MS);
    bool known = false;

    while (!known && clock_left_ms(deadline_ms) > 0) {
        const struct rd_kafka_metadata *metadata;

        if (rd_kafka_metadata(c->rk, 0, NULL, &metadata, clock_left_ms(deadline_ms))) {
            return;
        }
        known = all_have_leaders(metadata) && (!are_new || all_lead(c, metadata, deadline_ms));
        rd_kafka_metadata_destroy(metadata);
        (void)rd_kafka_poll(c->rk, known ? 0 : PAUSE_MS);
    }
}

bool kafka_client_topics(struct kafka_client *c, const struct kafka_settings *set, int timeout_ms,
                         struct err *err)
{
    struct wanted list[MOST_TOPICS];
    const struct wanted *missing[MOST_TOPICS] = { NULL };
    size_t n = list_wanted(c, set, list);
    size_t n_missing = 0;

    if (!find_missing(c, list, n, missing, &n_missing, timeout_ms, err) ||
        (n_missing > 0 && !make_topics(c, set, missing, n_missing, timeout_ms, err)) ||
        !open_topics(c, list, n, err)) {
        return false;
    }
    learn_leaders(c, n_missing > 0);
    return true;
}
