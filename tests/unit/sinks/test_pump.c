#include "sinks/pump.h"

#include "tests/unit/sinks/fake_sink.h"
#include "tests/unit/unit.h"

static const struct sink_record batch[4] = {
    { .seq = 1 }, { .seq = 2 }, { .seq = 3 }, { .seq = 4 }
};

static struct pump new_pump(void)
{
    static const struct sink_config cfg = { .timeout_ms = 1000 };

    fake_sink_script(NULL, 0);
    fake_sink_refuse_open(false);
    return (struct pump){
        .cfg = &cfg,
        .ops = &fake_sink_ops,
        .backoff = { .first_ms = 100, .limit_ms = 1000 },
        .batch_max = 4,
        .batch_now = 4,
    };
}

/* What is left of the four records once `settled` of them are done with. */
static struct span rest(size_t settled)
{
    return (struct span){ .journal = SLICE("j"),
                          .from = settled + 1,
                          .to = 4,
                          .records = batch + settled,
                          .n = 4 - settled };
}

static void run_to_the_end(struct pump *p)
{
    size_t settled = 0;

    for (int i = 0; settled < 4 && i < 20; i++) {
        struct span span = rest(settled);

        settled += pump_step(p, &span).consumed;
    }
    assert_int_equal(settled, 4);
}

static uint64_t position(void)
{
    struct sink_position at = { 0 };
    struct err err;

    assert_true(fake_sink_ops.position(NULL, SLICE("j"), &at, &err));
    return at.next;
}

static void retry_keeps_the_position_and_waits_longer(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_RETRY, SINK_DOWN };
    struct pump p = new_pump();
    struct span span = rest(0);

    fake_sink_script(script, COUNT_OF(script));

    struct pump_step first = pump_step(&p, &span);
    struct pump_step second = pump_step(&p, &span);
    struct pump_step third = pump_step(&p, &span);

    assert_int_equal(first.consumed, 0);
    assert_int_equal(first.pause_ms, 100);
    assert_int_equal(second.consumed, 0);
    assert_int_equal(second.pause_ms, 200);
    assert_int_equal(third.consumed, 4);
    assert_int_equal(third.pause_ms, 0);
}

static void one_bad_record_does_not_stop_the_others(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_REJECT, SINK_REJECT, SINK_REJECT };
    struct pump p = new_pump();

    fake_sink_script(script, COUNT_OF(script));
    run_to_the_end(&p);
    assert_int_equal(p.dead, 1);
    assert_int_equal(position(), 5);
    assert_int_equal(p.batch_now, 4);
}

static void a_bad_record_is_given_up_only_when_the_position_moved(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_REJECT, SINK_REJECT, SINK_REJECT, SINK_DOWN };
    struct pump p = new_pump();

    fake_sink_script(script, COUNT_OF(script));
    for (int i = 0; i < 3; i++) {
        struct span span = rest(0);

        assert_int_equal(pump_step(&p, &span).consumed, 0);
    }
    assert_int_equal(p.dead, 0);
    assert_int_equal(position(), 1);
}

static void a_broken_sink_loses_nothing_and_is_tried_again(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_BROKEN };
    struct pump p = new_pump();
    struct span span = rest(0);

    fake_sink_script(script, COUNT_OF(script));

    struct pump_step first = pump_step(&p, &span);

    assert_int_equal(first.consumed, 0);
    assert_int_equal(first.pause_ms, 1000);
    assert_null(p.sink);
    run_to_the_end(&p);
    assert_int_equal(p.dead, 0);
}

static void refused_open_is_retried(void **state)
{
    (void)state;
    struct pump p = new_pump();
    struct span span = rest(3);

    fake_sink_refuse_open(true);
    assert_int_equal(pump_step(&p, &span).pause_ms, 100);
    assert_string_equal(p.last.text, "connection refused");
    fake_sink_refuse_open(false);
    span = rest(0);
    assert_int_equal(pump_step(&p, &span).consumed, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_keeps_the_position_and_waits_longer),
        cmocka_unit_test(one_bad_record_does_not_stop_the_others),
        cmocka_unit_test(a_bad_record_is_given_up_only_when_the_position_moved),
        cmocka_unit_test(a_broken_sink_loses_nothing_and_is_tried_again),
        cmocka_unit_test(refused_open_is_retried),
    };

    return cmocka_run_group_tests_name("sinks/pump", tests, NULL, NULL);
}
