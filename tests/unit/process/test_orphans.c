#include "collector/process/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/process/orphans.h"
#include "collector/process/proc.h"
#include "tests/unit/process/fake_hooks.h"
#include "tests/unit/unit.h"

enum { MS = 1000 };

static const struct process_options keep = { 0 };
static const struct process_options end = { .end_left_behind = true };

/* Ways to outlive the hook; each prints the number of the process that does. */
static const char plain[] = "sleep 60 >/dev/null 2>&1 & echo $!";
static const char holds_pipes[] = "sleep 60 & echo $!";
static const char new_session[] = "setsid sleep 60 >/dev/null 2>&1 & echo $!";
static const char daemonized[] =
    "(setsid sh -c 'sleep 60 <&- >/dev/null 2>&1 & echo $!' &) | cat; sleep 0.1";
static const char no_descriptors[] = "setsid sh -c 'exec sleep 60 <&- >&- 2>&-' & echo $!";
static const char clean_environment[] =
    "env -i /usr/bin/setsid /bin/sleep 60 >/dev/null 2>&1 & echo $!";
static const char ignores_term[] =
    "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 & echo $!";

static const char *const ways[] = { plain,          holds_pipes,       new_session, daemonized,
                                    no_descriptors, clean_environment, ignores_term };

static struct process_result run(const char *script, const struct process_options *o)
{
    const struct process_spec spec = fake_hook(script);
    struct process_result r;

    process_run(&spec, &r, 1, -1, o);
    return r;
}

static pid_t pid_in(const struct process_result *r)
{
    struct pids pids = { 0 };
    pid_t pid;

    proc_parse_pids(r->out.ptr, r->out.len_bytes, &pids);
    assert_int_equal(pids.n, 1);
    pid = pids.at[0];
    pids_done(&pids);
    return pid;
}

static bool alive(pid_t pid)
{
    struct proc_stat s;

    return proc_stat(pid, &s) && proc_alive(&s);
}

/* What was killed needs a moment to be gone. */
static bool gone_soon(pid_t pid)
{
    for (int i = 0; i < 1000 && alive(pid); i++) {
        (void)usleep(MS);
    }
    return !alive(pid);
}

/* Nothing of ours is there, after a moment: neither alive nor a zombie. */
static void assert_no_children(void)
{
    struct pids children = { 0 };

    process_reap();
    for (int i = 0; i < 100 && !orphans_none(); i++) {
        (void)usleep(MS);
        process_reap();
    }
    proc_children(getpid(), &children);
    assert_int_equal(children.n, 0);
    pids_done(&children);
}

/* End what a test has kept, and reap it. */
static void end_kept(pid_t pid)
{
    (void)kill(getpgid(pid) == pid ? -pid : pid, SIGKILL);
    assert_true(gone_soon(pid));
    assert_no_children();
}

static void what_a_hook_leaves_running_is_counted_and_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        CLEANUP(process_result_done) struct process_result r = run(ways[i], &keep);
        CLEANUP(process_result_done) struct process_result later = run("exit 0", &keep);
        pid_t pid = pid_in(&r);

        assert_int_equal(r.end, PROCESS_EXITED);
        assert_in_range(r.left_behind, 1, ways[i] == ignores_term ? 2 : 1);
        assert_true(r.duration_us < 400 * MS);
        assert_int_equal(later.left_behind, 0);
        assert_true(alive(pid));
        end_kept(pid);
    }
}

static void what_a_hook_leaves_running_is_ended_where_that_is_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        CLEANUP(process_result_done) struct process_result r = run(ways[i], &end);

        assert_int_equal(r.end, PROCESS_EXITED);
        assert_in_range(r.left_behind, 1, ways[i] == ignores_term ? 2 : 1);
        assert_true(r.duration_us < 400 * MS);
        assert_false(alive(pid_in(&r)));
        assert_no_children();
    }
}

static void a_hook_that_behaves_leaves_nothing_behind(void **state)
{
    (void)state;
    CLEANUP(process_result_done) struct process_result r = run("sleep 0.1 & wait; ls | cat", &keep);

    assert_int_equal(r.left_behind, 0);
    assert_no_children();
}

static void the_whole_tree_below_an_orphan_is_counted(void **state)
{
    (void)state;
    CLEANUP(process_result_done)
    struct process_result r =
        run("setsid sh -c 'sleep 60 & sleep 60 & wait' >/dev/null 2>&1 & echo $!; sleep 0.1", &end);

    assert_int_equal(r.left_behind, 3);
    assert_false(alive(pid_in(&r)));
    assert_no_children();
}

static void the_bytes_of_a_child_that_left_somebody_with_the_pipes_are_all_read(void **state)
{
    (void)state;
    CLEANUP(process_result_done)
    struct process_result r = run("sleep 60 & head -c 60000 /dev/zero; echo x >&2; exit 2", &end);

    assert_int_equal(r.exit_code, 2);
    assert_int_equal(r.out.len_bytes, 60000);
    assert_int_equal(r.err_out.len_bytes, 2);
    assert_in_range(r.duration_us, 90 * MS, 400 * MS);
}

