#include "sinks/feed.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/journal/journal.h"
#include "collector/journal/mark.h"
#include "collector/journal/reader.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/unit.h"

enum { PATH_SIZE = 4096 + 512 };
static uint64_t stands; /* where the sink stands, of any journal */
static struct feed_loss lost;
static int losses;
static uint64_t remembered; /* up to where losses were told */
static size_t spans;        /* how many came */

static struct journal *collect; /* the journal of most tests */
static struct source *feed;

static struct journal *open_journal(const char *role)
{
    const struct journal_options o = {
        .state_dir = fake_folder_path(),
        .role = role,
        .collector = "host-a",
        .durability = JOURNAL_FSYNC,
        .quota_bytes = UINT64_C(1) << 30,
        .segment_bytes = UINT64_C(64) * 1024,
        .checkpoint_ms = INT64_C(3600) * 1000,
        .queue_bytes = 1 << 20,
    };
    struct journal_recovery recovery;
    struct journal *j = NULL;
    struct err err = { 0 };

    if (!journal_open(&o, &j, &recovery, &err)) {
        fail_msg("%s", err.text);
    }
    return j;
}

/* Append samples; the result is the last sequence. */
static uint64_t fill(struct journal *j, size_t n)
{
    CLEANUP(sink_samples_freep) struct sink_samples *s = sink_samples_new(1, n);
    uint64_t seq = 0;
    struct err err = { 0 };

    for (size_t i = 0; i < n; i++) {
        const struct sink_record *r = &sink_samples_list(s)[i];

        if (!journal_append(j, r->type, r->json, 5000, &seq, &err)) {
            fail_msg("%s", err.text);
        }
    }
    return seq;
}

static bool position(void *ctx, struct slice journal, uint64_t *ret_next, struct err *err)
{
    (void)ctx;
    (void)journal;
    (void)err;
    *ret_next = stands;
    return true;
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
                                    .on_loss = on_loss };

    stop_feed();
    feed = feed_open(&o);
    feed->position = position;
    feed->told = told;
    feed->tell = tell;
}

static int begin_without_journal(void **state)
{
    stands = 1;
    losses = 0;
    remembered = 0;
    return fake_folder_begin(state);
}

static int begin(void **state)
{
    int failed = begin_without_journal(state);

    collect = failed ? NULL : open_journal("collect");
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
        feed->ops->settled(feed, span.journal, span.to + 1);
        records += span.n;
        spans++;
    }
    return records;
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
    struct journal *cli = open_journal("cli");
    uint64_t last = fill(collect, 25) + fill(cli, 5);

    start_feed(10);
    assert_int_equal(drain(), last);
    assert_true(spans >= 4);
    assert_int_equal(drain(), 0);
    (void)fill(collect, 3);
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
    feed->ops->settled(feed, span.journal, span.to + 1);
    return feed->lull;
}

static void a_lull_is_when_every_journal_has_given_all(void **state)
{
    (void)state;
    struct journal *cli = open_journal("cli");

    start_feed(10);
    (void)fill(collect, 25);
    (void)fill(cli, 5);
    assert_int_equal(drain(), 30);
    (void)fill(collect, 15);
    (void)fill(cli, 5);
    assert_false(is_lull_behind_next() && is_lull_behind_next()); /* one of them has more */
    (void)drain();
    (void)fill(collect, 5);
    assert_true(is_lull_behind_next());
    (void)fill(collect, 1);
    assert_true(is_lull_behind_next());
    journal_close(cli);
}

static void it_begins_where_the_sink_stands_and_a_rewind_asks_again(void **state)
{
    (void)state;
    uint64_t last = fill(collect, 20);

    start_feed(100);
    stands = 6;
    assert_int_equal(drain(), last - 5);
    stands = 11;
    feed->ops->rewind(feed);
    assert_int_equal(drain(), last - 10);
}

static void a_state_folder_without_journals_has_nothing_to_give(void **state)
{
    (void)state;
    start_feed(10);
    assert_int_equal(look(), SOURCE_WAIT);
}

static bool first_dir(void *ctx, const struct journal_info *info)
{
    (void)snprintf(ctx, sizeof(info->dir), "%s", info->dir);
    return false;
}

