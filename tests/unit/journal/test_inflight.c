#include "collector/journal/inflight.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/journal/inflight_format.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

/* What a successor was told. */
struct left {
    size_t n;
    struct inflight_entry last;
    uint64_t ordinals; /* a bit each */
};

static void on_left(void *ctx, const struct inflight_entry *e)
{
    struct left *l = ctx;

    l->n++;
    l->last = *e;
    l->ordinals |= UINT64_C(1) << e->ordinal;
}

static struct inflight *open_state(struct left *ret)
{
    struct inflight *f = NULL;
    struct err err;

    *ret = (struct left){ 0 };
    assert_true(inflight_open(fake_folder_path(), on_left, ret, &f, &err));
    return f;
}

static struct inflight_entry entry_of(const char *thread)
{
    struct inflight_entry e = {
        .dispatch_id = id_new(),
        .evaluation_id = id_new(),
        .journal_seq = 41,
        .started_us = 42,
        .contract = "sre",
        .chain = "all",
        .event = "PreToolUse",
        .hook_name = "first",
        .tag = "run-1",
    };

    (void)snprintf(e.thread_id, sizeof(e.thread_id), "%s", thread);
    return e;
}

/* Run `body` in a child that is killed without a chance to clean up. */
static void in_a_killed_child(void (*body)(struct inflight *f))
{
    pid_t pid = fork();

    if (pid == 0) {
        struct inflight *f = NULL;
        struct err err;

        if (inflight_open(fake_folder_path(), NULL, NULL, &f, &err)) {
            body(f);
            (void)raise(SIGKILL);
        }
        _exit(1);
    }

    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void take_three_release_one(struct inflight *f)
{
    struct inflight_entry e = entry_of("t");
    int second;

    (void)inflight_take(f, &e);
    e.ordinal = 1;
    second = inflight_take(f, &e);
    e.ordinal = 2;
    (void)inflight_take(f, &e);
    inflight_release(f, second);
}

static void what_a_killed_collector_had_taken_is_told_once(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(take_three_release_one);
    inflight_close(open_state(&left));

    assert_int_equal(left.n, 2);
    assert_int_equal(left.ordinals, 1 << 0 | 1 << 2);
    inflight_close(open_state(&left));
    assert_int_equal(left.n, 0);
}

static void take_and_run_two_hooks(struct inflight *f)
{
    const struct inflight_entry e = entry_of("thread-7");
    int slot = inflight_take(f, &e);

    inflight_set_pid(f, slot, 100, 1000);
    inflight_set_hook(f, slot, "second", 4, "run-2");
    inflight_set_pid(f, slot, 101, 1001);
}

static void a_slot_tells_the_dispatch_and_the_hook_that_ran(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(take_and_run_two_hooks);
    inflight_close(open_state(&left));

    assert_int_equal(left.n, 1);
    assert_string_equal(left.last.thread_id, "thread-7");
    assert_string_equal(left.last.contract, "sre");
    assert_string_equal(left.last.event, "PreToolUse");
    assert_string_equal(left.last.hook_name, "second");
    assert_string_equal(left.last.tag, "run-2");
    assert_true(id_valid(id_slice(&left.last.dispatch_id)));
    assert_int_equal(left.last.journal_seq, 41);
    assert_int_equal(left.last.started_us, 42);
    assert_int_equal(left.last.ordinal, 4);
    assert_int_equal(left.last.pid, 101);
    assert_int_equal(left.last.start_ticks, 1001);
}

/* What cp does: the same bytes in another file. */
static void copy_over(void)
{
    const char *dir = fake_folder_path();
    char command[256];

    (void)snprintf(command, sizeof(command), "cp %s/inflight %s/c && mv %s/c %s/inflight", dir, dir,
                   dir, dir);
    assert_int_equal(system(command), 0);
}

static void a_copy_leaves_nothing_and_tells_of_its_own_later(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(take_and_run_two_hooks);
    copy_over();
    inflight_close(open_state(&left));
    assert_int_equal(left.n, 0);

    in_a_killed_child(take_and_run_two_hooks);
    inflight_close(open_state(&left));
    assert_int_equal(left.n, 1);
}

static void start_second_without_pid(struct inflight *f)
{
    const struct inflight_entry e = entry_of("t");
    int slot = inflight_take(f, &e);

    inflight_set_pid(f, slot, 100, 1000);
    inflight_set_hook(f, slot, "second", 1, "run-2");
}

static void a_hook_that_is_not_started_yet_has_no_pid(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(start_second_without_pid);
    inflight_close(open_state(&left));

    assert_string_equal(left.last.hook_name, "second");
    assert_int_equal(left.last.pid, 0);
    assert_int_equal(left.last.start_ticks, 0);
}

/* Change one byte of the file, as a loss of power in the middle of a page would. */
static void flip_byte(size_t offset)
{
    CLEANUP(fs_closep) int fd = open(fake_folder_file("inflight"), O_RDWR | O_CLOEXEC);
    char byte;

    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte = (char)(byte ^ 0x55);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
}

static size_t in_slot(size_t slot, size_t offset)
{
    return sizeof(struct inflight_header) + slot * sizeof(struct inflight_slot) + offset;
}

static void a_torn_slot_is_not_believed(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(take_three_release_one);
    flip_byte(in_slot(0, offsetof(struct inflight_slot, base.thread_id) + 3));
    inflight_close(open_state(&left));

    assert_int_equal(left.n, 1);
    assert_int_equal(left.last.ordinal, 2);
}

static void a_torn_hook_leaves_the_dispatch_known(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(take_and_run_two_hooks);
    flip_byte(in_slot(0, offsetof(struct inflight_slot, hooks[1].tag)));
    inflight_close(open_state(&left));

    assert_int_equal(left.n, 1);
    assert_string_equal(left.last.thread_id, "thread-7");
    assert_string_equal(left.last.hook_name, "");
    assert_int_equal(left.last.pid, 0);
}

static void a_cut_file_is_whole_again_with_the_next_change(void **state)
{
    (void)state;
    const struct inflight_entry e = entry_of("t");
    struct left left;
    struct inflight *f = open_state(&left);
    int slot = inflight_take(f, &e);

    assert_int_equal(truncate(fake_folder_file("inflight"), 0), 0);
    inflight_set_pid(f, slot, 100, 1000);
    inflight_close(f);
    inflight_close(open_state(&left));

    assert_int_equal(left.n, 1);
    assert_int_equal(left.last.pid, 100);
    assert_string_equal(left.last.thread_id, "t");
}

static void pids_of_another_boot_are_not_told(void **state)
{
    (void)state;
    struct left left;

    in_a_killed_child(take_and_run_two_hooks);
    flip_byte(offsetof(struct inflight_header, boot));
    inflight_close(open_state(&left));

    assert_string_equal(left.last.hook_name, "second");
    assert_int_equal(left.last.pid, 0);
}

static void longer_texts_are_cut(void **state)
{
    (void)state;
    struct left left;
    struct inflight *f = open_state(&left);
    const struct inflight_entry e = entry_of("t");
    char name[2 * INFLIGHT_TEXT];
    int slot = inflight_take(f, &e);

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    inflight_set_hook(f, slot, name, 1, "tag");
    inflight_close(f);
    f = open_state(&left);
    inflight_close(f);

    assert_int_equal(strlen(left.last.hook_name), INFLIGHT_TEXT - 1);
}

static void a_full_file_gives_no_slot_until_one_is_released(void **state)
{
    (void)state;
    struct left left;
    struct inflight *f = open_state(&left);
    const struct inflight_entry e = entry_of("t");

    for (int i = 0; i < INFLIGHT_SLOTS; i++) {
        assert_true(inflight_take(f, &e) >= 0);
    }
    assert_int_equal(inflight_take(f, &e), -1);
    inflight_set_hook(f, -1, "x", 0, "y");
    inflight_set_pid(f, -1, 1, 1);
    inflight_release(f, -1);
    inflight_release(f, 77);
    assert_int_equal(inflight_take(f, &e), 77);
    inflight_close(f);
}

static void a_second_collector_is_refused(void **state)
{
    (void)state;
    struct left left;
    struct inflight *f = open_state(&left);
    struct inflight *other = NULL;
    struct err err;

    assert_false(inflight_open(fake_folder_path(), on_left, &left, &other, &err));
    assert_int_equal(err.code, ERR_AGAIN);
    inflight_close(f);
    inflight_close(open_state(&left));
}

static void a_file_of_another_version_is_refused_in_words(void **state)
{
    (void)state;
    struct left left;
    struct inflight *other = NULL;
    struct err err;

    inflight_close(open_state(&left));
    flip_byte(INFLIGHT_MAGIC_SIZE - 1);
    assert_false(inflight_open(fake_folder_path(), on_left, &left, &other, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    assert_non_null(strstr(err.text, "move it away"));
}

static void a_missing_state_folder_is_an_error(void **state)
{
    (void)state;
    struct inflight *f = NULL;
    struct err err;

    assert_false(inflight_open("/nonexistent/state", NULL, NULL, &f, &err));
    assert_int_equal(err.code, ERR_IO);
}

enum { THREADS = 4, TURNS = 2000 };

/* Each thread holds a few slots at once, and finds in them what it wrote. */
static void *take_and_release(void *arg)
{
    struct inflight *f = arg;
    const struct inflight_entry e = entry_of("t");

    for (int i = 0; i < TURNS; i++) {
        int a = inflight_take(f, &e);
        int b = inflight_take(f, &e);

        if (a < 0 || b < 0 || a == b) {
            return f;
        }
        inflight_set_hook(f, a, "a", 1, "tag");
        inflight_set_pid(f, b, i, 1);
        inflight_release(f, a);
        inflight_release(f, b);
    }
    return NULL;
}

static void threads_take_different_slots(void **state)
{
    (void)state;
    struct left left;
    struct inflight *f = open_state(&left);
    pthread_t threads[THREADS];
    void *failed;

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_release, f), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    inflight_close(f);
    inflight_close(open_state(&left));
    assert_int_equal(left.n, 0);
}

#define WITH_STATE(test) cmocka_unit_test_setup_teardown(test, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STATE(what_a_killed_collector_had_taken_is_told_once),
        WITH_STATE(a_slot_tells_the_dispatch_and_the_hook_that_ran),
        WITH_STATE(a_copy_leaves_nothing_and_tells_of_its_own_later),
        WITH_STATE(a_hook_that_is_not_started_yet_has_no_pid),
        WITH_STATE(a_torn_slot_is_not_believed),
        WITH_STATE(a_torn_hook_leaves_the_dispatch_known),
        WITH_STATE(a_cut_file_is_whole_again_with_the_next_change),
        WITH_STATE(pids_of_another_boot_are_not_told),
        WITH_STATE(longer_texts_are_cut),
        WITH_STATE(a_full_file_gives_no_slot_until_one_is_released),
        WITH_STATE(a_second_collector_is_refused),
        WITH_STATE(a_file_of_another_version_is_refused_in_words),
        cmocka_unit_test(a_missing_state_folder_is_an_error),
        WITH_STATE(threads_take_different_slots),
    };

    return cmocka_run_group_tests_name("journal/inflight", tests, NULL, NULL);
}
