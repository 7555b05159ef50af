#include "collector/journal/crc32c.h"

#include "tests/unit/unit.h"

/* RFC 3720, B.4, and the customary check of nine digits. */
static void the_known_values_come_out(void **state)
{
    static const char zeros[32] = { 0 };
    const struct {
        struct slice bytes;
        uint32_t crc;
    } cases[] = {
        { { 0 }, 0 },
        { SLICE("123456789"), 0xe3069283 },
        { { .ptr = zeros, .len = sizeof(zeros) }, 0x8a9136aa },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(crc32c(0, cases[i].bytes), cases[i].crc);
        assert_int_equal(crc32c_table(0, cases[i].bytes), cases[i].crc);
    }
}

/* A file that one machine wrote is read by another: at every length, and in parts. */
static void instruction_and_table_agree(void **state)
{
    char bytes[100];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 37 + 11);
    }
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        struct slice all = { .ptr = bytes, .len = n };
        struct slice head = { .ptr = bytes, .len = n / 3 };
        struct slice tail = { .ptr = bytes + n / 3, .len = n - n / 3 };

        assert_int_equal(crc32c(0, all), crc32c_table(0, all));
        assert_int_equal(crc32c(crc32c_table(0, head), tail), crc32c_table(0, all));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_values_come_out),
        cmocka_unit_test(instruction_and_table_agree),
    };

    return cmocka_run_group_tests_name("journal/crc32c", tests, NULL, NULL);
}
