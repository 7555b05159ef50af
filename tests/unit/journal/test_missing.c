/* Files of a journal that are gone, cut short, or something else than files. */
#include "collector/journal/missing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/mem.h"
#include "collector/journal/journal_impl.h"
#include "collector/journal/reader.h"
#include "collector/journal/verify.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

enum { RECORDS = 40, TEXT = 6000, GARBAGE_ROUNDS = 64 };

struct place {
    struct journal_options o;
    struct journal *j;
    struct folder_path dir; /* of the journal that was written first */
};

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    (void)b;
    (void)first_seq;
    assert_int_equal(outcome, JOURNAL_STORED);
}

static void append(struct place *p)
{
    static char text[TEXT + 1];
    struct journal_batch b = { .n = 1, .on_settled = on_settled };
    struct err err;

    memset(text, 'x', TEXT);
    b.records[0].type = RECORD_ADMIN;
    b.records[0].bytes = slice_from_cstr(text);
    assert_true(journal_submit(p->j, &b, &err));
    assert_true(writer_round(p->j));
}

static struct journal_recovery start(struct place *p)
{
    struct journal_recovery found;
    struct err err;

    if (!open_core(&p->o, &p->j, &found, &err)) {
        fail_msg("%s", err.text);
    }
    return found;
}

static void stop(struct place *p)
{
    close_core(p->j);
    free_core(p->j);
    p->j = NULL;
}

/* A journal of several segments, closed. */
static int set_up(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));

    *state = p;
    assert_int_equal(fake_folder_begin(state), 0);
    p->o = (struct journal_options){
        .state_dir = fake_folder_path(),
        .role = "collect",
        .collector = "here",
        .segment_bytes = 100 * 1024,
        .checkpoint_ms = 60000,
        .queue_bytes = 1024 * 1024,
    };
    (void)start(p);
    for (int i = 0; i < RECORDS; i++) {
        append(p);
    }
    p->dir = p->j->dir;
    stop(p);
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    if (p->j) {
        stop(p);
    }
    free(p);
    return fake_folder_end(state);
}

/* Remove n segments, the oldest first; the first sequence behind them, or of none. */
static uint64_t remove_segments(struct place *p, size_t n)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    struct err err;

    assert_true(folder_segments(&journal_io_real, p->dir.text, &s, &err));
    assert_true(s.n > 2);
    for (size_t i = 0; i < n && i < s.n; i++) {
        struct folder_path path;

        assert_true(folder_segment_path(p->dir.text, s.first[i], &path, &err));
        assert_int_equal(unlink(path.text), 0);
    }
    return n < s.n ? s.first[n] : 0;
}

/* What all journals of the folder tell. */
struct told {
    uint64_t records;
    uint64_t lost;
    uint64_t gaps;
    uint64_t stepped_over;
    uint64_t journals;
};

static void take(struct told *t, const struct journal_frame *f)
{
    const char *lost =
        f->type == RECORD_GAP ? memmem(f->bytes.ptr, f->bytes.len, "\"lost\":", 7) : NULL;

    t->records += f->type == RECORD_ADMIN;
    t->gaps += f->type == RECORD_GAP;
    t->lost += lost ? strtoull(lost + 7, NULL, 10) : 0;
}

static bool read_journal(void *ctx, const struct journal_info *info)
{
    struct told *t = ctx;
    struct journal_reader *r = NULL;
    enum journal_read got = JOURNAL_READ_FRAME;
    struct journal_frame f;
    struct err err;

    t->journals++;
    assert_true(journal_reader_open(info->dir, 1, &r, &err));
    while (got != JOURNAL_READ_WAIT && got != JOURNAL_READ_ENDED && got != JOURNAL_READ_ERROR) {
        got = journal_reader_next(r, &f, &err);
        t->stepped_over += got == JOURNAL_READ_DAMAGED;
        if (got == JOURNAL_READ_FRAME) {
            take(t, &f);
        }
    }
    journal_reader_close(r);
    return true;
}

static struct told read_all(void)
{
    struct told t = { 0 };
    struct err err;

    assert_true(journal_list(fake_folder_path(), read_journal, &t, &err));
    return t;
}

static enum verify_state verify(struct place *p, struct verify_report *ret)
{
    char keys[128];
    const struct verify_options o = { .key_dir = keys };
    struct err err;

    (void)snprintf(keys, sizeof(keys), "%s/keys", fake_folder_path());
    if (!verify_journal(p->dir.text, &o, ret, NULL, &err)) {
        fail_msg("%s", err.text);
    }
    return ret->state;
}