static void a_deadline_ends_everything_however_it_fled(void **state)
{
    (void)state;
    struct process_spec specs[COUNT_OF(ways)];
    struct process_result r[COUNT_OF(ways)];
    char scripts[COUNT_OF(ways)][256];

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        (void)snprintf(scripts[i], sizeof(scripts[i]), "%s; sleep 60", ways[i]);
        specs[i] = fake_hook(scripts[i]);
        specs[i].timeout_ms = 1000; /* for the shell to get that far on a busy machine */
    }
    process_run(specs, r, COUNT_OF(ways), -1, &keep);

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        assert_int_equal(r[i].end, PROCESS_TIMED_OUT);
        assert_int_equal(r[i].left_behind, 0);
        assert_in_range(r[i].duration_us, 1000 * MS, 3000 * MS);
        assert_false(alive(pid_in(&r[i])));
        process_result_done(&r[i]);
    }
    assert_no_children();
}

/* Both stop by themselves: a bomb of 63 processes, a runner of a few hundred hops. */
static const char bomb[] = "trap '' TERM; b() { [ $1 = 0 ] && exec sleep 20; sleep 0.02; "
                           "b $(($1 - 1)) & b $(($1 - 1)) & wait; }; b 5";
static const char runner[] =
    "export H='trap \"\" TERM; [ $0 -gt 300 ] && exit; setsid sh -c \"$H\" $(($0 + 1)) &'; "
    "exec sh -c \"$H\" 0";

/* Two of three hooks behave; the third flees from its session, its parents, its environment. */
static void who_flees_without_a_trace_is_found_while_others_run(void **state)
{
    (void)state;
    struct process_spec specs[] = {
        fake_hook("(env -i setsid sh -c 'trap \"\" TERM; (exec env -i setsid sleep 61.5) & "
                  "sleep 61.6' &) ; echo $$; sleep 61.7"),
        fake_hook("sleep 2"),
        fake_hook("sleep 2"),
    };
    struct process_result r[COUNT_OF(specs)];
    struct process_result look;

    specs[0].timeout_ms = 500;
    process_run(specs, r, COUNT_OF(specs), -1, &keep);

    assert_int_equal(r[0].end, PROCESS_TIMED_OUT);
    assert_int_equal(r[1].left_behind, 0);
    assert_int_equal(r[2].left_behind, 0);
    look = run("pgrep -f -x 'sleep 61[.][567]' >/dev/null && exit 1; exit 0", &keep);
    assert_int_equal(look.exit_code, 0);
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        process_result_done(&r[i]);
    }
    process_result_done(&look);
    assert_no_children();
}

static void forking_without_end_does_not_help(void **state)
{
    (void)state;
    static const char *const forks[] = { bomb, runner };

    for (size_t i = 0; i < COUNT_OF(forks); i++) {
        struct process_spec spec = fake_hook(forks[i]);
        struct process_result r;

        spec.timeout_ms = 100;
        process_run(&spec, &r, 1, -1, &end);
        assert_int_equal(r.end, forks[i] == bomb ? PROCESS_TIMED_OUT : PROCESS_EXITED);
        assert_int_equal(forks[i] == bomb ? 0 : r.left_behind > 0, forks[i] != bomb);
        process_result_done(&r);
        assert_no_children();
    }
}

static void a_kept_process_that_starts_others_is_no_later_runs(void **state)
{
    (void)state;
    CLEANUP(process_result_done)
    struct process_result r =
        run("setsid sh -c 'while :; do (sleep 0.05 &) ; sleep 0.02; done' >/dev/null 2>&1 & echo "
            "$!",
            &keep);
    pid_t pid = pid_in(&r);

    for (int i = 0; i < 10; i++) {
        CLEANUP(process_result_done) struct process_result later = run("sleep 0.03", &end);

        assert_int_equal(later.left_behind, 0);
        assert_true(alive(pid));
    }
    (void)kill(pid, SIGKILL);
    for (int i = 0; i < 500 && !orphans_none(); i++) {
        process_reap();
        (void)usleep(MS);
    }
    (void)usleep(100 * MS);
    assert_no_children();
}

/* ---- Several at once ------------------------------------------------------ */

static void each_of_several_is_told_its_own(void **state)
{
    (void)state;
    const struct process_spec specs[] = { fake_hook(plain), fake_hook("sleep 0.2"),
                                          fake_hook(daemonized), fake_hook("exit 1") };
    struct process_result r[COUNT_OF(specs)];

    process_run(specs, r, COUNT_OF(specs), -1, &end);
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        assert_int_equal(r[i].end, PROCESS_EXITED);
        assert_int_equal(r[i].left_behind, i % 2 == 0);
        process_result_done(&r[i]);
    }
    assert_no_children();
}

enum { THREADS = 6, TURNS = 12 };

/* Half of the threads leave something behind each time, the others never do. */
static void *run_in_turns(void *arg)
{
    const int *number = arg;

    for (int i = 0; i < TURNS; i++) {
        const char *script = *number % 2 ? daemonized : "sleep 0.02";
        struct process_result r = run(script, &end);
        bool right = r.end == PROCESS_EXITED && r.left_behind == (*number % 2 ? 1u : 0u);

        process_result_done(&r);
        if (!right) {
            return arg;
        }
    }
    return NULL;
}

