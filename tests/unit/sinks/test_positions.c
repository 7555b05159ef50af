#include "sinks/positions.h"

#include <string.h>

#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

#define J SLICE("0190a000-0000-7000-8000-000000000001")
#define K SLICE("0190a000-0000-7000-8000-000000000002")
#define FILE_NAME "sinks/x.positions.json"

static struct positions load(void)
{
    struct positions p;
    struct err err = { 0 };

    if (!positions_load(fake_folder_path(), "x", &p, &err)) {
        fail_msg("%s", err.text);
    }
    return p;
}

static void flush(struct positions *p, bool now)
{
    struct err err = { 0 };

    if (!positions_flush(p, now, &err)) {
        fail_msg("%s", err.text);
    }
}

static bool file_says(const char *text)
{
    return strstr(fake_folder_get(FILE_NAME), text) != NULL;
}

static void a_journal_that_nobody_knows_stands_at_1(void **state)
{
    (void)state;
    CLEANUP(positions_done) struct positions p = load();

    assert_int_equal(positions_get(&p, J), 1);
    assert_int_equal(positions_told(&p, J), 0);
}

static void what_was_written_is_there_after_a_restart(void **state)
{
    (void)state;
    struct positions p = load();

    positions_deliver(&p, J, 42);
    positions_set(&p, K, 7);
    positions_tell(&p, K, 9);
    positions_count_dead(&p, 3);
    positions_count_lost(&p, 4);
    flush(&p, true);
    int64_t delivered_us = p.delivered_us;

    positions_done(&p);
    p = load();
    assert_int_equal(positions_get(&p, J), 42);
    assert_int_equal(positions_get(&p, K), 7);
    assert_int_equal(positions_told(&p, K), 9);
    assert_int_equal(p.dead, 3);
    assert_int_equal(p.lost, 4);
    assert_true(delivered_us > 0);
    assert_int_equal(p.delivered_us, delivered_us);
    positions_done(&p);
}

static void a_loss_told_of_a_journal_without_position_leaves_it_at_1(void **state)
{
    (void)state;
    CLEANUP(positions_done) struct positions p = load();

    positions_tell(&p, J, 5);
    assert_int_equal(positions_get(&p, J), 1);
    flush(&p, true);
    assert_false(file_says("000000000001\": 0"));
}

static void what_was_told_before_the_position_is_forgotten(void **state)
{
    (void)state;
    struct positions p = load();

    positions_tell(&p, J, 5);
    positions_deliver(&p, J, 6);
    flush(&p, true);
    positions_done(&p);
    p = load();
    assert_int_equal(positions_told(&p, J), 0);
    positions_done(&p);
}

static void whose_position_it_is_outlives_a_restart(void **state)
{
    (void)state;
    struct positions p = load();

    positions_deliver(&p, J, 6);
    positions_deliver(&p, K, 7);
    positions_set_here(&p, J, true);
    flush(&p, true);
    positions_done(&p);
    p = load();
    assert_true(positions_here(&p, J));
    assert_false(positions_here(&p, K));
    positions_set_here(&p, J, false);
    flush(&p, true);
    positions_done(&p);
    p = load();
    assert_false(positions_here(&p, J));
    positions_done(&p);
}

static void the_state_and_its_reason_are_in_the_file(void **state)
{
    (void)state;
    CLEANUP(positions_done) struct positions p = load();

    positions_set_state(&p, SINK_STATE_BROKEN, "no \"column\"");
    flush(&p, true);
    assert_true(file_says("\"state\": \"broken\""));
    assert_true(file_says("\"error\": \"no \\\"column\\\"\""));
    assert_false(file_says("\"delivered\""));
    positions_set_state(&p, SINK_STATE_OK, "");
    flush(&p, true);
    assert_true(file_says("\"state\": \"ok\""));
}

static void a_reason_that_is_cut_within_a_character_is_in_the_file(void **state)
{
    (void)state;
    CLEANUP(positions_done) struct positions p = load();

    positions_set_state(&p, SINK_STATE_BROKEN, "role \"j\xc3\xbcrgen\" \xff, \xe2\x82");
    flush(&p, true);
    assert_true(file_says("role \\\"j\xc3\xbcrgen\\\" ?, ??"));
    positions_set_state(&p, SINK_STATE_BROKEN, "role \"j\xc3\xbcrgen\" \xff, \xe2\x82");
    assert_false(p.changed);
}

static void the_file_is_written_at_most_once_a_second_unless_it_must(void **state)
{
    (void)state;
    CLEANUP(positions_done) struct positions p = load();

    flush(&p, false);
    positions_set(&p, J, 987654321); /* digits that no time has */
    flush(&p, false);
    assert_false(file_says("987654321"));
    flush(&p, true);
    assert_true(file_says("987654321"));
}

static void a_file_that_cannot_be_understood_is_an_error(void **state)
{
    (void)state;
    struct positions p;
    struct err err = { 0 };

    fake_folder_put(FILE_NAME, "{\"positions\":");
    assert_false(positions_load(fake_folder_path(), "x", &p, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    assert_non_null(strstr(err.text, "x.positions.json:1"));
}

static void only_a_sink_that_is_not_named_is_unconfigured(void **state)
{
    (void)state;
    const char *const names[] = { "y" };
    struct positions p = load();
    struct err err = { 0 };

    positions_deliver(&p, J, 8);
    flush(&p, true);
    positions_done(&p);
    fake_folder_put("sinks/y.positions.json", "{\"configured\":true}");
    assert_true(positions_unconfigure(fake_folder_path(), names, 1, &err));
    assert_true(file_says("\"configured\": false"));
    assert_true(file_says("\": 8"));
    assert_string_equal(fake_folder_get("sinks/y.positions.json"), "{\"configured\":true}");
    p = load();
    flush(&p, true);
    assert_true(file_says("\"configured\": true"));
    positions_done(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_journal_that_nobody_knows_stands_at_1),
        TEST(what_was_written_is_there_after_a_restart),
        TEST(a_loss_told_of_a_journal_without_position_leaves_it_at_1),
        TEST(what_was_told_before_the_position_is_forgotten),
        TEST(whose_position_it_is_outlives_a_restart),
        TEST(the_state_and_its_reason_are_in_the_file),
        TEST(a_reason_that_is_cut_within_a_character_is_in_the_file),
        TEST(the_file_is_written_at_most_once_a_second_unless_it_must),
        TEST(a_file_that_cannot_be_understood_is_an_error),
        TEST(only_a_sink_that_is_not_named_is_unconfigured),
    };

    return cmocka_run_group_tests_name("sinks/positions", tests, NULL, NULL);
}