/* The last sequence of the journal, which is whole. */
static uint64_t last_of(struct place *p)
{
    struct verify_report report;

    assert_int_equal(verify(p, &report), VERIFY_OK);
    return report.last_seq;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void a_journal_without_segments_is_counted_once_and_then_forgotten(void **state)
{
    struct place *p = *state;
    struct verify_report report;
    struct journal_recovery found;
    uint64_t all = last_of(p);

    (void)remove_segments(p, SIZE_MAX);
    assert_int_equal(verify(p, &report), VERIFY_BROKEN);
    assert_int_equal(report.at_seq, 1);

    found = start(p);
    assert_int_equal(found.missing, all);
    assert_true(is_there(p->dir.text)); /* evidence, until the gap record is safe */
    stop(p);
    assert_int_equal(read_all().lost, all);

    found = start(p);
    assert_int_equal(found.missing, 0);
    assert_false(is_there(p->dir.text));
    stop(p);
    assert_int_equal(read_all().lost, all);
    assert_int_equal(read_all().gaps, 1);
}

static void an_older_journal_without_segments_is_counted_too(void **state)
{
    struct place *p = *state;
    uint64_t all = last_of(p);

    (void)start(p);
    {
        struct err err;

        assert_true(birth_begin(p->j, &err));
        all = p->j->next_seq == 1 ? all : 0;
    }
    append(p);
    stop(p);
    (void)remove_segments(p, SIZE_MAX);
    (void)start(p);
    assert_true(is_there(p->dir.text));
    free_core(p->j); /* killed before it could write a gap record */
    (void)start(p);
    assert_false(is_there(p->dir.text));
    stop(p);
    assert_int_equal(read_all().lost, all);
    assert_int_equal(read_all().records, 1);
}

static void a_first_segment_that_is_gone_is_told_by_readers_and_by_verify(void **state)
{
    struct place *p = *state;
    struct verify_report report;
    uint64_t first = remove_segments(p, 1);
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct err err;

    assert_int_equal(verify(p, &report), VERIFY_BROKEN);
    assert_int_equal(report.at_seq, 1);
    (void)start(p);
    stop(p);
    assert_int_equal(verify(p, &report), VERIFY_BROKEN);
    assert_true(journal_reader_open(p->dir.text, 3, &r, &err));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_DAMAGED);
    assert_int_equal(f.seq, 3);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(f.seq, first);
    journal_reader_close(r);
}

static uint64_t up_to(void *ctx, struct slice journal_id)
{
    (void)journal_id;
    return *(uint64_t *)ctx;
}

static void what_was_retired_is_no_loss_and_what_is_gone_behind_it_is(void **state)
{
    struct place *p = *state;
    struct verify_report report;
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct err err;
    uint64_t needed = 25;

    (void)start(p);
    journal_retire(p->j, up_to, &needed);
    stop(p);
    assert_int_equal(verify(p, &report), VERIFY_OK);

    uint64_t kept = report.first_seq;

    assert_true(kept > 1 && kept <= needed);
    assert_int_equal(read_all().stepped_over, 0);

    uint64_t first = remove_segments(p, 1);

    assert_int_equal(verify(p, &report), VERIFY_BROKEN);
    assert_int_equal(report.at_seq, kept);
    assert_true(journal_reader_open(p->dir.text, 1, &r, &err));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_RETIRED);
    assert_int_equal(f.seq, kept);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_DAMAGED);
    assert_int_equal(f.seq, kept);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(f.seq, first);
    journal_reader_close(r);
}

static void garbage_in_the_mark_loses_and_tells_nothing(void **state)
{
    struct place *p = *state;
    struct folder_path path;
    struct err err;

    assert_true(folder_path(&path, &err, "%s/mark", p->dir.text));
    srandom(1);
    for (int round = 0; round < GARBAGE_ROUNDS; round++) {
        unsigned char bytes[FORMAT_MARK_BYTES];
        size_t from = round % 2 ? FORMAT_MARK_DYNAMIC : 0; /* all of it, or the words alone */
        int fd = open(path.text, O_RDWR | O_CLOEXEC);
        struct verify_report report;
        struct told t;

        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (unsigned char)random();
        }
        assert_int_equal(pwrite(fd, bytes + from, sizeof(bytes) - from, (off_t)from),
                         sizeof(bytes) - from);
        (void)close(fd);
        assert_int_equal(verify(p, &report), VERIFY_OK);
        assert_int_equal(start(p).damaged, 0);
        stop(p);
        t = read_all();
        assert_int_equal(t.records, RECORDS);
        assert_int_equal(t.gaps, 0);
        assert_int_equal(t.stepped_over, 0);
    }
}

static void a_mark_that_is_cut_while_it_is_used_kills_nobody(void **state)
{
    struct place *p = *state;
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct folder_path path;
    struct err err;

    (void)start(p);
    assert_true(folder_path(&path, &err, "%s/mark", p->dir.text));
    assert_true(journal_reader_open(p->dir.text, 1, &r, &err));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    assert_int_equal(truncate(path.text, 0), 0);
    while (journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
    }
    assert_false(journal_reader_wait(r, 1));
    append(p); /* makes it whole again */
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    journal_reader_close(r);

    assert_int_equal(truncate(path.text, 0), 0);
    assert_true(journal_reader_open(p->dir.text, 1, &r, &err));
    while (journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
    }
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_WAIT);
    append(p);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    journal_reader_close(r);
    stop(p);
    assert_int_equal(read_all().records, RECORDS + 2);
    assert_int_equal(read_all().stepped_over, 0);
}

