#include "sinks/cutting.h"

#include "collector/base/clock.h"
#include "tests/unit/sinks/fake_sink.h"
#include "tests/unit/unit.h"

static struct sink_config cfg = { .name = "fake" };
static struct sink *sink;
static size_t told;
static bool refuses;

static bool on_cut(void *ctx, const char *name, const struct sink_cut *cut, struct err *err)
{
    (void)ctx;
    (void)cut;
    assert_string_equal(name, "fake");
    told += !refuses;
    return !refuses || err_set(err, ERR_IO, "no room for the record");
}

static struct cutting begin(const struct fake_cut *list, size_t n)
{
    struct err err;

    told = 0;
    refuses = false;
    fake_sink_cuts(list, n);
    fake_sink_refuse_open(false);
    assert_true(fake_cutting_ops.open(&cfg, &sink, &err));
    return (struct cutting){ .sink = "fake", .on_cut = on_cut };
}

static void assert_waits(const struct cutting *c, int64_t seconds)
{
    int64_t left_ms = c->next_ms - clock_mono_ms();

    assert_false(cutting_is_due(c));
    assert_false(cutting_goes_on(c));
    assert_in_range(left_ms, (seconds - 5) * 1000, seconds * 1000);
}

static void it_goes_on_step_by_step_until_nothing_is_due_and_looks_again_in_an_hour(void **state)
{
    static const struct fake_cut list[] = {
        { .before_us = 1, .rows = 7 }, { .done = false }, { .done = true },
        { .before_us = 2, .rows = 7 }, { .done = true },
    };
    struct cutting c = begin(list, COUNT_OF(list));

    (void)state;
    assert_true(cutting_is_due(&c));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cutting_step(&c, sink), SINK_OK);
        assert_true(cutting_is_due(&c) && cutting_goes_on(&c));
    }
    assert_int_equal(cutting_step(&c, sink), SINK_OK);
    assert_waits(&c, 3600);
    assert_int_equal(told, 2);
}

static void a_cut_that_failed_goes_on_in_a_minute_and_is_not_told_again(void **state)
{
    static const struct fake_cut list[] = { { .before_us = 1, .rows = 7 },
                                            { .result = SINK_DOWN },
                                            { .done = true } };
    struct cutting c = begin(list, COUNT_OF(list));

    (void)state;
    assert_int_equal(cutting_step(&c, sink), SINK_DOWN);
    assert_string_equal(c.err.text, "retention: scripted");
    assert_waits(&c, 60);
    assert_int_equal(cutting_step(&c, sink), SINK_OK);
    assert_int_equal(c.err.code, ERR_NONE);
    assert_true(cutting_goes_on(&c));
    assert_int_equal(told, 1);
}

static void what_could_not_be_told_is_looked_at_and_told_anew(void **state)
{
    static const struct fake_cut list[] = { { .before_us = 1, .rows = 7 },
                                            { .before_us = 1, .rows = 7 },
                                            { .done = true } };
    struct cutting c = begin(list, COUNT_OF(list));

    (void)state;
    refuses = true;
    assert_int_equal(cutting_step(&c, sink), SINK_RETRY);
    assert_int_equal(fake_sink_cuts_taken(), 1);
    assert_waits(&c, 60);
    refuses = false;
    assert_int_equal(cutting_step(&c, sink), SINK_OK);
    assert_int_equal(fake_sink_cuts_taken(), 3);
    assert_int_equal(told, 1);
}

static void what_another_one_sees_to_is_looked_at_anew_in_an_hour(void **state)
{
    static const struct fake_cut list[] = { { .before_us = 1, .rows = 7 },
                                            { .done = false },
                                            { .before_us = 0 } };
    struct cutting c = begin(list, COUNT_OF(list));

    (void)state;
    assert_int_equal(cutting_step(&c, sink), SINK_OK);
    cutting_leave(&c);
    assert_waits(&c, 3600);
    assert_int_equal(cutting_step(&c, sink), SINK_OK);
    assert_int_equal(fake_sink_cuts_taken(), 3);
    assert_int_equal(told, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_step_by_step_until_nothing_is_due_and_looks_again_in_an_hour),
        cmocka_unit_test(a_cut_that_failed_goes_on_in_a_minute_and_is_not_told_again),
        cmocka_unit_test(what_could_not_be_told_is_looked_at_and_told_anew),
        cmocka_unit_test(what_another_one_sees_to_is_looked_at_anew_in_an_hour),
    };

    return cmocka_run_group_tests_name("sinks/cutting", tests, NULL, NULL);
}
