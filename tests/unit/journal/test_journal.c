#include "collector/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/journal/format.h"
#include "collector/journal/io.h"
#include "collector/journal/reader.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

/* In a state folder of its own for each test. */
static struct journal_options options;

static int set_up(void **state)
{
    options = (struct journal_options){
        .state_dir = fake_folder_path(),
        .role = "collect",
        .collector = "here",
        .segment_bytes = 256 * 1024,
        .checkpoint_ms = 60000,
        .queue_bytes = 4 * 1024 * 1024,
    };
    return fake_folder_begin(state);
}

static struct journal *open_journal(struct journal_recovery *ret)
{
    struct journal *j = NULL;
    struct journal_recovery ignored;
    struct err err;

    if (!journal_open(&options, &j, ret ? ret : &ignored, &err)) {
        fail_msg("%s", err.text);
    }
    return j;
}

static uint64_t append(struct journal *j, const char *text)
{
    uint64_t seq = 0;
    struct err err;

    if (!journal_append(j, RECORD_ADMIN, slice_from_cstr(text), 5000, &seq, &err)) {
        fail_msg("%s", err.text);
    }
    return seq;
}

static const char *dir_of(struct id id)
{
    static char dir[256];

    (void)snprintf(dir, sizeof(dir), "%s/journals/collect/%s", options.state_dir, id.text);
    return dir;
}

/* Records of 8 KiB. */
static void append_large(struct journal *j, int n)
{
    char text[8 * 1024];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < n; i++) {
        (void)append(j, text);
    }
}

static struct journal_reader *open_reader(const char *dir, uint64_t from)
{
    struct journal_reader *r = NULL;
    struct err err;

    if (!journal_reader_open(dir, from, &r, &err)) {
        fail_msg("%s", err.text);
    }
    return r;
}

static void what_is_appended_is_read_back(void **state)
{
    (void)state;
    struct journal *j = open_journal(NULL);
    struct journal_frame f;
    struct err err;

    assert_int_equal(append(j, "{\"a\":1}"), 1);
    assert_int_equal(append(j, "{\"a\":22}"), 2);

    struct journal_reader *r = open_reader(dir_of(journal_id(j)), 1);

    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(f.seq, 1);
    assert_true(slice_equal(f.bytes, SLICE("{\"a\":1}")));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_true(slice_equal(f.bytes, SLICE("{\"a\":22}")));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_WAIT);
    assert_false(journal_reader_wait(r, 1));
    assert_int_equal(append(j, "{}"), 3);
    assert_true(journal_reader_wait(r, 1000));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(f.seq, 3);
    journal_reader_close(r);
    journal_close(j);
}

static void a_closed_journal_goes_on_under_its_id(void **state)
{
    (void)state;
    struct journal_recovery found;
    struct journal *j = open_journal(&found);
    struct id id = journal_id(j);

    assert_true(found.created);
    assert_int_equal(append(j, "one"), 1);
    journal_close(j);

    j = open_journal(&found);
    assert_false(found.created);
    assert_string_equal(journal_id(j).text, id.text);
    assert_int_equal(append(j, "two"), 3); /* 2 is the checkpoint of the close */
    journal_close(j);
}

static void a_second_writer_is_told_to_try_later(void **state)
{
    (void)state;
    struct journal *j = open_journal(NULL);
    struct journal *second = NULL;
    struct journal_recovery found;
    struct err err;

    assert_false(journal_open(&options, &second, &found, &err));
    assert_int_equal(err.code, ERR_AGAIN);
    journal_close(j);
}

static void segments_follow_each_other(void **state)
{
    (void)state;
    struct journal *j = open_journal(NULL);
    struct journal_frame f;
    struct err err;

    append_large(j, 100);

    struct journal_reader *r = open_reader(dir_of(journal_id(j)), 1);
    uint64_t records = 0;
    uint64_t next = 1;

    while (journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
        assert_int_equal(f.seq, next++);
        records += f.type == RECORD_ADMIN;
    }
    assert_int_equal(records, 100);
    assert_true(next > 103); /* three checkpoints at least: it rotated */
    journal_reader_close(r);
    journal_close(j);
}

static uint64_t needs_none(void *ctx, struct slice journal_id)
{
    (void)ctx;
    assert_int_equal(journal_id.len, ID_TEXT_LEN);
    return UINT64_MAX;
}

static uint64_t needs_all(void *ctx, struct slice journal_id)
{
    (void)ctx;
    (void)journal_id;
    return 1;
}

static void what_every_sink_is_past_is_retired_and_nothing_else(void **state)
{
    (void)state;
    struct journal *j = open_journal(NULL);
    struct journal_frame f;
    struct err err;

    append_large(j, 100);
    journal_retire(j, needs_all, NULL);

    const char *dir = dir_of(journal_id(j));
    struct journal_reader *r = open_reader(dir, 1);

    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    journal_reader_close(r);
    journal_retire(j, needs_none, NULL);
    r = open_reader(dir, 1);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_RETIRED);

    uint64_t first = f.seq;

    assert_true(first > 1);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(f.seq, first);
    journal_reader_close(r);
    journal_close(j);
}

