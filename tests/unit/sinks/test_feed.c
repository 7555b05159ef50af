#include "sinks/feed.h"

#include <string.h>

#include "collector/journal/format.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/sinks/small_journal.h"
#include "tests/unit/unit.h"

static struct sink_position stands; /* where the sink stands, in any journal */
static struct feed_loss lost;
static int losses;
static uint64_t joined;     /* where the feed went on last; 0: nowhere */
static uint64_t remembered; /* up to where losses were told */
static size_t spans;        /* how many came */

static struct journal *collect; /* the journal of most tests */
static struct source *feed;

static bool position(void *ctx, struct slice journal, struct sink_position *ret, struct err *err)
{
    (void)ctx;
    (void)journal;
    (void)err;
    *ret = stands;
    return true;
}

static void on_joined(void *ctx, struct slice journal, uint64_t next)
{
    (void)ctx;
    (void)journal;
    joined = next;
}

static void on_loss(void *ctx, const struct feed_loss *loss)
{
    (void)ctx;
    lost = *loss;
    losses++;
}

static uint64_t told(void *ctx, struct slice journal)
{
    (void)ctx;
    (void)journal;
    return remembered;
}

static void tell(void *ctx, struct slice journal, uint64_t from, uint64_t to)
{
    (void)ctx;
    (void)journal;
    assert_int_equal(from, lost.from);
    remembered = to;
}

static void stop_feed(void)
{
    if (feed) {
        feed->ops->close(feed);
    }
    feed = NULL;
}

/* A feed of the state folder; one that runs is closed before, as at a restart. */
static void start_feed(size_t batch_records)
{
    const struct feed_options o = { .state_dir = fake_folder_path(),
                                    .sink = "test",
                                    .batch_records = batch_records,
                                    .batch_bytes = 1 << 20,
                                    .ahead = true,
                                    .on_loss = on_loss };

    stop_feed();
    feed = feed_open(&o);
    feed->position = position;
    feed->joined = on_joined;
    feed->told = told;
    feed->tell = tell;
}

static int begin_without_journal(void **state)
{
    stands = (struct sink_position){ .next = 1 };
    losses = 0;
    joined = 0;
    remembered = 0;
    return fake_folder_begin(state);
}

static int begin(void **state)
{
    int failed = begin_without_journal(state);

    collect = failed ? NULL : small_journal_open("collect");
    return failed;
}

static int end(void **state)
{
    stop_feed();
    journal_close(collect);
    collect = NULL;
    return fake_folder_end(state);
}

/* Take everything; spans must join. The result is how many records came. */
static size_t drain(void)
{
    struct span span;
    struct err err = { 0 };
    size_t records = 0;

    spans = 0;
    while (feed->ops->next(feed, &span, &err) == SOURCE_SPAN) {
        assert_true(span.n > 0);
        assert_true(span.from <= span.records[0].seq);
        assert_int_equal(span.to, span.records[span.n - 1].seq);
        records += span.n;
        spans++;
    }
    return records;
}

/* The journal is told to be one, with these words. */
static void assert_older_copy(const char *words)
{
    assert_int_equal(feed->unread.code, ERR_INVALID);
    assert_non_null(strstr(feed->unread.text, words));
    assert_non_null(strstr(feed->unread.text, "the state folder is an older copy"));
    assert_non_null(strstr(feed->unread.text, "out of it: a new journal begins"));
}

/* One look, after which nothing is delivered. */
static enum source_read look(void)
{
    struct span span;
    struct err err;

    return feed->ops->next(feed, &span, &err);
}

static void every_journal_is_read_whole_in_batches(void **state)
{
    (void)state;
    struct journal *cli = small_journal_open("cli");
    uint64_t last = small_journal_fill(collect, 25) + small_journal_fill(cli, 5);

    start_feed(10);
    assert_int_equal(drain(), last);
    assert_true(spans >= 4);
    assert_int_equal(drain(), 0);
    (void)small_journal_fill(collect, 3);
    assert_int_equal(drain(), 3);
    assert_int_equal(losses, 0);
    journal_close(cli);
}

/* Take one span; is it a lull behind it? */
static bool is_lull_behind_next(void)
{
    struct span span;
    struct err err = { 0 };

    assert_int_equal(feed->ops->next(feed, &span, &err), SOURCE_SPAN);
    return feed->lull;
}

static void a_span_stays_while_the_next_one_is_given(void **state)
{
    (void)state;
    struct span first, second;
    struct err err;

    (void)small_journal_fill(collect, 25);
    start_feed(10);
    assert_int_equal(feed->ops->next(feed, &first, &err), SOURCE_SPAN);

    const struct slice journal = first.journal;
    const struct sink_record *last = &first.records[first.n - 1];
    const uint64_t seq = last->seq;
    struct digest leaf;

    assert_int_equal(feed->ops->next(feed, &second, &err), SOURCE_SPAN);
    assert_int_equal(second.from, first.to + 1);
    assert_int_equal(last->seq, seq);
    leaf = format_leaf(last->json);
    assert_true(digest_equal(&leaf, &last->leaf)); /* its bytes are what they were */
    assert_true(slice_equal(journal, second.journal));
    assert_ptr_not_equal(journal.ptr, second.journal.ptr);
}

