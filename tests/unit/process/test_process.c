#include "collector/process/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/process/proc.h"
#include "tests/unit/process/fake_hooks.h"
#include "tests/unit/unit.h"

enum { MIB = 1024 * 1024, MS = 1000 };

static const struct process_options options = { 0 };

static struct process_result run_spec(const struct process_spec *spec)
{
    struct process_result r;

    process_run(spec, &r, 1, -1, &options);
    return r;
}

static struct process_result run(const char *script)
{
    const struct process_spec spec = fake_hook(script);

    return run_spec(&spec);
}

static void assert_text(const struct buf *b, const char *text)
{
    struct slice got = buf_slice(b);

    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.ptr, text, got.len);
}

static void assert_starts_with(const char *text, const char *start)
{
    if (!slice_starts_with(slice_from_cstr(text), slice_from_cstr(start))) {
        fail_msg("'%s' does not begin with '%s'", text, start);
    }
}

/* ---- Input and output ----------------------------------------------------- */

static void a_child_reads_its_input_and_is_read(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("cat; echo whoops >&2; exit 3");

    spec.input = SLICE("{\"a\":1}\n");
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_int_equal(r.exit_code, 3);
    assert_text(&r.out, "{\"a\":1}\n");
    assert_text(&r.err_out, "whoops\n");
    assert_int_equal(r.stdout_bytes, 8);
    assert_int_equal(r.stderr_bytes, 7);
    assert_int_equal(r.left_behind, 0);
}

static void megabytes_go_in_and_come_out_at_once(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf input;
    struct process_spec spec = fake_hook("tee /dev/stderr");

    buf_init(&input, 3 * MIB);
    while (input.len_bytes < 3 * MIB) {
        buf_add(&input, SLICE("0123456789abcdef"));
    }
    spec.input = buf_slice(&input);
    spec.stdout_limit_bytes = 3 * MIB;
    spec.stderr_limit_bytes = 3 * MIB;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_true(slice_equal(buf_slice(&r.out), buf_slice(&input)));
    assert_true(slice_equal(buf_slice(&r.err_out), buf_slice(&input)));
}

static void a_child_that_never_reads_hurts_nobody(void **state)
{
    (void)state;
    char *input = calloc(1, MIB);
    struct process_spec spec = fake_hook("echo done");

    spec.input = (struct slice){ .ptr = input, .len = MIB };
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_text(&r.out, "done\n");
    free(input);
}

static void a_child_that_closes_its_input_is_still_read(void **state)
{
    (void)state;
    char *input = calloc(1, MIB);
    struct process_spec spec = fake_hook("exec <&-; sleep 0.1; echo late");

    spec.input = (struct slice){ .ptr = input, .len = MIB };
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_text(&r.out, "late\n");
    free(input);
}

static void a_stream_may_be_as_long_as_its_limit(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("head -c 5000 /dev/zero");

    spec.stdout_limit_bytes = 5000;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_int_equal(r.out.len_bytes, 5000);
}

static void a_stream_that_passes_its_limit_ends_the_child(void **state)
{
    (void)state;
    static const char *const scripts[] = { "yes", "yes >&2", "head -c 5001 /dev/zero" };

    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        struct process_spec spec = fake_hook(scripts[i]);

        spec.stdout_limit_bytes = 5000;
        spec.stderr_limit_bytes = 5000;
        CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

        assert_int_equal(r.end, PROCESS_OUTPUT_LIMIT);
        assert_int_equal(i == 1 ? r.err_out.len_bytes : r.out.len_bytes, 5000);
        assert_starts_with(r.err.text, i == 1 ? "stderr passed its limit" : "stdout passed");
        assert_true(r.duration_us < 400 * MS);
    }
}

static void discarded_output_is_counted_without_limit(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("head -c 3000000 /dev/zero");

    spec.stdout_limit_bytes = 0;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_int_equal(r.out.len_bytes, 0);
    assert_int_equal(r.stdout_bytes, 3000000);
}