static void a_full_quota_blocks_until_room_is_made(void **state)
{
    (void)state;
    char text[8 * 1024];
    uint64_t seq;
    struct err err;
    int stored = 0;

    memset(text, 'x', sizeof(text));
    options.quota_bytes = 512 * 1024;

    struct journal *j = open_journal(NULL);
    struct slice bytes = { .ptr = text, .len = sizeof(text) };

    while (journal_append(j, RECORD_ADMIN, bytes, stored < 20 ? 5000 : 300, &seq, &err)) {
        stored++;
        assert_true(stored < 200);
    }
    assert_int_equal(err.code, ERR_AGAIN);
    journal_retire(j, needs_none, NULL);
    assert_true(journal_append(j, RECORD_ADMIN, bytes, 5000, &seq, &err));
    journal_close(j);
}

static bool count_journal(void *ctx, const struct journal_info *info)
{
    int *n = ctx;

    assert_string_equal(info->role, "collect");
    assert_int_equal(info->first_seq, 1);
    (*n)++;
    return true;
}

static void what_is_no_role_is_passed_over(void **state)
{
    (void)state;
    struct journal *j = open_journal(NULL);
    char path[256];
    struct err err;
    int n = 0;

    (void)snprintf(path, sizeof(path), "%s/journals/lost+found", options.state_dir);
    assert_int_equal(symlink("lost+found", path), 0); /* what cannot be listed: ELOOP */
    (void)snprintf(path, sizeof(path), "%s/journals/notes", options.state_dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_true(journal_list(options.state_dir, count_journal, &n, &err));
    assert_int_equal(n, 1);
    journal_close(j);
}

static void a_copied_folder_begins_another_journal(void **state)
{
    (void)state;
    struct journal_recovery found;
    struct journal *j = open_journal(NULL);
    struct id id = journal_id(j);
    char command[256];
    char copy[80];
    int n = 0;
    struct err err;

    (void)append(j, "one");
    (void)snprintf(copy, sizeof(copy), "%s/copy", fake_folder_path());
    (void)snprintf(command, sizeof(command), "mkdir %s && cp -r %s/journals %s", copy,
                   fake_folder_path(), copy);
    assert_int_equal(system(command), 0);
    options.state_dir = copy;

    struct journal *other = open_journal(&found);

    assert_true(found.moved);
    assert_string_not_equal(journal_id(other).text, id.text);
    assert_int_equal(append(other, "two"), 1);
    assert_int_equal(append(j, "three"), 2);
    assert_true(journal_list(copy, count_journal, &n, &err));
    assert_int_equal(n, 2);
    journal_close(other);
    journal_close(j);
}

/* A child that appends until it is killed, telling each sequence that is safe. */
static void append_for_ever(int out)
{
    struct journal *j = open_journal(NULL);

    for (;;) {
        uint64_t seq = append(j, "{\"some\":\"record\"}");

        if (write(out, &seq, sizeof(seq)) != (ssize_t)sizeof(seq)) {
            _exit(1);
        }
    }
}

static void what_was_acknowledged_is_there_after_kill_9(void **state)
{
    (void)state;
    uint64_t acknowledged = 0;
    uint64_t seq;
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);

    pid_t pid = fork();

    if (pid == 0) {
        append_for_ever(fds[1]);
    }
    (void)close(fds[1]);
    for (int i = 0; i < 50 && read(fds[0], &seq, sizeof(seq)) == (ssize_t)sizeof(seq); i++) {
        acknowledged = seq;
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    while (read(fds[0], &seq, sizeof(seq)) == (ssize_t)sizeof(seq)) {
        acknowledged = seq;
    }
    (void)close(fds[0]);

    struct journal *j = open_journal(NULL);
    struct journal_frame f;
    struct err err;

    struct journal_reader *r = open_reader(dir_of(journal_id(j)), acknowledged);

    assert_true(acknowledged >= 50);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(f.seq, acknowledged);
    assert_true(slice_equal(f.bytes, SLICE("{\"some\":\"record\"}")));
    journal_reader_close(r);
    journal_close(j);
}

static void a_full_quota_drops_and_counts(void **state)
{
    (void)state;
    struct journal_stats stats;
    char text[4 * 1024];
    uint64_t seq;
    struct err err;
    int stored = 0;

    memset(text, 'x', sizeof(text));
    options.quota_bytes = 512 * 1024;
    options.when_full = JOURNAL_FULL_DROP_NEW;

    struct journal *j = open_journal(NULL);

    for (int i = 0; i < 200; i++) {
        struct slice bytes = { .ptr = text, .len = sizeof(text) };

        stored += journal_append(j, RECORD_ADMIN, bytes, 5000, &seq, &err);
    }
    journal_stats(j, &stats);
    assert_int_equal(stats.accepted_records, 200);
    assert_int_equal(stats.stored_records, stored);
    assert_int_equal(stats.stored_records + stats.lost_records, 200);
    assert_true(stats.lost_records > 0);
    assert_true(stats.full);
    journal_close(j);
}

static uint64_t lost_in(const char *dir)
{
    struct journal_reader *r = open_reader(dir, 1);
    struct journal_frame f;
    uint64_t lost = 0;
    struct err err;

    while (journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
        const char *at = f.type == RECORD_GAP
                             ? memmem(f.bytes.ptr, f.bytes.len, "\"lost\":", strlen("\"lost\":"))
                             : NULL;

        lost += at ? strtoul(at + strlen("\"lost\":"), NULL, 10) : 0;
    }
    journal_reader_close(r);
    return lost;
}

static int no_room(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    (void)fd;
    (void)size;
    errno = ENOSPC;
    return -1;
}

static void a_journal_opens_on_a_full_disk_and_stores_once_there_is_room(void **state)
{
    (void)state;
    struct journal_io io = journal_io_real;
    struct journal_stats stats;
    uint64_t seq;
    struct err err;

    options.io = &io;
    options.when_full = JOURNAL_FULL_DROP_NEW;

    struct journal *j = open_journal(NULL);
    struct id id = journal_id(j);

    (void)append(j, "{}");
    journal_close(j);
    io.fallocate = no_room;
    j = open_journal(NULL);
    assert_string_equal(journal_id(j).text, id.text);
    assert_false(journal_append(j, RECORD_ADMIN, SLICE("{}"), 5000, &seq, &err));
    journal_stats(j, &stats);
    assert_string_equal(stats.refuses, "disk_full");
    journal_close(j);

    io.fallocate = journal_io_real.fallocate;
    j = open_journal(NULL);
    (void)append(j, "{}");
    assert_string_equal(journal_id(j).text, id.text);
    assert_int_equal(lost_in(dir_of(id)), 1);
    journal_close(j);
}

/* A child whose quota is used up, and that is killed with five losses counted by itself. */
static void count_and_die(void)
{
    char text[4 * 1024];
    uint64_t seq;
    struct err err;

    memset(text, 'x', sizeof(text));
    options.quota_bytes = 512 * 1024;

    struct journal *j = open_journal(NULL);
    struct slice bytes = { .ptr = text, .len = sizeof(text) };

    while (journal_append(j, RECORD_ADMIN, bytes, 200, &seq, &err)) {
    }
    journal_count_lost(j, 5, "queue_full");
    (void)usleep(200 * 1000);
    (void)raise(SIGKILL);
}

static void what_was_counted_on_a_full_disk_is_told_after_kill_9(void **state)
{
    (void)state;
    pid_t pid = fork();

    if (pid == 0) {
        count_and_die();
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);

    struct journal *j = open_journal(NULL);

    (void)append(j, "{}");
    assert_int_equal(lost_in(dir_of(journal_id(j))),
                     5 + 1); /* with the one that was waited for in vain */
    journal_close(j);
}

static void what_is_behind_counts_what_is_there_and_durable(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, durable, next, behind;
    } cases[] = {
        { 1, 10, 0, 10 }, { 1, 10, 1, 10 },         { 1, 10, 10, 1 }, { 1, 10, 11, 0 },
        { 1, 10, 99, 0 }, { 5, 10, 1, 6 },          { 5, 10, 7, 4 },  { 1, 0, 1, 0 },
        { 11, 10, 1, 0 }, { 1, 10, UINT64_MAX, 0 },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct journal_info info = { .first_seq = cases[i].first,
                                           .durable_seq = cases[i].durable };

        assert_int_equal(journal_behind(&info, cases[i].next), cases[i].behind);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_appended_is_read_back),
        TEST(a_closed_journal_goes_on_under_its_id),
        TEST(a_second_writer_is_told_to_try_later),
        TEST(segments_follow_each_other),
        TEST(what_every_sink_is_past_is_retired_and_nothing_else),
        TEST(a_full_quota_blocks_until_room_is_made),
        TEST(what_is_no_role_is_passed_over),
        TEST(a_copied_folder_begins_another_journal),
        TEST(what_was_acknowledged_is_there_after_kill_9),
        TEST(a_full_quota_drops_and_counts),
        TEST(a_journal_opens_on_a_full_disk_and_stores_once_there_is_room),
        TEST(what_was_counted_on_a_full_disk_is_told_after_kill_9),
        cmocka_unit_test(what_is_behind_counts_what_is_there_and_durable),
    };

    return cmocka_run_group_tests_name("journal/journal", tests, NULL, NULL);
}
