#include "sinks/rejoin.h"

#include <string.h>

#include "collector/journal/mark.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/sinks/small_journal.h"
#include "tests/unit/unit.h"

enum { N = 20 };

static struct journal *collect;
static const uint64_t gaps[] = { 0, 1, 4 }; /* between the sink's last record and its position */

static int begin(void **state)
{
    int failed = fake_folder_begin(state);

    collect = failed ? NULL : small_journal_open("collect");
    return failed;
}

static int end(void **state)
{
    journal_close(collect);
    return fake_folder_end(state);
}

static void close_reader(struct journal_reader **r)
{
    journal_reader_close(*r);
}
#define READER CLEANUP(close_reader) struct journal_reader

/* Where a sink stands that has all before `next`, and `last` as its last record. */
static struct sink_position stands(uint64_t next, uint64_t last)
{
    struct journal_info info = small_journal_info();
    READER *r = NULL;
    struct journal_frame frame = { 0 };
    struct err err;

    assert_true(journal_reader_open(info.dir, last, &r, &err));
    assert_int_equal(journal_reader_next(r, &frame, &err), JOURNAL_READ_FRAME);
    return (struct sink_position){ .next = next, .last = last, .leaf = frame.leaf };
}

/* The same, but its last record is another one. */
static struct sink_position stands_elsewhere(uint64_t next, uint64_t last)
{
    struct sink_position at = stands(next, last);

    at.leaf.bytes[DIGEST_BYTES - 1] ^= 1;
    return at;
}

static void assert_refused(const struct sink_position *at, const char *words)
{
    struct journal_info info = small_journal_info();
    struct journal_reader *r;
    struct err err;

    assert_false(rejoin_open(&info, at, at->next, &r, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, words));
    assert_non_null(strstr(err.text, info.id.text));
    assert_non_null(strstr(err.text, "a new journal begins")); /* to its very end */
}

/* It is opened, and the first that it gives is this. */
static void assert_opened(const struct sink_position *at, enum journal_read what, uint64_t seq)
{
    struct journal_info info = small_journal_info();
    READER *r = NULL;
    struct journal_frame frame = { 0 };
    struct err err = { 0 };

    if (!rejoin_open(&info, at, at->next, &r, &err)) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(journal_reader_next(r, &frame, &err), what);
    if (what != JOURNAL_READ_WAIT) {
        assert_int_equal(frame.seq, seq);
    }
}

static void a_journal_with_the_sinks_last_record_is_opened_at_its_position(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, N);
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        struct sink_position at = stands(11, 10 - gaps[i]);

        assert_opened(&at, JOURNAL_READ_FRAME, 11);
    }
}

static void a_sink_that_has_all_waits_for_more(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, N);
    struct sink_position at = stands(last + 1, last);

    assert_opened(&at, JOURNAL_READ_WAIT, 0);
}

static void a_journal_with_another_record_there_is_refused(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, N);

    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        struct sink_position inside = stands_elsewhere(11, 10 - gaps[i]);
        struct sink_position at_its_end = stands_elsewhere(last + 1, last - gaps[i]);

        assert_refused(&inside, "another one than the sink has");
        assert_refused(&at_its_end, "another one than the sink has");
    }
}

static void a_journal_that_ends_before_the_position_is_refused(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, N);
    struct sink_position at = stands(last + 2, last);

    assert_refused(&at, "it ends at");
    at.last = 0;
    assert_refused(&at, "it ends at");
}

static void without_a_last_record_nothing_is_compared(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, N);

    struct sink_position unknown = { .next = 11 };
    struct sink_position set_back = stands_elsewhere(5, 10); /* by hand */
    struct sink_position new_to_it = { .next = 1 };

    assert_opened(&unknown, JOURNAL_READ_FRAME, 11);
    assert_opened(&set_back, JOURNAL_READ_FRAME, 5);
    assert_opened(&new_to_it, JOURNAL_READ_FRAME, 1);
}

static void a_last_record_that_is_damaged_is_not_compared(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, N);

    struct sink_position at = stands_elsewhere(4, 3);

    small_journal_damage(3);
    assert_opened(&at, JOURNAL_READ_FRAME, 4);
}

static void a_last_record_that_is_retired_is_not_compared(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, 200);

    struct sink_position at = stands_elsewhere(4, 3);

    small_journal_retire_segment();

    struct journal_info info = small_journal_info();

    assert_opened(&at, JOURNAL_READ_RETIRED, info.first_seq);
    at.next = info.first_seq;
    assert_opened(&at, JOURNAL_READ_FRAME, info.first_seq);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* As after a power loss: an older mark, of a boot that is over. */
static void a_mark_that_a_power_loss_set_back_is_no_older_copy(void **state)
{
    (void)state;
    CLEANUP(mark_close) struct mark mark = { 0 };
    struct journal_info info = small_journal_info();
    struct sink_position at = { .next = small_journal_fill(collect, N) + 5 };
    struct journal_reader *r;
    struct format_mark m;
    struct err err;

    assert_refused(&at, "it ends at");
    assert_true(mark_open(&journal_io_real, info.dir, true, &mark, &err));
    assert_true(mark_get(&mark, &m));
    m.boot[0] ^= 1;
    mark_put(&mark, &m);
    assert_false(rejoin_open(&info, &at, at.next, &r, &err));
    assert_int_equal(err.code, ERR_AGAIN);
    assert_non_null(strstr(err.text, "until its collect role has opened it again"));
    mark_set_state(&mark, FORMAT_MARK_CLOSED); /* closed, and so on disk as it was */
    assert_refused(&at, "it ends at");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_journal_with_the_sinks_last_record_is_opened_at_its_position),
        TEST(a_sink_that_has_all_waits_for_more),
        TEST(a_journal_with_another_record_there_is_refused),
        TEST(a_journal_that_ends_before_the_position_is_refused),
        TEST(without_a_last_record_nothing_is_compared),
        TEST(a_last_record_that_is_damaged_is_not_compared),
        TEST(a_last_record_that_is_retired_is_not_compared),
        TEST(a_mark_that_a_power_loss_set_back_is_no_older_copy),
    };

    return cmocka_run_group_tests_name("sinks/rejoin", tests, NULL, NULL);
}