static void without_a_limit_the_tail_of_stderr_is_kept(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("seq 100000 >&2; printf END >&2");

    spec.stderr_limit_bytes = 0;
    spec.stderr_tail_bytes = 10;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_text(&r.err_out, "100000\nEND");
    assert_int_equal(r.stderr_bytes, 588895 + 3);
}

static void an_empty_budget_ends_the_child_and_is_given_back(void **state)
{
    (void)state;
    struct budget budget = { .limit_bytes = 100000 };
    const struct process_options o = { .budget = &budget };
    const struct process_spec specs[] = { fake_hook("head -c 90000 /dev/zero; sleep 0.3"),
                                          fake_hook("sleep 0.1; head -c 90000 /dev/zero") };
    struct process_result r[2];

    process_run(specs, r, 2, -1, &o);

    assert_int_equal(r[0].end, PROCESS_EXITED);
    assert_int_equal(r[0].out.len_bytes, 90000);
    assert_int_equal(r[1].end, PROCESS_OUTPUT_LIMIT);
    assert_starts_with(r[1].err.text, "no memory is left");
    assert_in_range(budget.used_bytes, 90000, 100000);
    process_result_done(&r[0]);
    process_result_done(&r[1]);
    assert_int_equal(budget.used_bytes, 0);
}

/* ---- Ends ----------------------------------------------------------------- */

static void a_signal_is_no_exit_code(void **state)
{
    (void)state;
    CLEANUP(process_result_done) struct process_result r = run("kill -SEGV $$");

    assert_int_equal(r.end, PROCESS_SIGNALED);
    assert_int_equal(r.signal, SIGSEGV);
}

static void a_deadline_ends_a_child_that_heeds_term_at_once(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("echo early; sleep 60; echo late");

    spec.timeout_ms = 100;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_TIMED_OUT);
    assert_int_equal(r.signal, SIGTERM);
    assert_text(&r.out, "early\n");
    assert_in_range(r.duration_us, 100 * MS, 450 * MS);
}

static void a_child_that_ignores_term_is_killed_after_the_grace(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("trap '' TERM; while :; do sleep 1; done");

    spec.timeout_ms = 100;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_TIMED_OUT);
    assert_int_equal(r.signal, SIGKILL);
    assert_in_range(r.duration_us, 600 * MS, 1500 * MS);
}

static void a_child_may_end_in_order_within_the_grace(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("trap 'echo bye; exit 0' TERM; sleep 60 & wait");

    spec.timeout_ms = 100;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_TIMED_OUT);
    assert_int_equal(r.signal, SIGTERM);
    assert_text(&r.out, "bye\n");
}

static void a_stopped_child_is_ended_too(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("kill -STOP $$");

    spec.timeout_ms = 100;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_TIMED_OUT);
    assert_int_equal(r.signal, SIGKILL);
}

/* ---- Cancelling ----------------------------------------------------------- */

static void *close_soon(void *arg)
{
    const int *fd = arg;

    (void)usleep(100 * MS);
    (void)close(*fd);
    return NULL;
}

static void a_client_that_goes_away_cancels(void **state)
{
    (void)state;
    const struct process_spec specs[] = { fake_hook("sleep 60"), fake_hook("exit 7") };
    struct process_result r[2];
    pthread_t thread;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(write(pair[1], "more", 4), 4); /* pipelined: no reason to cancel */
    assert_int_equal(pthread_create(&thread, NULL, close_soon, &pair[1]), 0);
    process_run(specs, r, 2, pair[0], &options);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_int_equal(r[0].end, PROCESS_CANCELLED);
    assert_in_range(r[0].duration_us, 90 * MS, 600 * MS);
    assert_int_equal(r[1].end, PROCESS_EXITED);
    assert_int_equal(r[1].exit_code, 7);
    (void)close(pair[0]);
    process_result_done(&r[0]);
    process_result_done(&r[1]);
}

