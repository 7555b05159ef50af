#include "collector/journal/verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/journal/format.h"
#include "collector/journal/journal.h"
#include "collector/journal/mark.h"
#include "collector/journal/sealing.h"
#include "collector/journal/walk.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

enum { RECORDS = 20 };

/* A state folder with one journal in it. */
struct place {
    char keys[128];
    char dir[256];
    char segment[320]; /* the first one */
    char other[128];   /* state folder of a stranger */
    struct id ids[RECORDS];
    struct journal_options o;
    struct verify_report report;
    struct verify_proof proof;
};

static void write_records(struct place *p)
{
    struct journal *j = NULL;
    struct journal_recovery ignored;
    struct err err;

    if (!journal_open(&p->o, &j, &ignored, &err)) {
        fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < RECORDS; i++) {
        char text[256];
        uint64_t seq;

        p->ids[i] = id_new();
        (void)snprintf(text, sizeof(text), "{\"type\":\"admin\",\"id\":\"%s\",\"n\":%zu}",
                       p->ids[i].text, i);
        assert_true(journal_append(j, RECORD_ADMIN, slice_from_cstr(text), 5000, &seq, &err));
    }

    struct id id = journal_id(j);

    journal_close(j);
    (void)snprintf(p->dir, sizeof(p->dir), "%s/journals/collect/%s", fake_folder_path(), id.text);
    (void)snprintf(p->segment, sizeof(p->segment), "%s/00000000000000000001.seg", p->dir);
}

static int set_up(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));

    *state = p;
    if (fake_folder_begin(state) != 0) {
        return -1;
    }
    (void)snprintf(p->keys, sizeof(p->keys), "%s/keys", fake_folder_path());
    p->o = (struct journal_options){
        .state_dir = fake_folder_path(),
        .role = "collect",
        .collector = "here",
        .segment_bytes = 256 * 1024,
        .checkpoint_ms = 60000,
        .queue_bytes = 4 * 1024 * 1024,
    };
    write_records(p);
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return fake_folder_end(state);
}

static enum verify_state verify(struct place *p, const char *record)
{
    const struct verify_options o = { .key_dir = p->keys, .record = slice_from_cstr(record) };
    struct err err;

    if (!verify_journal(p->dir, &o, &p->report, &p->proof, &err)) {
        fail_msg("%s", err.text);
    }
    return p->report.state;
}

static void what_was_closed_is_verified_to_its_end(void **state)
{
    struct place *p = *state;

    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_int_equal(p->report.first_seq, 1);
    assert_int_equal(p->report.last_seq, RECORDS + 1);
    assert_int_equal(p->report.records, RECORDS + 1);
    assert_int_equal(p->report.checkpoints, 1);
    assert_int_equal(p->report.unsealed_from, 0);
    assert_int_equal(strlen(p->report.key_id), 16);
}

static void a_journal_that_went_on_is_one_chain(void **state)
{
    struct place *p = *state;

    write_records(p);
    write_records(p);
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_int_equal(p->report.checkpoints, 3);
}

static void a_rotated_key_is_followed(void **state)
{
    struct place *p = *state;
    char before[17];

    assert_int_equal(verify(p, NULL), VERIFY_OK);
    memcpy(before, p->report.key_id, sizeof(before));
    p->o.rotate_key = true;
    write_records(p);
    p->o.rotate_key = false;
    write_records(p);
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_string_not_equal(p->report.key_id, before);
}

static void remove_in(const char *dir, const char *name)
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
}

