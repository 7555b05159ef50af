#include "sinks/rollup.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

enum { MINUTE_US = 60 * 1000 * 1000, KEYS = 1000 };

static int begin(void **state)
{
    static struct rollup r;

    rollup_init(&r);
    *state = &r;
    return 0;
}

static int end(void **state)
{
    rollup_done(*state);
    return 0;
}

static struct evaluation evaluation_at(int64_t time_us, int64_t duration_us)
{
    return (struct evaluation){ .head = { .time_us = time_us },
                                .contract = SLICE("sre"),
                                .hook_event_type = SLICE("PreToolUse"),
                                .tool_name = SLICE("Bash"),
                                .final_decision = DECISION_DENY,
                                .duration_us = duration_us };
}

static void count(struct rollup *r, const struct evaluation *e)
{
    struct err err = { 0 };

    if (!rollup_count(r, e, &err)) {
        fail_msg("%s", err.text);
    }
}

static void chains_of_one_minute_share_a_row(void **state)
{
    struct rollup *r = *state;
    const struct evaluation list[] = { evaluation_at(5 * (int64_t)MINUTE_US, 90),
                                       evaluation_at(6 * (int64_t)MINUTE_US - 1, 3000) };

    count(r, &list[0]);
    count(r, &list[1]);
    assert_int_equal(r->n_rows, 1);
    assert_int_equal(r->rows[0].key.minute, 5);
    assert_false(r->rows[0].key.of_hook);
    assert_true(slice_equal(r->rows[0].key.decision, SLICE("deny")));
    assert_int_equal(r->rows[0].n, 2);
    assert_int_equal(r->rows[0].duration_us, 3090);
    assert_int_equal(r->rows[0].duration_max_us, 3000);
    assert_int_equal(r->rows[0].buckets[histogram_bucket(90)], 1);
    assert_int_equal(r->rows[0].buckets[histogram_bucket(3000)], 1);
}

static void the_next_minute_and_every_other_key_have_rows_of_their_own(void **state)
{
    struct rollup *r = *state;
    struct evaluation list[] = { evaluation_at(0, 1), evaluation_at(MINUTE_US, 1),
                                 evaluation_at(0, 1), evaluation_at(0, 1),
                                 evaluation_at(0, 1), evaluation_at(0, 1) };

    list[2].contract = SLICE("oscova");
    list[3].hook_event_type = SLICE("Stop");
    list[4].tool_name = SLICE("");
    list[5].final_decision = DECISION_PASS;
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        count(r, &list[i]);
    }
    assert_int_equal(r->n_rows, COUNT_OF(list));
}

static void what_is_outside_of_the_edges_is_counted_at_the_nearer_one(void **state)
{
    static const struct {
        int64_t time_us;
        int64_t minute;
    } list[] = {
        { 0, 10 },
        { 10 * (int64_t)MINUTE_US - 1, 10 },
        { 11 * (int64_t)MINUTE_US, 11 },
        { 20 * (int64_t)MINUTE_US - 1, 19 },
        { 20 * (int64_t)MINUTE_US, 19 },
        { INT64_MAX, 19 },
    };
    struct rollup *r = *state;

    r->first_us = 10 * (int64_t)MINUTE_US;
    r->last_us = 20 * (int64_t)MINUTE_US - 1;
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        struct evaluation e = evaluation_at(list[i].time_us, 1);

        rollup_clear(r);
        count(r, &e);
        assert_int_equal(r->rows[0].key.minute, list[i].minute);
    }
}

/* The same letters, parted otherwise. */
static void texts_do_not_run_into_each_other(void **state)
{
    struct rollup *r = *state;
    struct evaluation one = evaluation_at(0, 1);
    struct evaluation two = evaluation_at(0, 1);

    one.contract = SLICE("ab");
    one.hook_event_type = SLICE("c");
    two.contract = SLICE("a");
    two.hook_event_type = SLICE("bc");
    count(r, &one);
    count(r, &two);
    assert_int_equal(r->n_rows, 2);
}

