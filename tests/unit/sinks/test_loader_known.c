#include "sinks/loader_known.h"

#include "tests/unit/unit.h"

static struct digest leaf_of(const char *text)
{
    return digest_of(slice_from_cstr(text));
}

static void assert_is(const struct loader_known *k, uint64_t seq, const char *text,
                      enum loader_number_is expected)
{
    struct digest leaf = leaf_of(text);

    assert_int_equal(loader_known_as(k, seq, &leaf), expected);
}

static void add(struct loader_known *k, uint64_t seq, const char *text)
{
    struct digest leaf = leaf_of(text);

    loader_known_add(k, seq, &leaf);
}

static void in_an_empty_one_every_number_is_free(void **state)
{
    (void)state;
    struct loader_known k = { 0 };

    assert_is(&k, 1, "a", LOADER_NUMBER_FREE);
    assert_is(&k, UINT64_MAX, "a", LOADER_NUMBER_FREE);
    loader_known_done(&k);
}

static void a_number_is_its_records_and_anothers_to_all_others(void **state)
{
    (void)state;
    static const uint64_t in[] = { 10, 20, 15, 5, UINT64_MAX, 1, 12 };
    static const uint64_t out[] = { 2, 4, 6, 11, 13, 16, 21, UINT64_MAX - 1 };
    struct loader_known k = { 0 };

    for (size_t i = 0; i < COUNT_OF(in); i++) {
        add(&k, in[i], "a");
    }

    for (size_t i = 0; i < COUNT_OF(in); i++) {
        assert_is(&k, in[i], "a", LOADER_NUMBER_ITS);
        assert_is(&k, in[i], "b", LOADER_NUMBER_ANOTHER);
    }
    for (size_t i = 0; i < COUNT_OF(out); i++) {
        assert_is(&k, out[i], "a", LOADER_NUMBER_FREE);
    }
    loader_known_done(&k);
}

static void a_number_that_was_given_twice_is_that_of_both(void **state)
{
    (void)state;
    struct loader_known k = { 0 };

    add(&k, 7, "a");
    add(&k, 7, "b");

    assert_is(&k, 7, "a", LOADER_NUMBER_ITS);
    assert_is(&k, 7, "b", LOADER_NUMBER_ITS);
    assert_is(&k, 7, "c", LOADER_NUMBER_ANOTHER);
    assert_int_equal(k.n, 2);
    loader_known_done(&k);
}

static void what_is_there_is_not_added_again(void **state)
{
    (void)state;
    struct loader_known k = { 0 };

    for (size_t i = 0; i < 1000; i++) {
        add(&k, 1 + i % 3, "a");
    }

    assert_int_equal(k.n, 3);
    loader_known_done(&k);
}

/* Runs, runs that lie a power of two apart, and numbers far apart: none is lost by growing. */
static void many_numbers_are_all_kept(void **state)
{
    (void)state;
    enum { N = 5000 };
    static const uint64_t strides[] = { 1, 2, 4096, 65536, UINT64_C(1) << 40 };

    for (size_t s = 0; s < COUNT_OF(strides); s++) {
        struct loader_known k = { 0 };

        for (uint64_t i = 1; i <= N; i++) {
            add(&k, i * strides[s], "a");
        }
        assert_int_equal(k.n, N);
        for (uint64_t i = 1; i <= N; i++) {
            assert_is(&k, i * strides[s], "a", LOADER_NUMBER_ITS);
            assert_is(&k, i * strides[s], "b", LOADER_NUMBER_ANOTHER);
            assert_is(&k, (N + i) * strides[s], "a", LOADER_NUMBER_FREE);
        }
        loader_known_done(&k);
    }
}

static void done_leaves_one_that_can_be_filled_again(void **state)
{
    (void)state;
    struct loader_known k = { 0 };

    add(&k, 7, "a");
    loader_known_done(&k);
    assert_is(&k, 7, "a", LOADER_NUMBER_FREE);
    add(&k, 8, "a");
    assert_is(&k, 8, "a", LOADER_NUMBER_ITS);
    loader_known_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_an_empty_one_every_number_is_free),
        cmocka_unit_test(a_number_is_its_records_and_anothers_to_all_others),
        cmocka_unit_test(a_number_that_was_given_twice_is_that_of_both),
        cmocka_unit_test(what_is_there_is_not_added_again),
        cmocka_unit_test(many_numbers_are_all_kept),
        cmocka_unit_test(done_leaves_one_that_can_be_filled_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