/* A checkpoint of all that is in the first segment, signed by a key of another folder. */
static void append_forged(struct place *p)
{
    struct sealing_options so = { .state_dir = p->other, .role = "collect", .collector = "here" };
    CLEANUP(mark_close) struct mark mark = { 0 };
    CLEANUP(walk_close) struct walk w = WALK_NONE;
    CLEANUP(buf_done) struct buf record;
    static unsigned char bytes[8192];
    struct format_frame f = { .type = RECORD_CHECKPOINT, .starts_commit = true };
    struct sealing *s;
    struct err err;

    (void)snprintf(so.journal.text, sizeof(so.journal.text), "%s", strrchr(p->dir, '/') + 1);
    buf_init(&record, sizeof(bytes));
    assert_true(sealing_new(&so, &s, &err));
    assert_true(walk_open(&journal_io_real, p->dir, id_slice(&so.journal), 1, &w, &err));
    while (walk_next(&w, &f, &err) == WALK_FRAME) {
        sealing_add(s, &f);
    }
    assert_true(sealing_make(s, 1, &record, &err));
    f = (struct format_frame){ .seq = w.next_seq,
                               .type = RECORD_CHECKPOINT,
                               .leaf = format_leaf(buf_slice(&record)),
                               .bytes = buf_slice(&record) };
    format_put_frame(w.journal, &f, bytes);

    CLEANUP(fs_closep) int fd = open(p->segment, O_WRONLY | O_CLOEXEC);
    size_t n = format_frame_bytes(f.bytes.len);

    assert_int_equal(pwrite(fd, bytes, n, (off_t)w.scan.behind), n);
    assert_true(mark_open(&journal_io_real, p->dir, true, &mark, &err));
    mark_move(&mark, f.seq, 1);
    sealing_free(s);
}

static void a_key_that_nobody_handed_on_to_is_refused(void **state)
{
    struct place *p = *state;
    char command[512];

    (void)snprintf(p->other, sizeof(p->other), "%s/other", fake_folder_path());
    append_forged(p);
    (void)snprintf(command, sizeof(command), "cp %s/keys/*.pub %s", p->other, p->keys);
    assert_int_equal(system(command), 0);
    assert_int_equal(verify(p, NULL), VERIFY_BROKEN);
    assert_int_equal(p->report.at_seq, RECORDS + 2);
    assert_non_null(strstr(p->report.text, "handed on"));
}

static void a_lost_key_is_followed_by_a_journal_with_another_one(void **state)
{
    struct place *p = *state;
    struct journal_recovery found;
    struct journal *j = NULL;
    char old[sizeof(p->dir)];
    struct err err;

    memcpy(old, p->dir, sizeof(old));
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    remove_in(p->keys, "collect.key");
    assert_true(journal_open(&p->o, &j, &found, &err));
    assert_string_equal(found.key_lost, p->report.key_id);
    journal_close(j);
    write_records(p);
    assert_string_not_equal(p->dir, old);
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_string_not_equal(p->report.key_id, found.key_lost);
    memcpy(p->dir, old, sizeof(old));
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_int_equal(p->report.records, RECORDS + 1);
}

static void without_the_public_key_nothing_is_verified(void **state)
{
    struct place *p = *state;
    char name[32];

    assert_int_equal(verify(p, NULL), VERIFY_OK);
    (void)snprintf(name, sizeof(name), "%s.pub", p->report.key_id);
    remove_in(p->keys, name);
    assert_int_equal(verify(p, NULL), VERIFY_NO_KEY);
    assert_non_null(strstr(p->report.text, p->report.key_id));
}

/* Turn one bit of the file. */
static void flip(const char *path, off_t at, int bit)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
    char c = 0;

    assert_int_equal(pread(fd, &c, 1, at), 1);
    c = (char)(c ^ 1 << bit);
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
}

static off_t size_of(const char *path)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    return lseek(fd, 0, SEEK_END);
}

static void a_flipped_bit_anywhere_is_found(void **state)
{
    struct place *p = *state;
    off_t size = size_of(p->segment);

    for (off_t at = 0; at < size; at++) {
        flip(p->segment, at, (int)(at % 8));
        if (verify(p, NULL) == VERIFY_OK) {
            fail_msg("bit %d of byte %ld: %s", (int)(at % 8), (long)at, p->report.text);
        }
        flip(p->segment, at, (int)(at % 8));
    }
    assert_int_equal(verify(p, NULL), VERIFY_OK);
}

