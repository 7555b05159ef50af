#include "sinks/null.h"

#include "collector/base/log.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/unit.h"

static int open_null(void **state)
{
    const struct sink_config cfg = { .timeout_ms = 1000 };
    struct sink *s = NULL;
    struct err err;

    if (!sink_null_ops.open(&cfg, &s, &err)) {
        return -1;
    }
    *state = s;
    return 0;
}

static int close_null(void **state)
{
    sink_null_ops.close(*state);
    return 0;
}

static void write_accepts_every_record(void **state)
{
    struct sink *s = *state;
    const struct sink_record batch[] = { { .seq = 1 }, { .seq = 2 } };
    const struct span span = { .from = 1, .to = 2, .records = batch, .n = COUNT_OF(batch) };
    struct err err;

    assert_int_equal(s->ops->write(s, &span, &err), SINK_OK);
    assert_int_equal(sink_null_count(s), 2);
}

static void open_refuses_a_target(void **state)
{
    (void)state;
    const struct sink_config cfg = { .target = SLICE("x:1") };
    struct sink *s = NULL;
    struct err err;

    assert_false(sink_null_ops.open(&cfg, &s, &err));
    assert_null(s);
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.text, "takes no target, got 'x:1'");
    log_warn("sink not opened", log_str("sink", "null"), log_str("err", err.text), log_i64("n", 3));
    log_info("no pairs");
    log_error("forged", log_slice("in", SLICE("a\nlevel=error \"x\"")));
}

static void keep_nothing(void)
{
}

int main(void)
{
    static const struct sink_config cfg = { .timeout_ms = 1000 };
    static const struct sink_subject subject = {
        .name = "sinks/null keeps the contract",
        .ops = &sink_null_ops,
        .cfg = &cfg,
        .reset = keep_nothing,
        .forgets = true,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(write_accepts_every_record, open_null, close_null),
        cmocka_unit_test(open_refuses_a_target),
    };

    return sink_contract_run(&subject) +
           cmocka_run_group_tests_name("sinks/null", tests, NULL, NULL);
}
