#include "sinks/kafka_ends.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/cleanup.h"
#include "collector/base/log.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/sinks/fake_kafka.h"
#include "tests/unit/unit.h"

#define ENDS CLEANUP(kafka_ends_done) struct kafka_ends
#define FAKE CLEANUP(fake_kafka_freep) struct fake_kafka
#define FILE_NAME "sinks/k.ends.json"

enum { TIMEOUT_MS = 5000 };

static struct kafka_ends load(void)
{
    struct kafka_ends e;
    struct err err;

    assert_true(kafka_ends_load(fake_folder_path(), "k", &e, &err));
    return e;
}

static int64_t end_of(const struct kafka_ends *e, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < e->n; i++) {
        if (strcmp(e->list[i].topic, topic) == 0 && e->list[i].partition == partition) {
            return e->list[i].end;
        }
    }
    return -1;
}

static void what_was_acknowledged_is_there_after_a_restart(void **state)
{
    (void)state;
    ENDS e = load();

    assert_int_equal(e.n, 0);
    fake_folder_put("sinks/other", ""); /* the folder is the runner's */
    kafka_ends_saw(&e, "a", 0, 4);
    kafka_ends_saw(&e, "a", 1, 9);
    kafka_ends_saw(&e, "b", 0, 0);
    kafka_ends_saw(&e, "a", 0, 5);
    kafka_ends_flush(&e, true);

    ENDS again = load();

    assert_int_equal(again.n, 3);
    assert_int_equal(end_of(&again, "a", 0), 6);
    assert_int_equal(end_of(&again, "a", 1), 10);
    assert_int_equal(end_of(&again, "b", 0), 1);
    assert_false(again.changed);
}

static void many_partitions_are_kept_apart(void **state)
{
    (void)state;
    enum { MANY = 100 };
    ENDS e = load();

    for (int32_t i = 0; i < MANY; i++) {
        kafka_ends_saw(&e, "a", i, i);
    }
    for (int32_t i = 0; i < MANY; i++) {
        assert_int_equal(end_of(&e, "a", i), i + 1);
    }
}

static void an_answer_without_an_offset_says_nothing(void **state)
{
    (void)state;
    ENDS e = load();

    kafka_ends_saw(&e, "a", 0, -1001);
    assert_int_equal(e.n, 0);
    assert_false(e.changed);
}

static void it_is_written_once_a_second_unless_now(void **state)
{
    (void)state;
    ENDS e = load();

    fake_folder_put("sinks/other", "");
    kafka_ends_saw(&e, "a", 0, 0);
    kafka_ends_flush(&e, true);
    kafka_ends_saw(&e, "a", 0, 77);
    kafka_ends_flush(&e, false);
    assert_null(strstr(fake_folder_get(FILE_NAME), "78"));
    kafka_ends_flush(&e, true);
    assert_non_null(strstr(fake_folder_get(FILE_NAME), "78"));
}

static void without_a_state_folder_nothing_is_kept(void **state)
{
    (void)state;
    struct err err;
    ENDS e;

    assert_true(kafka_ends_load(NULL, "k", &e, &err));
    kafka_ends_saw(&e, "a", 0, 3);
    kafka_ends_flush(&e, true);
    assert_int_equal(end_of(&e, "a", 0), 4);
}

static void a_file_that_cannot_be_understood_is_named(void **state)
{
    (void)state;
    struct kafka_ends e;
    struct err err = { 0 };

    fake_folder_put(FILE_NAME, "{\"a/0\":");
    assert_false(kafka_ends_load(fake_folder_path(), "k", &e, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    assert_non_null(strstr(err.text, "k.ends.json:1"));
}

static void a_place_that_is_none_is_passed_over(void **state)
{
    (void)state;
    fake_folder_put(FILE_NAME,
                    "{\"a\": 1, \"a/x\": 2, \"a/-1\": 3, \"a/4294967296\": 4, \"a/2\": 5}");
    ENDS e = load();

    assert_int_equal(e.n, 1);
    assert_int_equal(end_of(&e, "a", 2), 5);
}

static void a_lower_offset_is_a_topic_made_anew_and_counts_from_there(void **state)
{
    (void)state;
    ENDS e = load();

    kafka_ends_saw(&e, "a", 0, 100);
    kafka_ends_saw(&e, "a", 0, 2);
    assert_int_equal(end_of(&e, "a", 0), 3);
}

/* Ends of a topic "t" with two partitions and nothing in it, as they were kept. */
static struct kafka_ends kept(const char *json)
{
    fake_folder_put(FILE_NAME, json);
    return load();
}

static void a_topic_that_has_less_than_it_had_is_told_once(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();

    fake_kafka_topic(f, "t", 2);

    ENDS e = kept("{\"t/0\": 5, \"t/1\": 0}");

    kafka_ends_check(&e, fake_kafka_client(f), TIMEOUT_MS);
    assert_int_equal(end_of(&e, "t", 0), 0);
    assert_int_equal(end_of(&e, "t", 1), 0);

    ENDS again = load();

    assert_int_equal(end_of(&again, "t", 0), 0);
}

static void a_partition_that_is_no_more_has_nothing(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();

    fake_kafka_topic(f, "t", 1);

    ENDS e = kept("{\"t/7\": 5}");

    kafka_ends_check(&e, fake_kafka_client(f), TIMEOUT_MS);
    assert_int_equal(end_of(&e, "t", 7), 0);
}

/* What cannot be asked is not told: an outage is no new topic. */
static void a_broker_that_is_away_changes_nothing(void **state)
{
    (void)state;
    FAKE *f = fake_kafka_new();
    ENDS e = kept("{\"t/0\": 5}");

    fake_kafka_topic(f, "t", 1);
    assert_int_equal(rd_kafka_mock_broker_set_down(fake_kafka_cluster(f), 1), 0);
    kafka_ends_check(&e, fake_kafka_client(f), 300);
    assert_int_equal(end_of(&e, "t", 0), 5);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_acknowledged_is_there_after_a_restart),
        TEST(many_partitions_are_kept_apart),
        TEST(an_answer_without_an_offset_says_nothing),
        TEST(it_is_written_once_a_second_unless_now),
        TEST(without_a_state_folder_nothing_is_kept),
        TEST(a_file_that_cannot_be_understood_is_named),
        TEST(a_place_that_is_none_is_passed_over),
        TEST(a_lower_offset_is_a_topic_made_anew_and_counts_from_there),
        TEST(a_topic_that_has_less_than_it_had_is_told_once),
        TEST(a_partition_that_is_no_more_has_nothing),
        TEST(a_broker_that_is_away_changes_nothing),
    };

    log_set_level((enum log_level)(LOG_ERROR + 1)); /* what is told is expected */
    return cmocka_run_group_tests_name("sinks/kafka_ends", tests, NULL, NULL);
}