/* Where the oldest segment is. */
static void oldest_segment(char ret_path[PATH_SIZE])
{
    char folder[sizeof(((struct journal_info *)NULL)->dir)] = "";
    char oldest[300] = "";
    struct err err;

    assert_true(journal_list(fake_folder_path(), first_dir, folder, &err));

    DIR *d = opendir(folder);

    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strstr(e->d_name, ".seg") && (!*oldest || strcmp(e->d_name, oldest) < 0)) {
            (void)snprintf(oldest, sizeof(oldest), "%s", e->d_name);
        }
    }
    (void)closedir(d);
    (void)snprintf(ret_path, PATH_SIZE, "%s/%s", folder, oldest);
}

/* As a hand would, */
static void delete_oldest_segment(void)
{
    char path[PATH_SIZE];

    oldest_segment(path);
    assert_int_equal(unlink(path), 0);
}

/* … or retention for other sinks: it tells the mark. */
static void retire_oldest_segment(void)
{
    CLEANUP(mark_close) struct mark mark = { 0 };
    char path[PATH_SIZE];
    struct err err;
    char *name;

    delete_oldest_segment();
    oldest_segment(path); /* the next one now */
    name = strrchr(path, '/');
    assert_non_null(name);
    *name = '\0';
    assert_true(mark_open(&journal_io_real, path, true, &mark, &err));
    mark_set_retired(&mark, strtoull(name + 1, NULL, 10));
}

/* Turn a bit of the n-th record that names its thread, in the oldest segment. */
static void damage_record(int n)
{
    static char bytes[128 * 1024];
    char path[PATH_SIZE];
    char *at = bytes;
    int turned;

    oldest_segment(path);

    FILE *f = fopen(path, "r+e");
    size_t len = f ? fread(bytes, 1, sizeof(bytes), f) : 0;

    for (int i = 0; at && i < n; i++) {
        at = memmem(at + 1, len - (size_t)(at + 1 - bytes), "thread-1", 8);
    }
    if (!at) {
        fail_msg("there are no %d such records in %s", n, path);
        return;
    }
    turned = *at ^ 1;
    assert_int_equal(fseek(f, at - bytes, SEEK_SET), 0);
    assert_int_equal(fputc(turned, f), turned);
    assert_int_equal(fclose(f), 0);
}

static void what_was_retired_before_delivery_is_told_once_and_passed(void **state)
{
    (void)state;
    uint64_t last = fill(collect, 200);

    retire_oldest_segment();
    stands = 2;
    start_feed(1000);

    size_t got = drain();

    assert_int_equal(losses, 1);
    assert_string_equal(lost.cause, "retired");
    assert_int_equal(lost.from, 2);
    assert_int_equal(lost.to - lost.from + 1 + got, last - 1);
    feed->ops->rewind(feed);
    (void)drain();
    assert_int_equal(losses, 1);
}

static void what_is_damaged_is_told_and_passed(void **state)
{
    (void)state;
    uint64_t last = fill(collect, 20);

    damage_record(5);
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
    (void)fill(collect, 400);
    stands = 2;
    delete_oldest_segment();
    start_feed(1000);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_int_equal(losses, 1);

    uint64_t told_to = lost.to;

    start_feed(1000);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_int_equal(losses, 1);

    delete_oldest_segment();
    start_feed(1000);
    assert_int_equal(look(), SOURCE_SPAN);
    assert_int_equal(losses, 2);
    assert_int_equal(lost.from, told_to + 1);
}

static void a_sink_that_is_new_to_a_journal_has_lost_nothing(void **state)
{
    (void)state;
    (void)fill(collect, 200);
    retire_oldest_segment();
    start_feed(1000);
    assert_true(drain() > 0);
    assert_int_equal(losses, 0);
}

static void a_segment_that_nobody_retired_is_a_loss_for_every_sink(void **state)
{
    (void)state;
    uint64_t last = fill(collect, 200);

    delete_oldest_segment();
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
    uint64_t last = fill(collect, 10);

    stands = last + 1;
    start_feed(100);
    assert_int_equal(drain(), 0);
    assert_false(feed->unread);

    stands = last + 2;
    start_feed(100);
    assert_int_equal(drain(), 0);
    assert_true(feed->unread);
    assert_int_equal(losses, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_journal_is_read_whole_in_batches),
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
    };

    return cmocka_run_group_tests_name("sinks/feed", tests, NULL, NULL);
}