static void a_lull_is_when_every_journal_has_given_all(void **state)
{
    (void)state;
    struct journal *cli = small_journal_open("cli");

    start_feed(10);
    (void)small_journal_fill(collect, 25);
    (void)small_journal_fill(cli, 5);
    assert_int_equal(drain(), 30);
    (void)small_journal_fill(collect, 15);
    (void)small_journal_fill(cli, 5);
    assert_false(is_lull_behind_next() && is_lull_behind_next()); /* one of them has more */
    (void)drain();
    (void)small_journal_fill(collect, 5);
    assert_true(is_lull_behind_next());
    (void)small_journal_fill(collect, 1);
    assert_true(is_lull_behind_next());
    journal_close(cli);
}

static void it_begins_where_the_sink_stands_and_a_rewind_asks_again(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, 20);

    start_feed(100);
    stands.next = 6;
    assert_int_equal(drain(), last - 5);
    assert_int_equal(joined, 6);
    stands.next = 11;
    feed->ops->rewind(feed);
    assert_int_equal(drain(), last - 10);
}

static void a_state_folder_without_journals_has_nothing_to_give(void **state)
{
    (void)state;
    start_feed(10);
    assert_int_equal(look(), SOURCE_WAIT);
}

static void what_was_retired_before_delivery_is_told_once_and_passed(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, 200);

    small_journal_retire_segment();
    stands.next = 2;
    start_feed(1000);

    size_t got = drain();

    assert_int_equal(losses, 1);
    assert_string_equal(lost.cause, "retired");
    assert_int_equal(lost.from, 2);
    assert_int_equal(lost.to - lost.from + 1 + got, last - 1);
    assert_int_equal(joined, 2); /* nothing is known to be there but what the sink said */
    feed->ops->rewind(feed);
    (void)drain();
    assert_int_equal(losses, 1);
}

static void what_is_damaged_is_told_and_passed(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, 20);

    small_journal_damage(5);
    start_feed(1000);
    assert_int_equal(drain() + (lost.to - lost.from + 1), last);
    assert_int_equal(losses, 1);
    assert_string_equal(lost.cause, "damage");
    assert_string_equal(lost.role, "collect");
    assert_true(lost.from > 1 && lost.to >= lost.from && lost.to < last);
}

/* Nothing was delivered in between: the position has not moved. */
static void a_restart_tells_only_what_was_not_told_before(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, 400);
    stands.next = 2;
    small_journal_delete_segment();
    start_feed(1000);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_int_equal(losses, 1);

    uint64_t told_to = lost.to;

    start_feed(1000);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_int_equal(losses, 1);

    small_journal_delete_segment();
    start_feed(1000);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_int_equal(losses, 2);
    assert_int_equal(lost.from, told_to + 1);
}

static void a_sink_that_is_new_to_a_journal_has_lost_nothing(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, 200);
    small_journal_retire_segment();
    start_feed(1000);
    assert_true(drain() > 0);
    assert_int_equal(losses, 0);
}

static void a_segment_that_nobody_retired_is_a_loss_for_every_sink(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, 200);

    small_journal_delete_segment();
    start_feed(1000);

    size_t got = drain();

    assert_int_equal(losses, 1);
    assert_string_equal(lost.cause, "damage");
    assert_int_equal(lost.from, 1);
    assert_int_equal(lost.to + got, last);
}

static void a_journal_that_ends_before_the_sinks_position_gives_nothing(void **state)
{
    (void)state;
    uint64_t last = small_journal_fill(collect, 10);

    stands.next = last + 1;
    start_feed(100);
    assert_int_equal(drain(), 0);
    assert_int_equal(feed->unread.code, ERR_NONE);

    stands.next = last + 2;
    start_feed(100);
    assert_int_equal(drain(), 0);
    assert_older_copy("it ends at");
}

static void a_journal_that_has_another_record_than_the_sink_gives_nothing(void **state)
{
    (void)state;
    (void)small_journal_fill(collect, 20);
    stands = (struct sink_position){ .next = 11, .last = 10 };
    start_feed(100);
    assert_int_equal(drain(), 0);
    assert_older_copy("another one than the sink has");
    assert_int_equal(losses, 0);
    assert_int_equal(joined, 0);
}

static void a_journal_that_is_an_older_copy_holds_up_no_other(void **state)
{
    (void)state;
    struct journal *cli = small_journal_open("cli");

    (void)small_journal_fill(collect, 5);
    (void)small_journal_fill(cli, 10);
    stands.next = 7;
    start_feed(100);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_older_copy("journals/collect/");
    start_feed(100);
    assert_int_equal(drain(), 4);
    assert_older_copy("journals/collect/");
    (void)small_journal_fill(cli, 3);
    assert_int_equal(drain(), 3);
    assert_older_copy("journals/collect/");
    journal_close(cli);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_journal_is_read_whole_in_batches),
        TEST(a_span_stays_while_the_next_one_is_given),
        TEST(a_lull_is_when_every_journal_has_given_all),
        TEST(it_begins_where_the_sink_stands_and_a_rewind_asks_again),
        cmocka_unit_test_setup_teardown(a_state_folder_without_journals_has_nothing_to_give,
                                        begin_without_journal, end),
        TEST(what_was_retired_before_delivery_is_told_once_and_passed),
        TEST(what_is_damaged_is_told_and_passed),
        TEST(a_restart_tells_only_what_was_not_told_before),
        TEST(a_sink_that_is_new_to_a_journal_has_lost_nothing),
        TEST(a_segment_that_nobody_retired_is_a_loss_for_every_sink),
        TEST(a_journal_that_ends_before_the_sinks_position_gives_nothing),
        TEST(a_journal_that_has_another_record_than_the_sink_gives_nothing),
        TEST(a_journal_that_is_an_older_copy_holds_up_no_other),
    };

    return cmocka_run_group_tests_name("sinks/feed", tests, NULL, NULL);
}