static void runs_of_other_threads_are_not_mixed_up(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    void *failed;

    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, run_in_turns, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_no_children();
}

static void *reap_until_told(void *arg)
{
    atomic_bool *stop = arg;

    while (!atomic_load(stop)) {
        process_reap();
        (void)usleep(100);
    }
    return NULL;
}

static void reaping_takes_no_child_away_from_its_run(void **state)
{
    (void)state;
    atomic_bool stop = false;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, reap_until_told, &stop), 0);
    for (int i = 0; i < 200; i++) {
        CLEANUP(process_result_done) struct process_result r = run("exit 5", &keep);

        assert_int_equal(r.end, PROCESS_EXITED);
        assert_int_equal(r.exit_code, 5);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- After a crash -------------------------------------------------------- */

struct victim {
    pid_t pid;
    uint64_t ticks;
    int fd;
};

static void tell_start(void *ctx, pid_t pid, uint64_t ticks)
{
    struct victim v = { .pid = pid, .ticks = ticks };
    const int *fd = ctx;

    (void)!write(*fd, &v, sizeof(v));
}

/* A collector that runs `script` and is killed under it. */
static struct victim crash_under(const char *script, const char *tag)
{
    struct victim v = { 0 };
    int pipe_fds[2];

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);

    pid_t collector = fork();

    if (collector == 0) {
        struct err err;
        struct process_spec spec = fake_hook(script);
        struct process_result r;

        spec.tag = tag;
        spec.on_started = tell_start;
        spec.ctx = &pipe_fds[1];
        if (process_init(&err)) {
            process_run(&spec, &r, 1, -1, &keep);
        }
        _exit(1);
    }
    assert_int_equal(read(pipe_fds[0], &v, sizeof(v)), sizeof(v));
    (void)usleep(200 * MS); /* for the script to come as far as it goes */
    (void)kill(collector, SIGKILL);
    assert_int_equal(waitpid(collector, NULL, 0), collector);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    return v;
}

static void what_a_killed_collector_ran_is_ended(void **state)
{
    (void)state;
    struct victim v = crash_under("setsid sleep 60 & (setsid sleep 60 &) ; sleep 60", "crash-1");

    assert_true(alive(v.pid));
    assert_int_equal(process_end_orphans(v.pid, v.ticks, "crash-1"), 4);
    assert_true(gone_soon(v.pid));
    assert_no_children();
}

static void a_pid_that_another_process_has_now_is_left_alone(void **state)
{
    (void)state;
    struct victim v = crash_under("sleep 60", "crash-2");

    assert_int_equal(process_end_orphans(v.pid, v.ticks + 1, "no-such-tag"), 0);
    assert_true(alive(v.pid));
    assert_int_equal(process_end_orphans(v.pid, v.ticks, "no-such-tag"), 2);
    assert_no_children();
}

static void without_a_pid_the_tag_is_enough(void **state)
{
    (void)state;
    (void)crash_under("setsid sleep 60 & exit 0", "crash-3");

    assert_int_equal(process_end_orphans(0, 0, "crash-3"), 1);
    assert_no_children();
}

static void without_anything_to_go_by_nothing_is_ended(void **state)
{
    (void)state;
    assert_int_equal(process_end_orphans(0, 0, ""), 0);
    assert_int_equal(process_end_orphans(getpid(), 0, "no-such-tag"), 0);
}

int main(void)
{
    struct err err;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_hook_leaves_running_is_counted_and_kept),
        cmocka_unit_test(what_a_hook_leaves_running_is_ended_where_that_is_chosen),
        cmocka_unit_test(a_hook_that_behaves_leaves_nothing_behind),
        cmocka_unit_test(the_whole_tree_below_an_orphan_is_counted),
        cmocka_unit_test(the_bytes_of_a_child_that_left_somebody_with_the_pipes_are_all_read),
        cmocka_unit_test(a_deadline_ends_everything_however_it_fled),
        cmocka_unit_test(who_flees_without_a_trace_is_found_while_others_run),
        cmocka_unit_test(forking_without_end_does_not_help),
        cmocka_unit_test(a_kept_process_that_starts_others_is_no_later_runs),
        cmocka_unit_test(each_of_several_is_told_its_own),
        cmocka_unit_test(runs_of_other_threads_are_not_mixed_up),
        cmocka_unit_test(reaping_takes_no_child_away_from_its_run),
        cmocka_unit_test(what_a_killed_collector_ran_is_ended),
        cmocka_unit_test(a_pid_that_another_process_has_now_is_left_alone),
        cmocka_unit_test(without_a_pid_the_tag_is_enough),
        cmocka_unit_test(without_anything_to_go_by_nothing_is_ended),
    };

    if (!process_init(&err)) {
        return 1;
    }
    return cmocka_run_group_tests_name("process/orphans", tests, NULL, NULL);
}
