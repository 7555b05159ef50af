#include "collector/base/plain.h"

#include "tests/unit/unit.h"

enum { LONGEST = 40 };

/* The same, a byte at a time. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Every byte at every place of runs of every length. */
static void a_run_ends_at_the_first_byte_that_is_not_plain(void **state)
{
    (void)state;
    char text[LONGEST];

    for (size_t len = 0; len <= LONGEST; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                memset(text, 'x', sizeof(text));
                text[at] = (char)c;

                struct slice s = { .ptr = text, .len = len };

                assert_int_equal(plain_run(s), is_plain((unsigned char)c) ? len : at);
            }
        }
    }
}

/* A byte behind the one that ends the run must not be taken for an earlier one. */
static void neighbours_do_not_disturb_each_other(void **state)
{
    (void)state;
    char text[8];

    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            memset(text, 'x', sizeof(text));
            text[3] = (char)first;
            text[4] = (char)second;

            size_t expected = !is_plain((unsigned char)first)    ? 3
                              : !is_plain((unsigned char)second) ? 4
                                                                 : sizeof(text);

            assert_int_equal(plain_run((struct slice){ .ptr = text, .len = 8 }), expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_ends_at_the_first_byte_that_is_not_plain),
        cmocka_unit_test(neighbours_do_not_disturb_each_other),
    };

    return cmocka_run_group_tests_name("base/plain", tests, NULL, NULL);
}
