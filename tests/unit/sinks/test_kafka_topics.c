/* The topics of a client, and batches that fit into them: kafka_topics.c, kafka_limit.c. */
#include <string.h>

#include "collector/base/clock.h"
#include "sinks/kafka_client.h"
#include "tests/unit/sinks/fake_kafka.h"
#include "tests/unit/unit.h"

#define FAKE CLEANUP(fake_kafka_freep) struct fake_kafka
#define CLIENT CLEANUP(kafka_client_close) struct kafka_client

enum { TIMEOUT_MS = 5000 };
static const char *const nothing[] = { NULL };

static struct kafka_settings settings_of(struct fake_kafka *f)
{
    struct kafka_settings set;
    struct err err;

    assert_true(kafka_settings_read(fake_kafka_settings(f, "exactly-once"), &set, &err));
    return set;
}

static void open_client(struct kafka_client *c, const struct kafka_settings *set)
{
    struct err err;

    assert_true(kafka_client_open(c, set, nothing, &err));
}

/* The same, with the topics, which are there. */
static void open_with_topics(struct fake_kafka *f, struct kafka_client *c,
                             const struct kafka_settings *set)
{
    struct err err;

    fake_kafka_topics(f);
    open_client(c, set);
    assert_true(kafka_client_topics(c, set, TIMEOUT_MS, &err));
}

static void topics_that_are_there_are_opened(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { .keeps_positions = true };

    open_with_topics(f, &c, &set);
    assert_string_equal(rd_kafka_topic_name(c.topics[KAFKA_AUDIT]), "t.audit");
    assert_string_equal(rd_kafka_topic_name(c.topics[KAFKA_HOOK_EXECUTION]), "t.hook_execution");
    assert_string_equal(rd_kafka_topic_name(c.positions), "t.positions");
}

static void positions_are_no_topic_of_who_keeps_none(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { 0 };

    open_with_topics(f, &c, &set);
    assert_null(c.positions);
}

static void a_missing_topic_is_named_where_none_may_be_made(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { .keeps_positions = true };
    struct err err = { 0 };

    set.create_topics = false;
    fake_kafka_topic(f, "t.hook_evaluation", 1);
    fake_kafka_topic(f, "t.hook_execution", 1);
    fake_kafka_topic(f, "t.positions", 1);
    fake_kafka_topic(f, "t.audit", 1);
    open_client(&c, &set);
    assert_false(kafka_client_topics(&c, &set, TIMEOUT_MS, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, "t.tool_execution"));
    assert_null(c.topics[0]);
}

static void a_topic_of_positions_that_is_missing_is_told_with_how_to_make_it(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { .keeps_positions = true };
    struct err err = { 0 };

    set.create_topics = false;
    fake_kafka_record_topics(f);
    open_client(&c, &set);
    assert_false(kafka_client_topics(&c, &set, TIMEOUT_MS, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, "t.positions is not there"));
    assert_non_null(strstr(err.text, "one partition and cleanup.policy=compact"));
}

static void the_partitions_of_positions_are_known(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { .keeps_positions = true };
    struct err err;

    fake_kafka_topic(f, "t.positions", 3);
    fake_kafka_record_topics(f);
    open_client(&c, &set);
    assert_true(kafka_client_topics(&c, &set, TIMEOUT_MS, &err));
    assert_int_equal(c.positions_parts, 3);
}

/* The mock makes none: what a broker says that cannot. */
static void topics_that_cannot_be_made_are_an_error(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { 0 };
    struct err err = { 0 };

    open_client(&c, &set);
    assert_false(kafka_client_topics(&c, &set, 1000, &err));
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.text, "topics cannot be made"));
}

static void a_broker_that_is_away_is_told_with_the_reason_and_in_time(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { 0 };
    struct err err = { 0 };
    int64_t began_ms = clock_mono_ms();

    assert_int_equal(rd_kafka_mock_broker_set_down(fake_kafka_cluster(f), 1), 0);
    open_client(&c, &set);
    assert_false(kafka_client_topics(&c, &set, 500, &err));
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.text, "onnect")); /* refused, or cut */
    assert_in_range(clock_mono_ms() - began_ms, 400, 3000);
}

static void where_the_broker_does_not_tell_its_limit_the_client_stays(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { .keeps_positions = true };
    struct err err;

    open_with_topics(f, &c, &set);

    const rd_kafka_t *before = c.rk;

    assert_true(kafka_client_fit(&c, &set, nothing, TIMEOUT_MS, &err));
    assert_ptr_equal(c.rk, before);
    assert_non_null(c.positions);
}

static void a_closed_client_can_be_closed_and_opened_again(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    struct kafka_settings set = settings_of(f);
    CLIENT c = { 0 };
    struct err err;

    fake_kafka_topics(f);
    for (int i = 0; i < 2; i++) {
        open_client(&c, &set);
        assert_true(kafka_client_topics(&c, &set, TIMEOUT_MS, &err));
        kafka_client_close(&c);
        kafka_client_close(&c);
        assert_null(c.topics[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topics_that_are_there_are_opened),
        cmocka_unit_test(positions_are_no_topic_of_who_keeps_none),
        cmocka_unit_test(a_missing_topic_is_named_where_none_may_be_made),
        cmocka_unit_test(a_topic_of_positions_that_is_missing_is_told_with_how_to_make_it),
        cmocka_unit_test(the_partitions_of_positions_are_known),
        cmocka_unit_test(topics_that_cannot_be_made_are_an_error),
        cmocka_unit_test(a_broker_that_is_away_is_told_with_the_reason_and_in_time),
        cmocka_unit_test(where_the_broker_does_not_tell_its_limit_the_client_stays),
        cmocka_unit_test(a_closed_client_can_be_closed_and_opened_again),
    };

    return cmocka_run_group_tests_name("sinks/kafka_topics", tests, NULL, NULL);
}