static void a_reader_that_met_a_cut_mark_believes_the_whole_one_again(void **state)
{
    struct place *p = *state;
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct folder_path path;
    struct err err;

    (void)start(p);
    assert_true(folder_path(&path, &err, "%s/mark", p->dir.text));
    assert_int_equal(truncate(path.text, 0), 0);
    assert_true(journal_reader_open(p->dir.text, 1, &r, &err));
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    append(p); /* makes it whole again, while r has not come to the end */
    assert_int_equal(journal_reader_durable(r), p->j->durable_seq);
    while (journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
    }
    assert_int_equal(f.seq, p->j->durable_seq);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_WAIT);
    assert_false(journal_reader_wait(r, 1));
    append(p);
    assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
    journal_reader_close(r);
    stop(p);
}

static void a_mark_that_says_nothing_is_waited_on_all_the_same(void **state)
{
    struct place *p = *state;
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct folder_path path;
    struct err err;

    (void)start(p);
    assert_true(folder_path(&path, &err, "%s/mark", p->dir.text));

    int fd = open(path.text, O_RDWR | O_CLOEXEC);

    assert_int_equal(pwrite(fd, "?", 1, 12), 1); /* its version */
    (void)close(fd);
    assert_true(journal_reader_open(p->dir.text, 1, &r, &err));
    while (journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
    }
    for (int i = 0; i < RECORDS; i++) { /* over the end of a segment */
        assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_WAIT);
        assert_false(journal_reader_wait(r, 1));
        append(p);
        assert_true(journal_reader_wait(r, 1));
        do {
            assert_int_equal(journal_reader_next(r, &f, &err), JOURNAL_READ_FRAME);
        } while (f.type != RECORD_ADMIN);
    }
    journal_reader_close(r);
    stop(p);
}

static struct folder_path last_segment(struct place *p)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    struct folder_path path;
    struct err err;

    assert_true(folder_segments(&journal_io_real, p->dir.text, &s, &err));
    assert_true(folder_segment_path(p->dir.text, s.first[s.n - 1], &path, &err));
    return path;
}

static void a_mark_that_tells_too_little_retires_nothing_that_is_needed(void **state)
{
    struct place *p = *state;
    struct folder_path last = last_segment(p);
    CLEANUP(mark_close) struct mark mark = { 0 };
    struct err err;

    assert_true(mark_open(&journal_io_real, p->dir.text, true, &mark, &err));
    mark_set_state(&mark, FORMAT_MARK_ENDED);

    uint64_t end = mark_durable(&mark);
    uint64_t needed = end;

    (void)start(p); /* another one */
    mark_move(&mark, 9, 1);
    journal_retire(p->j, up_to, &needed);
    assert_true(is_there(last.text));

    mark_move(&mark, end, 1);
    needed = end + 1;
    journal_retire(p->j, up_to, &needed);
    assert_false(is_there(p->dir.text));
    stop(p);
}

static void make_no_file(const char *path, int kind)
{
    switch (kind) {
    case 0:
        assert_int_equal(mkfifo(path, 0600), 0);
        break;
    case 1:
        assert_int_equal(symlink("/dev/zero", path), 0);
        break;
    default:
        assert_int_equal(mkdir(path, 0700), 0);
        break;
    }
}

static void what_is_no_file_is_not_read_for_ever(void **state)
{
    struct place *p = *state;
    struct folder_path path;
    struct verify_report report;
    char keys[128];
    const struct verify_options o = { .key_dir = keys };
    struct err err;

    (void)snprintf(keys, sizeof(keys), "%s/keys", fake_folder_path());
    for (int kind = 0; kind < 3; kind++) {
        path = last_segment(p);
        (void)unlink(path.text);
        make_no_file(path.text, kind);
        assert_false(verify_journal(p->dir.text, &o, &report, NULL, &err));
        assert_int_equal(err.code, ERR_IO);
        (void)start(p);
        append(p);
        stop(p);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_journal_without_segments_is_counted_once_and_then_forgotten),
        TEST(an_older_journal_without_segments_is_counted_too),
        TEST(a_first_segment_that_is_gone_is_told_by_readers_and_by_verify),
        TEST(what_was_retired_is_no_loss_and_what_is_gone_behind_it_is),
        TEST(garbage_in_the_mark_loses_and_tells_nothing),
        TEST(a_mark_that_is_cut_while_it_is_used_kills_nobody),
        TEST(a_reader_that_met_a_cut_mark_believes_the_whole_one_again),
        TEST(a_mark_that_says_nothing_is_waited_on_all_the_same),
        TEST(a_mark_that_tells_too_little_retires_nothing_that_is_needed),
        TEST(what_is_no_file_is_not_read_for_ever),
    };

    return cmocka_run_group_tests_name("journal/missing", tests, NULL, NULL);
}
