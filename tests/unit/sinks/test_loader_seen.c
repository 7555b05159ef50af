#include "sinks/loader_seen.h"

#include "tests/unit/unit.h"

static void assert_ascending(const struct loader_seen *s)
{
    for (size_t i = 1; i < s->n; i++) {
        assert_true(s->list[i - 1] < s->list[i]);
    }
}

static void an_empty_one_has_nothing(void **state)
{
    (void)state;
    struct loader_seen s = { 0 };

    assert_false(loader_seen_has(&s, 0));
    assert_false(loader_seen_has(&s, 1));
    loader_seen_done(&s);
}

static void it_has_what_was_added_and_nothing_beside_it(void **state)
{
    (void)state;
    static const uint64_t in[] = { 10, 20, 15, 5, UINT64_MAX, 1, 12 };
    static const uint64_t out[] = { 0, 2, 4, 6, 11, 13, 16, 21, UINT64_MAX - 1 };
    struct loader_seen s = { 0 };

    for (size_t i = 0; i < COUNT_OF(in); i++) {
        loader_seen_add(&s, in[i]);
    }
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        assert_true(loader_seen_has(&s, in[i]));
    }
    for (size_t i = 0; i < COUNT_OF(out); i++) {
        assert_false(loader_seen_has(&s, out[i]));
    }
    assert_int_equal(s.n, COUNT_OF(in));
    assert_ascending(&s);
    loader_seen_done(&s);
}

static void what_is_there_is_not_added_again(void **state)
{
    (void)state;
    static const uint64_t in[] = { 3, 1, 2, 3, 1, 2, 2 };
    struct loader_seen s = { 0 };

    for (size_t i = 0; i < COUNT_OF(in); i++) {
        loader_seen_add(&s, in[i]);
    }
    assert_int_equal(s.n, 3);
    assert_ascending(&s);
    loader_seen_done(&s);
}

/* By strides: beginnings, ends and middles, over several growths. */
static void any_order_makes_the_same_list(void **state)
{
    (void)state;
    enum { N = 211 }; /* prime: each stride meets every number */

    for (uint64_t stride = 1; stride < N; stride += 7) {
        struct loader_seen s = { 0 };

        for (uint64_t i = 0; i < N; i++) {
            loader_seen_add(&s, i * stride % N);
        }
        assert_int_equal(s.n, N);
        assert_int_equal(s.list[0], 0);
        assert_int_equal(s.list[N - 1], N - 1);
        loader_seen_done(&s);
    }
}

static void done_leaves_one_that_can_be_filled_again(void **state)
{
    (void)state;
    struct loader_seen s = { 0 };

    loader_seen_add(&s, 7);
    loader_seen_done(&s);
    assert_false(loader_seen_has(&s, 7));
    loader_seen_add(&s, 8);
    assert_true(loader_seen_has(&s, 8));
    loader_seen_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_nothing),
        cmocka_unit_test(it_has_what_was_added_and_nothing_beside_it),
        cmocka_unit_test(what_is_there_is_not_added_again),
        cmocka_unit_test(any_order_makes_the_same_list),
        cmocka_unit_test(done_leaves_one_that_can_be_filled_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