static void a_client_that_was_gone_before_cancels(void **state)
{
    (void)state;
    const struct process_spec spec = fake_hook("sleep 60");
    struct process_result r;
    int pipe_fds[2];

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    (void)close(pipe_fds[1]);
    process_run(&spec, &r, 1, pipe_fds[0], &options);

    assert_int_equal(r.end, PROCESS_CANCELLED);
    (void)close(pipe_fds[0]);
    process_result_done(&r);
}

/* ---- Starting ------------------------------------------------------------- */

static void what_cannot_be_started_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        const char *cwd;
        const char *says;
    } cases[] = {
        { "/no/such/program", NULL, "cannot start /no/such/program: No such file" },
        { "no-such-program", NULL, "cannot start no-such-program: No such file" },
        { "/etc/passwd", NULL, "cannot start /etc/passwd: Permission denied" },
        { "/bin/true", "/no/such/folder", "cannot enter folder /no/such/folder: No such file" },
        { "/bin/true", "/etc/passwd", "cannot enter folder /etc/passwd: Not a directory" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *const argv[] = { cases[i].program, NULL };
        struct process_spec spec = fake_hook("");

        spec.argv = argv;
        spec.cwd = cases[i].cwd;
        CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

        assert_int_equal(r.end, PROCESS_SPAWN_FAILED);
        assert_int_equal(r.err.code, ERR_IO);
        assert_starts_with(r.err.text, cases[i].says);
    }
}

static void a_missing_interpreter_is_named_as_such(void **state)
{
    (void)state;
    char path[] = "/tmp/hooktrail-test-XXXXXX";
    const char *const argv[] = { path, NULL };
    struct process_spec spec = fake_hook("");
    int fd = mkstemp(path);

    assert_int_equal(write(fd, "#!/no/such/shell\n", 17), 17);
    (void)fchmod(fd, 0700);
    (void)close(fd);
    spec.argv = argv;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_int_equal(r.end, PROCESS_SPAWN_FAILED);
    assert_non_null(strstr(r.err.text, "its interpreter is missing"));
    (void)unlink(path);
}

static void a_child_starts_in_its_folder_with_its_environment_alone(void **state)
{
    (void)state;
    static const char *const envp[] = { "A=1", PROCESS_TAG "=inherited", "B=2", NULL };
    struct process_spec spec = fake_hook("pwd; /usr/bin/env | grep -v '^PWD\\|^_='");
    char expected[256];

    spec.cwd = "/usr";
    spec.envp = envp;
    (void)snprintf(expected, sizeof(expected), "/usr\nA=1\nB=2\n" PROCESS_TAG "=%s\n", spec.tag);
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

    assert_text(&r.out, expected);
}

static void a_child_inherits_three_descriptors_no_mask_and_no_ignored_signal(void **state)
{
    (void)state;
    int leaky = open("/dev/null", O_RDONLY); /* NOLINT(android-cloexec-open): a library's, say */
    sigset_t mask;
    sigset_t old;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &mask, &old);
    CLEANUP(process_result_done)
    struct process_result r = run("ls -m /proc/$$/fd; "
                                  "grep -E 'Sig(Blk|Ign)' /proc/$$/status | tr '\\t\\n' '  '; "
                                  "ps -o sid= -p $$ | grep -qw $$ && echo leader");
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);

    assert_text(&r.out, "0, 1, 2\nSigBlk: 0000000000000000 SigIgn: 0000000000000000 leader\n");
    (void)close(leaky);
}

struct started {
    pid_t pid;
    uint64_t ticks;
    uint64_t proc_ticks;
};

static void on_started(void *ctx, pid_t pid, uint64_t start_ticks)
{
    struct started *s = ctx;
    struct proc_stat stat = { 0 };

    s->pid = pid;
    s->ticks = start_ticks;
    if (proc_stat(pid, &stat)) {
        s->proc_ticks = stat.start_ticks;
    }
}

