/* Real files (in memory where there is such a folder: there are thousands) that somebody or
 * something has changed: cut at every byte, flipped at every byte. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/journal/folder.h"
#include "collector/journal/journal_impl.h"
#include "collector/journal/reader.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

enum { RECORDS = 3, SEGMENT_SIZE = 64 * 1024 };

/* A journal of three commits, as it was left by a writer that died. */
struct small {
    struct journal_options o;
    struct folder_path segment;
    struct folder_path mark;
    char *bytes; /* of the segment */
    size_t n;
    size_t end; /* behind the last frame */
    unsigned char mark_bytes[FORMAT_MARK_BYTES];
};

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    (void)b;
    (void)first_seq;
    assert_int_equal(outcome, JOURNAL_STORED);
}

static void append_one(struct journal *j, const char *text)
{
    struct journal_batch b = { .n = 1, .on_settled = on_settled };
    struct err err;

    b.records[0].type = RECORD_ADMIN;
    b.records[0].bytes = slice_from_cstr(text);
    assert_true(journal_submit(j, &b, &err));
    assert_true(writer_round(j));
}

static size_t read_file(const char *path, void *at, size_t size)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, at, size);

    assert_true(n >= 0);
    return (size_t)n;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), n);
}

static int set_up(void **state)
{
    struct small *s = xcalloc(1, sizeof(*s));
    struct journal *j;
    struct journal_recovery found;
    struct err err;

    *state = s;
    assert_int_equal(fake_folder_begin(state), 0);
    s->o = (struct journal_options){
        .state_dir = fake_folder_path(),
        .role = "collect",
        .collector = "here",
        .segment_bytes = SEGMENT_SIZE,
        .checkpoint_ms = 60000,
        .queue_bytes = 1024 * 1024,
    };
    assert_true(open_core(&s->o, &j, &found, &err));
    append_one(j, "{\"n\":1}");
    append_one(j, "{\"n\":2}");
    append_one(j, "{\"n\":3}");
    assert_true(folder_path(&s->segment, &err, "%s/%020d.seg", j->dir.text, 1));
    assert_true(folder_path(&s->mark, &err, "%s/mark", j->dir.text));
    s->end = j->segment.end;
    s->bytes = xcalloc(1, 8 * SEGMENT_SIZE);
    s->n = read_file(s->segment.text, s->bytes, 8 * SEGMENT_SIZE);
    assert_int_equal(read_file(s->mark.text, s->mark_bytes, FORMAT_MARK_BYTES), FORMAT_MARK_BYTES);
    free_core(j);
    return 0;
}

static int tear_down(void **state)
{
    struct small *s = *state;

    free(s->bytes);
    free(s);
    return fake_folder_end(state);
}

/* The folder as it was, but for what the test changes; journals of earlier turns are gone. */
static void restore(struct small *s)
{
    CLEANUP(folder_journals_done) struct folder_journals all = { 0 };
    struct folder_path role;
    struct err err;

    assert_true(folder_path(&role, &err, "%s/journals/collect", fake_folder_path()));
    assert_true(folder_journals(&journal_io_real, role.text, &all, &err));
    for (size_t i = 1; i < all.n; i++) { /* 0 is the oldest: ours */
        struct folder_path dir;

        assert_true(folder_path(&dir, &err, "%s/%s", role.text, all.ids[i].text));
        folder_remove(&journal_io_real, dir.text);
    }
    write_file(s->segment.text, s->bytes, s->n);
    write_file(s->mark.text, s->mark_bytes, FORMAT_MARK_BYTES);
}

/* What the journals of the folder tell in all. */
struct told {
    uint64_t records;
    uint64_t lost;
    uint64_t damaged; /* times that a reader stepped over something */
    uint64_t journals;
};

static bool read_journal(void *ctx, const struct journal_info *info)
{
    struct told *t = ctx;
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct err err;

    t->journals++;
    assert_true(journal_reader_open(info->dir, 1, &r, &err));
    for (;;) {
        enum journal_read got = journal_reader_next(r, &f, &err);

        if (got == JOURNAL_READ_WAIT || got == JOURNAL_READ_ENDED) {
            break;
        }
        assert_true(got == JOURNAL_READ_FRAME || got == JOURNAL_READ_DAMAGED);
        t->damaged += got == JOURNAL_READ_DAMAGED;
        t->records += got == JOURNAL_READ_FRAME && f.type == RECORD_ADMIN;
        if (got == JOURNAL_READ_FRAME && f.type == RECORD_GAP) {
            const char *at = memmem(f.bytes.ptr, f.bytes.len, "\"lost\":", 7);

            t->lost += at ? strtoull(at + 7, NULL, 10) : 0;
        }
    }
    journal_reader_close(r);
    return true;
}

