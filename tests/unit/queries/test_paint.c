#include "queries/paint.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

static void durations_are_short(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        { 0, "0 us" },
        { 999, "999 us" },
        { 1000, "1 ms" },
        { 999999, "999 ms" },
        { 2040000, "2.04 s" },
        { 59999999, "59.99 s" },
        { 60000000, "1 min 0 s" },
        { 192000000, "3 min 12 s" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_done) struct buf b;

        buf_init(&b, 64);
        paint_duration(&b, cases[i].us);
        assert_string_equal(buf_cstr(&b), cases[i].text);
    }
}

static void no_control_character_gets_through(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *clean;
    } cases[] = {
        { "plain", "plain" },
        { "a\033[31mb", "a [31mb" },
        { "a\r\n\tb", "a b" },
        { "\xc2\x9b"
          "31m",
          " 31m" }, /* a control sequence begun by one character */
        { "\x7f", " " },
        { "ok \xc3\xa9", "ok \xc3\xa9" },
        { "bad \xff\xfe!", "bad  !" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_done) struct buf b;

        buf_init(&b, 64);
        paint_clean(&b, slice_from_cstr(cases[i].text));
        assert_string_equal(buf_cstr(&b), cases[i].clean);
    }
}

static void a_paragraph_is_broken_at_blanks_within_the_width(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    const struct paint p = { .out = open_memstream(&text, &len), .width = 24 };

    paint_paragraph(&p, COLOR_NONE, 2, SLICE("one two three four five six\nnew line"));
    paint_paragraph(&p, COLOR_NONE, 2, SLICE("abcdefghijklmnopqrstuvwxyz0123456789"));
    (void)fclose(p.out);
    assert_string_equal(text, "  one two three four\n  five six\n  new line\n"
                              "  abcdefghijklmnopqrstuv\n  wxyz0123456789\n");
    free(text);
}

static void without_a_terminal_nothing_is_broken_or_coloured(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    const struct paint p = { .out = open_memstream(&text, &len) };

    paint_paragraph(&p, COLOR_RED, 2, SLICE("one two three four five six seven eight nine ten"));
    paint_text(&p, COLOR_GREEN, SLICE("pass"), 6);
    (void)fclose(p.out);
    assert_string_equal(text, "  one two three four five six seven eight nine ten\npass  ");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_short),
        cmocka_unit_test(no_control_character_gets_through),
        cmocka_unit_test(a_paragraph_is_broken_at_blanks_within_the_width),
        cmocka_unit_test(without_a_terminal_nothing_is_broken_or_coloured),
    };

    return cmocka_run_group_tests_name("queries/paint", tests, NULL, NULL);
}
