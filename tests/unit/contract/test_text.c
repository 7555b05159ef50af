#include "collector/contract/text.h"

#include "tests/unit/unit.h"

static void trim_takes_blanks_off_both_ends_and_leaves_those_inside(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *trimmed;
    } cases[] = {
        { "", "" },
        { " \t\r\n\v\f", "" },
        { " a b ", "a b" },
        { "\na\n\nb\n", "a\n\nb" },
        { "\xc2\xa0x\xe3\x80\x80", "x" },
        { "\xe2\x80\x83\xe2\x80\xa8", "" },
        { "\xc3\xa9", "\xc3\xa9" },
        { "\xff \xff", "\xff \xff" },
        { "x\x80", "x\x80" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice got = text_trim(slice_from_cstr(cases[i].text));

        assert_true(slice_equal(got, slice_from_cstr(cases[i].trimmed)));
        assert_int_equal(text_is_blank(slice_from_cstr(cases[i].text)), cases[i].trimmed[0] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trim_takes_blanks_off_both_ends_and_leaves_those_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
