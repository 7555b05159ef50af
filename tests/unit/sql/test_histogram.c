#include "collector/sql/histogram.h"

#include "tests/unit/unit.h"

static void a_bound_belongs_to_the_bucket_below_it(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *column;
    } cases[] = {
        { -5, "d_100us" },     { 0, "d_100us" },       { 100, "d_100us" },
        { 101, "d_1ms" },      { 1000, "d_1ms" },      { 1001, "d_2ms" },
        { 30000000, "d_30s" }, { 30000001, "d_more" }, { INT64_MAX, "d_more" },
        { 499999, "d_500ms" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_string_equal(histogram_columns[histogram_bucket(cases[i].us)], cases[i].column);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bound_belongs_to_the_bucket_below_it),
    };

    return cmocka_run_group_tests_name("sql/histogram", tests, NULL, NULL);
}
