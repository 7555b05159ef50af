/* The topics of a kafka_client: look for them, make the missing ones. */
#include <stdio.h>
#include <string.h>

#include "collector/base/clock.h"
#include "sinks/kafka_client.h"

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

/* Which of `names` the cluster does not have, at the end of `missing`. */
static bool find_missing(struct kafka_client *c, const char *const *names, const char **missing,
                         int timeout_ms, struct err *err)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code = ask(c, &metadata, timeout_ms);
    size_t n = 0;

    if (code) {
        return kafka_client_fail(c, code, "kafka", err);
    }
    for (; *names; names++) {
        bool found = false;

        for (int i = 0; i < metadata->topic_cnt && !found; i++) {
            found = strcmp(metadata->topics[i].topic, *names) == 0;
        }
        if (!found) {
            missing[n++] = *names;
        }
    }
    missing[n] = NULL;
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

enum { MOST_TOPICS = KAFKA_TOPICS + 1 };

bool kafka_client_topics(struct kafka_client *c, const struct kafka_settings *set,
                         const char *const *names, bool compact, int timeout_ms, struct err *err)
{
    const char *missing[MOST_TOPICS] = { NULL };
    rd_kafka_NewTopic_t *topics[MOST_TOPICS];
    char text[200];
    size_t n = 0;

    if (!find_missing(c, names, missing, timeout_ms, err)) {
        return false;
    }
    if (!missing[0]) {
        return true;
    }
    if (!set->create_topics) {
        return err_set(err, ERR_INVALID, "topic %s is not there, and create_topics is off",
                       missing[0]);
    }
    for (; missing[n]; n++) {
        topics[n] = rd_kafka_NewTopic_new(missing[n], compact ? 1 : set->partitions,
                                          set->replication, text, sizeof(text));
        if (!topics[n]) {
            rd_kafka_NewTopic_destroy_array(topics, n);
            return err_set(err, ERR_INVALID, "topic %s: %s", missing[n], text);
        }
        if (compact) {
            (void)rd_kafka_NewTopic_set_config(topics[n], "cleanup.policy", "compact");
        }
    }

    bool made = request(c, topics, n, timeout_ms, err);

    rd_kafka_NewTopic_destroy_array(topics, n);
    return made;
}

static bool open_topics(struct kafka_client *c, const char *const *names, struct err *err)
{
    for (int i = 0; i < KAFKA_TOPICS; i++) {
        c->topics[i] = rd_kafka_topic_new(c->rk, names[i], NULL);
        if (!c->topics[i]) {
            return err_set(err, ERR_INVALID, "topic %s: %s", names[i],
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
 * Let librdkafka learn now who leads the topics' partitions; by itself it looks once a
 * second. That it could not is no error: messages wait for it.
 */
static void learn_leaders(struct kafka_client *c)
{
    enum { PATIENCE_MS = 1000, PAUSE_MS = 10 };
    int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    bool known = false;

    while (!known && clock_left_ms(deadline_ms) > 0) {
        const struct rd_kafka_metadata *metadata;

        if (rd_kafka_metadata(c->rk, 0, NULL, &metadata, clock_left_ms(deadline_ms))) {
            return;
        }
        known = all_have_leaders(metadata);
        rd_kafka_metadata_destroy(metadata);
        (void)rd_kafka_poll(c->rk, known ? 0 : PAUSE_MS);
    }
}

bool kafka_client_record_topics(struct kafka_client *c, const struct kafka_settings *set,
                                int timeout_ms, struct err *err)
{
    char texts[KAFKA_TOPICS][256];
    const char *names[KAFKA_TOPICS + 1];

    for (int i = 0; i < KAFKA_TOPICS; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%s.%s", c->prefix,
                       kafka_topic_name((enum kafka_topic)i));
        names[i] = texts[i];
    }
    names[KAFKA_TOPICS] = NULL;
    if (!kafka_client_topics(c, set, names, false, timeout_ms, err) ||
        !open_topics(c, names, err)) {
        return false;
    }
    learn_leaders(c);
    return true;
}