/* Somebody who knows the format writes another record into a frame, and all its sums anew. */
static void a_forged_record_is_found(void **state)
{
    struct place *p = *state;
    CLEANUP(fs_closep) int fd = open(p->segment, O_RDWR | O_CLOEXEC);
    unsigned char journal[FORMAT_ID_BYTES];
    char bytes[4096];
    struct format_frame f;
    size_t n = 0;

    id_bytes(slice_from_cstr(p->dir + strlen(p->dir) - ID_TEXT_LEN), journal);
    assert_true(pread(fd, bytes, sizeof(bytes), FORMAT_HEAD_BYTES) > 0);
    format_peek_frame((struct slice){ .ptr = bytes, .len = sizeof(bytes) }, &f, &n);
    assert_int_equal(f.seq, 1);

    char *digit = memmem(bytes, n, "\"n\":0", 5);

    assert_non_null(digit);
    digit[4] = '7';
    f.leaf = format_leaf(f.bytes);
    char forged[4096] = { 0 };

    format_put_frame(journal, &f, (unsigned char *)forged);
    assert_int_equal(pwrite(fd, forged, n, FORMAT_HEAD_BYTES), (ssize_t)n);
    assert_int_equal(verify(p, NULL), VERIFY_BROKEN);
    assert_int_equal(p->report.at_seq, 1);
    assert_non_null(strstr(p->report.text, "not those that were sealed"));
}

static void every_record_is_proved_by_its_path(void **state)
{
    struct place *p = *state;

    for (size_t i = 0; i < RECORDS; i++) {
        assert_int_equal(verify(p, p->ids[i].text), VERIFY_OK);
        assert_true(p->proof.found);
        assert_true(p->proof.sealed);
        assert_int_equal(p->proof.seq, i + 1);
        assert_int_equal(p->proof.index, i);
        assert_int_equal(p->proof.leaves, RECORDS);
        assert_int_equal(p->proof.checkpoint_seq, RECORDS + 1);
        assert_true(merkle_path_holds(&p->proof.path, i, RECORDS, &p->proof.leaf, &p->proof.root));
    }
    assert_int_equal(verify(p, id_new().text), VERIFY_OK);
    assert_false(p->proof.found);
}

static void what_is_behind_the_last_checkpoint_is_told_as_unsealed(void **state)
{
    struct place *p = *state;
    struct journal *j = NULL;
    struct journal_recovery ignored;
    struct err err;
    uint64_t seq;

    assert_true(journal_open(&p->o, &j, &ignored, &err));
    assert_true(journal_append(j, RECORD_ADMIN, SLICE("{\"type\":\"admin\"}"), 5000, &seq, &err));
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_int_equal(p->report.unsealed_from, seq);
    journal_close(j);
    assert_int_equal(verify(p, NULL), VERIFY_OK);
    assert_int_equal(p->report.unsealed_from, 0);
}

static void a_cut_file_is_found(void **state)
{
    struct place *p = *state;

    assert_int_equal(truncate(p->segment, FORMAT_HEAD_BYTES + 1000), 0);
    assert_int_equal(verify(p, NULL), VERIFY_BROKEN);
}

static void what_is_no_journal_is_an_error(void **state)
{
    (void)state;
    const struct verify_options o = { .key_dir = "/tmp" };
    struct verify_report report;
    struct err err;

    assert_false(verify_journal("/tmp", &o, &report, NULL, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_false(
        verify_journal("/tmp/01890000-0000-7000-8000-000000000000/", &o, &report, NULL, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_closed_is_verified_to_its_end),
        TEST(a_journal_that_went_on_is_one_chain),
        TEST(a_rotated_key_is_followed),
        TEST(a_key_that_nobody_handed_on_to_is_refused),
        TEST(a_lost_key_is_followed_by_a_journal_with_another_one),
        TEST(without_the_public_key_nothing_is_verified),
        TEST(a_flipped_bit_anywhere_is_found),
        TEST(a_forged_record_is_found),
        TEST(every_record_is_proved_by_its_path),
        TEST(what_is_behind_the_last_checkpoint_is_told_as_unsealed),
        TEST(a_cut_file_is_found),
        TEST(what_is_no_journal_is_an_error),
    };

    return cmocka_run_group_tests_name("journal/verify", tests, NULL, NULL);
}
