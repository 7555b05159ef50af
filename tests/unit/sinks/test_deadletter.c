#include "sinks/deadletter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/buf.h"
#include "collector/record/payload.h"
#include "collector/record/record.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

#define J SLICE("0190a000-0000-7000-8000-000000000001")
#define FILE_NAME "deadletters/x.ndjson"

static struct deadletter letter(uint64_t seq, struct slice record)
{
    return (struct deadletter){ .journal = J,
                                .seq = seq,
                                .type = RECORD_GAP,
                                .error = SLICE("says \"no\""),
                                .time_us = 1764513000000000,
                                .attempts = 1,
                                .record = record };
}

static void append(uint64_t seq, struct slice record)
{
    const struct deadletter d = letter(seq, record);
    struct err err = { 0 };

    if (!deadletter_append(fake_folder_path(), "x", &d, &err)) {
        fail_msg("%s", err.text);
    }
}

/* What a walk saw, and what it is to do. */
struct seen {
    size_t n;
    uint64_t seq[8];
    struct slice expected; /* the record of each, if not empty */
    uint64_t drop;         /* this one */
};

static enum deadletter_fate on_letter(void *ctx, struct deadletter *d)
{
    struct seen *s = ctx;

    assert_true(slice_equal(d->journal, J));
    assert_true(slice_equal(d->error, SLICE("says \"no\"")));
    assert_int_equal(d->type, RECORD_GAP);
    assert_int_equal(d->time_us, 1764513000000000);
    assert_true(s->expected.len == 0 || slice_equal(d->record, s->expected));
    s->seq[s->n++] = d->seq;
    d->attempts++;
    return d->seq == s->drop ? DEADLETTER_DROP : DEADLETTER_KEEP;
}

static struct deadletter_count walk(struct seen *s, bool rewrite)
{
    struct deadletter_count count;
    struct err err = { 0 };

    s->n = 0;
    if (!deadletter_walk(fake_folder_path(), "x", rewrite, on_letter, s, &count, &err)) {
        fail_msg("%s", err.text);
    }
    return count;
}

static void a_record_comes_back_byte_for_byte(void **state)
{
    (void)state;
    struct slice record = SLICE("{\"n\":1.50, \"n\":\"\xc3\xa9\"}");
    struct seen s = { .expected = record };

    append(7, record);
    assert_non_null(strstr(fake_folder_get(FILE_NAME), "\"record\":{\"n\":1.50, "));
    assert_int_equal(walk(&s, false).kept, 1);
    assert_int_equal(s.seq[0], 7);
}

static void what_is_no_json_or_would_break_the_line_is_kept_as_digits(void **state)
{
    (void)state;
    static const struct slice cases[] = {
        { "no json", 7 },
        { "\0\xff", 2 },
        { "{\"a\":\n1}", 8 }, /* a line of its own */
        { "1,\"seq\":9", 9 }, /* would be members of ours */
        { "", 0 },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct seen s = { .expected = cases[i] };

        (void)fake_folder_end(NULL);
        assert_int_equal(fake_folder_begin(NULL), 0);
        append(i + 1, cases[i]);
        assert_non_null(strstr(fake_folder_get(FILE_NAME), "\"record_hex\":\""));
        assert_int_equal(walk(&s, false).kept, 1);
        assert_int_equal(s.seq[0], i + 1);
    }
}

/* Its line is one level deeper than JSON may be. */
static void a_record_as_deep_as_may_be_is_kept_as_digits(void **state)
{
    (void)state;
    char deep[2 * PAYLOAD_MAX_DEPTH];
    struct seen s = { .expected = { .ptr = deep, .len = sizeof(deep) } };

    memset(deep, '[', PAYLOAD_MAX_DEPTH);
    memset(deep + PAYLOAD_MAX_DEPTH, ']', PAYLOAD_MAX_DEPTH);
    append(3, s.expected);
    assert_non_null(strstr(fake_folder_get(FILE_NAME), "\"record_hex\":\"5b5b"));
    assert_int_equal(walk(&s, true).kept, 1);
    assert_int_equal(walk(&s, false).kept, 1);
}

static void the_last_letter_is_not_repeated(void **state)
{
    (void)state;
    struct seen s = { 0 };

    append(1, SLICE("{}"));
    append(2, SLICE("{}"));
    append(2, SLICE("{}"));
    append(3, SLICE("no json"));
    append(3, SLICE("no json"));
    assert_int_equal(walk(&s, false).kept, 3);
}

static void another_record_in_the_place_of_the_last_is_a_letter_of_its_own(void **state)
{
    (void)state;
    struct seen s = { 0 };

    append(2, SLICE("{}"));
    append(2, SLICE("{\"forged\":1}"));
    assert_int_equal(walk(&s, false).kept, 2);
}