static void the_start_is_told_with_the_kernels_own_time(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        struct started s = { 0 };
        struct process_spec spec = fake_hook("cat");

        spec.on_started = on_started;
        spec.ctx = &s;
        CLEANUP(process_result_done) struct process_result r = run_spec(&spec);

        assert_true(s.pid > 0);
        assert_true(s.ticks > 0);
        assert_int_equal(s.ticks, s.proc_ticks);
    }
}

/* ---- Many ----------------------------------------------------------------- */

static void children_run_side_by_side(void **state)
{
    (void)state;
    enum { N = 20 };
    struct process_spec specs[N];
    struct process_result r[N];
    int64_t started_ms = clock_mono_ms();

    for (size_t i = 0; i < N; i++) {
        specs[i] = fake_hook(i % 2 ? "sleep 0.3; exit 1" : "sleep 0.3; kill -KILL $$");
    }
    process_run(specs, r, N, -1, &options);

    assert_in_range(clock_mono_ms() - started_ms, 290, 2000);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(r[i].end, i % 2 ? PROCESS_EXITED : PROCESS_SIGNALED);
        process_result_done(&r[i]);
    }
}

static size_t open_fds(void)
{
    size_t n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static void no_run_leaves_a_descriptor(void **state)
{
    (void)state;
    static const char *const scripts[] = { "exit 0", "kill -9 $$", "sleep 5", "yes" };
    const char *const missing[] = { "/no/such/program", NULL };
    size_t before = open_fds();

    for (size_t i = 0; i <= COUNT_OF(scripts); i++) {
        struct process_spec spec = fake_hook(scripts[i % COUNT_OF(scripts)]);

        spec.timeout_ms = 50;
        spec.argv = i == COUNT_OF(scripts) ? missing : spec.argv;
        CLEANUP(process_result_done) struct process_result r = run_spec(&spec);
    }
    assert_int_equal(open_fds(), before);
}

int main(void)
{
    struct err err;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_reads_its_input_and_is_read),
        cmocka_unit_test(megabytes_go_in_and_come_out_at_once),
        cmocka_unit_test(a_child_that_never_reads_hurts_nobody),
        cmocka_unit_test(a_child_that_closes_its_input_is_still_read),
        cmocka_unit_test(a_stream_may_be_as_long_as_its_limit),
        cmocka_unit_test(a_stream_that_passes_its_limit_ends_the_child),
        cmocka_unit_test(discarded_output_is_counted_without_limit),
        cmocka_unit_test(without_a_limit_the_tail_of_stderr_is_kept),
        cmocka_unit_test(an_empty_budget_ends_the_child_and_is_given_back),
        cmocka_unit_test(a_signal_is_no_exit_code),
        cmocka_unit_test(a_deadline_ends_a_child_that_heeds_term_at_once),
        cmocka_unit_test(a_child_that_ignores_term_is_killed_after_the_grace),
        cmocka_unit_test(a_child_may_end_in_order_within_the_grace),
        cmocka_unit_test(a_stopped_child_is_ended_too),
        cmocka_unit_test(a_client_that_goes_away_cancels),
        cmocka_unit_test(a_client_that_was_gone_before_cancels),
        cmocka_unit_test(what_cannot_be_started_says_why),
        cmocka_unit_test(a_missing_interpreter_is_named_as_such),
        cmocka_unit_test(a_child_starts_in_its_folder_with_its_environment_alone),
        cmocka_unit_test(a_child_inherits_three_descriptors_no_mask_and_no_ignored_signal),
        cmocka_unit_test(the_start_is_told_with_the_kernels_own_time),
        cmocka_unit_test(children_run_side_by_side),
        cmocka_unit_test(no_run_leaves_a_descriptor),
    };

    if (!process_init(&err)) {
        return 1;
    }
    return cmocka_run_group_tests_name("process/process", tests, NULL, NULL);
}
