#include "collector/base/aside.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "tests/unit/unit.h"

enum { SHORT_MS = 20, LONG_MS = 10000 };

/* A call that lasts until its pipe is closed. */
struct call {
    int until[2];
    _Atomic bool worked;
    _Atomic int dropped;
};

static void work(void *ctx)
{
    struct call *c = ctx;
    char byte;

    (void)!read(c->until[0], &byte, 1);
    c->worked = true;
}

static void drop(void *ctx)
{
    struct call *c = ctx;

    c->dropped++;
}

static const struct aside_ops ops = { work, drop };
static struct err err;

static enum aside_end run(struct call *c, int64_t ms)
{
    return aside_run(&ops, c, clock_mono_ms() + ms, &err);
}

static void begin(struct call *c)
{
    *c = (struct call){ 0 };
    assert_int_equal(pipe(c->until), 0);
}

/* Let it end, and wait until its thread has dropped what it worked on. */
static void let_end(struct call *c)
{
    int64_t deadline_ms = clock_mono_ms() + LONG_MS;

    (void)close(c->until[1]);
    while (c->dropped == 0 && clock_left_ms(deadline_ms) > 0) {
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(c->dropped, 1);
    assert_true(c->worked);
    (void)close(c->until[0]);
}

static void a_call_that_ends_gives_back_what_it_worked_on(void **state)
{
    struct call c;

    (void)state;
    begin(&c);
    (void)close(c.until[1]);
    assert_int_equal(run(&c, LONG_MS), ASIDE_DONE);
    assert_true(c.worked);
    assert_int_equal(c.dropped, 0);
    (void)close(c.until[0]);
}

static void a_call_that_lasts_is_left_and_drops_what_it_worked_on_itself(void **state)
{
    int64_t begun_ms = clock_mono_ms();
    struct call c;

    (void)state;
    begin(&c);
    assert_int_equal(run(&c, SHORT_MS), ASIDE_LEFT);
    assert_in_range(clock_mono_ms() - begun_ms, SHORT_MS, LONG_MS);
    assert_false(c.worked);
    let_end(&c);
}

static void calls_that_were_left_are_not_without_number(void **state)
{
    static struct call calls[ASIDE_MOST + 1];
    struct call *one_more = &calls[ASIDE_MOST];

    (void)state;
    for (size_t i = 0; i < ASIDE_MOST; i++) {
        begin(&calls[i]);
        assert_int_equal(run(&calls[i], 0), ASIDE_LEFT);
    }
    begin(one_more);
    assert_int_equal(run(one_more, LONG_MS), ASIDE_REFUSED);
    assert_int_equal(err.code, ERR_AGAIN);
    assert_false(one_more->worked);
    for (size_t i = 0; i < ASIDE_MOST; i++) {
        let_end(&calls[i]);
    }
    assert_int_equal(run(one_more, 0), ASIDE_LEFT);
    let_end(one_more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_ends_gives_back_what_it_worked_on),
        cmocka_unit_test(a_call_that_lasts_is_left_and_drops_what_it_worked_on_itself),
        cmocka_unit_test(calls_that_were_left_are_not_without_number),
    };

    return cmocka_run_group_tests_name("base/aside", tests, NULL, NULL);
}