static enum deadletter_fate keep_name(void *ctx, struct deadletter *d)
{
    deadletter_name(d, ctx);
    buf_add_char(ctx, ' ');
    d->attempts++;
    return DEADLETTER_KEEP;
}

/* What is no record has no sequence that tells one from the next: where it was does. */
static void letters_are_named_by_their_sequence_or_else_by_their_place(void **state)
{
    (void)state;
    static const struct slice places[] = { SLICE("t.a/0@1"), SLICE("t.a/0@2"), SLICE("t.a/0@2") };
    CLEANUP(buf_done) struct buf names;
    struct deadletter_count count;
    struct err err = { 0 };

    buf_init(&names, 1024);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct deadletter d = letter(0, SLICE("{}"));

        d.place = places[i];
        assert_true(deadletter_append(fake_folder_path(), "x", &d, &err));
    }
    append(7, SLICE("{}"));
    for (size_t i = 0; i < 2; i++) { /* also of a file that was rewritten */
        buf_clear(&names);
        assert_true(
            deadletter_walk(fake_folder_path(), "x", true, keep_name, &names, &count, &err));
        buf_add_char(&names, '\0');
        assert_string_equal(names.ptr, "t.a/0@1 t.a/0@2 0190a000-0000-7000-8000-000000000001:7 ");
    }
}

static void a_torn_line_is_kept_and_ends_before_the_next(void **state)
{
    (void)state;
    struct seen s = { .drop = 2 };
    struct deadletter_count count;

    append(1, SLICE("{}"));
    fake_folder_put(FILE_NAME, "{\"journal\":\"0190a000-0000-70");
    append(2, SLICE("{}"));
    count = walk(&s, true);
    assert_int_equal(count.unreadable, 1);
    assert_int_equal(count.kept, 1);
    assert_int_equal(count.dropped, 1);
    assert_non_null(strstr(fake_folder_get(FILE_NAME), "\n{\"journal\":\"0190a000-0000-70\n"));
    assert_non_null(strstr(fake_folder_get(FILE_NAME), "\"attempts\":2"));
}

static void a_full_file_takes_no_more_until_somebody_acts(void **state)
{
    (void)state;
    const struct deadletter d = letter(2, SLICE("{}"));
    struct err err = { 0 };
    char path[512];

    append(1, SLICE("{}"));
    (void)snprintf(path, sizeof(path), "%s/" FILE_NAME, fake_folder_path());
    assert_int_equal(truncate(path, (off_t)256 * 1024 * 1024 - 10),
                     0); /* a hole: no disk is used */
    assert_false(deadletter_append(fake_folder_path(), "x", &d, &err));
    assert_int_equal(err.code, ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "dead letters of x: full"));
    assert_int_equal(truncate(path, 0), 0);
    append(2, SLICE("{}"));
}

static void a_walk_that_only_looks_changes_nothing(void **state)
{
    (void)state;
    struct seen s = { .drop = 1 };
    char before[1024];

    append(1, SLICE("{}"));
    (void)snprintf(before, sizeof(before), "%s", fake_folder_get(FILE_NAME));
    (void)walk(&s, false);
    assert_string_equal(fake_folder_get(FILE_NAME), before);
}

static void on_sink(void *ctx, const char *sink)
{
    assert_string_equal(sink, "x");
    (*(int *)ctx)++;
}

static void the_sinks_that_have_letters_are_listed(void **state)
{
    (void)state;
    int n = 0;
    struct err err = { 0 };

    assert_true(deadletter_sinks(fake_folder_path(), on_sink, &n, &err));
    assert_int_equal(n, 0);
    append(1, SLICE("{}"));
    assert_true(deadletter_sinks(fake_folder_path(), on_sink, &n, &err));
    assert_int_equal(n, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_comes_back_byte_for_byte),
        TEST(what_is_no_json_or_would_break_the_line_is_kept_as_digits),
        TEST(a_record_as_deep_as_may_be_is_kept_as_digits),
        TEST(the_last_letter_is_not_repeated),
        TEST(another_record_in_the_place_of_the_last_is_a_letter_of_its_own),
        TEST(letters_are_named_by_their_sequence_or_else_by_their_place),
        TEST(a_torn_line_is_kept_and_ends_before_the_next),
        TEST(a_full_file_takes_no_more_until_somebody_acts),
        TEST(a_walk_that_only_looks_changes_nothing),
        TEST(the_sinks_that_have_letters_are_listed),
    };

    return cmocka_run_group_tests_name("sinks/deadletter", tests, NULL, NULL);
}