static void a_skipped_hook_is_counted_and_has_no_duration(void **state)
{
    struct rollup *r = *state;
    struct execution hooks[] = { { .hook_name = SLICE("guard"),
                                   .tier = TIER_SYSTEM,
                                   .decision = DECISION_SKIPPED,
                                   .skip_reason = SKIP_MATCHER,
                                   .duration_us = 77 },
                                 { .hook_name = SLICE("guard"),
                                   .tier = TIER_SYSTEM,
                                   .decision = DECISION_ERROR,
                                   .cause = CAUSE_TIMEOUT,
                                   .duration_us = 500 } };
    struct evaluation e = evaluation_at(0, 1);

    e.hooks = hooks;
    e.n_hooks = COUNT_OF(hooks);
    count(r, &e);
    assert_int_equal(r->n_rows, 3);
    assert_true(slice_equal(r->rows[1].key.skip_reason, SLICE("matcher")));
    assert_int_equal(r->rows[1].n, 1);
    assert_int_equal(r->rows[1].duration_us, 0);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(r->rows[1].buckets[i], 0);
    }
    assert_true(slice_equal(r->rows[2].key.cause, SLICE("timeout")));
    assert_int_equal(r->rows[2].duration_us, 500);
}

/* Past the first size of the table of slots; keys are copied, so the name may change. */
static void many_keys_are_found_again(void **state)
{
    struct rollup *r = *state;
    char name[16];
    struct evaluation e = evaluation_at(0, 1);

    for (size_t i = 0; i < 2 * (size_t)KEYS; i++) {
        (void)snprintf(name, sizeof(name), "tool-%zu", i % KEYS);
        e.tool_name = slice_from_cstr(name);
        count(r, &e);
    }
    assert_int_equal(r->n_rows, KEYS);
    for (size_t i = 0; i < r->n_rows; i++) {
        assert_int_equal(r->rows[i].n, 2);
    }
}

static void names_are_told_apart_by_their_first_hundred_characters(void **state)
{
    struct rollup *r = *state;
    struct evaluation e = evaluation_at(0, 1);
    char name[300];

    for (size_t i = 0; i + 3 <= sizeof(name); i += 3) {
        memcpy(name + i, "\xe2\x82\xac", 3);
    }
    e.tool_name = (struct slice){ name, 300 };
    count(r, &e);
    name[297] = 'x';
    e.tool_name = (struct slice){ name, 298 };
    count(r, &e);
    assert_int_equal(r->n_rows, 2);

    char long_name[400] = { 0 };

    memset(long_name, 'n', sizeof(long_name));
    e.tool_name = (struct slice){ long_name, 101 };
    count(r, &e);
    e.tool_name.len = sizeof(long_name);
    count(r, &e);
    assert_int_equal(r->n_rows, 3);
    assert_int_equal(r->rows[2].n, 2);
    assert_int_equal(r->rows[2].key.tool_name.len, ROLLUP_NAME_CHARS);
}

static void clear_forgets_the_counts(void **state)
{
    struct rollup *r = *state;
    const struct evaluation e = evaluation_at(0, 1);

    count(r, &e);
    rollup_clear(r);
    assert_int_equal(r->n_rows, 0);
    count(r, &e);
    assert_int_equal(r->n_rows, 1);
    assert_int_equal(r->rows[0].n, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(chains_of_one_minute_share_a_row),
        TEST(the_next_minute_and_every_other_key_have_rows_of_their_own),
        TEST(what_is_outside_of_the_edges_is_counted_at_the_nearer_one),
        TEST(texts_do_not_run_into_each_other),
        TEST(a_skipped_hook_is_counted_and_has_no_duration),
        TEST(many_keys_are_found_again),
        TEST(names_are_told_apart_by_their_first_hundred_characters),
        TEST(clear_forgets_the_counts),
    };

    return cmocka_run_group_tests_name("sinks/rollup", tests, NULL, NULL);
}