/* Open it as a collector would, close it, and read all there is. */
static struct told reopen(struct small *s, struct journal_recovery *ret_found)
{
    struct told told = { 0 };
    struct journal *j;
    struct err err;

    if (!open_core(&s->o, &j, ret_found, &err)) {
        fail_msg("%s", err.text);
    }
    close_core(j);
    free_core(j);
    assert_true(journal_list(fake_folder_path(), read_journal, &told, &err));
    return told;
}

static void a_flipped_bit_anywhere_is_a_counted_loss_or_none(void **state)
{
    struct small *s = *state;

    for (size_t at = 0; at < s->end; at += at < 112 || at >= FORMAT_HEAD_BYTES ? 1 : 97) {
        struct journal_recovery found;
        struct told told;

        s->bytes[at] ^= (char)(1 << at % 8);
        restore(s);
        told = reopen(s, &found);
        s->bytes[at] ^= (char)(1 << at % 8);
        if (told.records + told.lost != RECORDS) {
            fail_msg("byte %zu: %d records, %d lost", at, (int)told.records, (int)told.lost);
        }
        assert_int_equal(told.lost, found.damaged);
        assert_int_equal(told.lost > 0, at >= FORMAT_HEAD_BYTES);
    }
}

static void a_flipped_bit_in_the_mark_loses_nothing(void **state)
{
    struct small *s = *state;

    for (size_t at = 0; at < FORMAT_MARK_DYNAMIC + 24; at += at < 112 || at >= 512 ? 1 : 13) {
        struct journal_recovery found;
        struct told told;

        s->mark_bytes[at] ^= (unsigned char)(1 << at % 8);
        restore(s);
        told = reopen(s, &found);
        s->mark_bytes[at] ^= (unsigned char)(1 << at % 8);
        assert_int_equal(told.records, RECORDS);
        assert_int_equal(told.lost, 0);
    }
}

/* Without the mark's word, only the frames tell what was durable: the last commit is a tail. */
static void a_torn_tail_at_every_byte_is_cut_into_another_journal(void **state)
{
    struct small *s = *state;
    size_t last = s->end - format_frame_bytes(strlen("{\"n\":3}"));
    uint64_t two = 2;
    uint64_t two_turned = ~two;

    memcpy(s->mark_bytes + FORMAT_MARK_DYNAMIC, &two, sizeof(two));
    memcpy(s->mark_bytes + FORMAT_MARK_DYNAMIC + 8, &two_turned, sizeof(two));
    for (size_t at = last; at <= s->end; at++) {
        struct journal_recovery found;
        struct told told;
        char *whole = xcalloc(1, s->n);

        memcpy(whole, s->bytes, s->n);
        memset(s->bytes + at, 0, s->n - at); /* the rest of it never reached the disk */
        restore(s);
        told = reopen(s, &found);

        bool torn = at > last && memcmp(whole + at, s->bytes + at, s->end - at) != 0;

        assert_int_equal(found.damaged, 0);
        assert_int_equal(found.cut_bytes > 0, torn);
        assert_int_equal(told.journals, torn ? 2 : 1);
        assert_int_equal(told.records, at > last && !torn ? 3 : 2);
        assert_int_equal(told.lost, 0);
        memcpy(s->bytes, whole, s->n);
        free(whole);
    }
}

static void a_file_that_ends_early_is_a_counted_loss(void **state)
{
    struct small *s = *state;
    size_t n = s->n;

    for (size_t at = FORMAT_HEAD_BYTES; at < s->end; at += 7) {
        struct journal_recovery found;
        struct told told;

        s->n = at;
        restore(s);
        told = reopen(s, &found);
        assert_int_equal(told.records + told.lost, RECORDS);
        assert_true(told.lost > 0);
    }
    s->n = n;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_flipped_bit_anywhere_is_a_counted_loss_or_none),
        TEST(a_flipped_bit_in_the_mark_loses_nothing),
        TEST(a_torn_tail_at_every_byte_is_cut_into_another_journal),
        TEST(a_file_that_ends_early_is_a_counted_loss),
    };

    return cmocka_run_group_tests_name("journal/damage", tests, NULL, NULL);
}
