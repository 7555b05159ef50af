#include "collector/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/process/proc.h"
#include "tests/unit/process/fake_hooks.h"
#include "tests/unit/unit.h"

static const struct process_options keep = { 0 };
static const struct process_options end = { .end_left_behind = true };

/* Run one shell script with the usual limits. */
static struct process_result run_spec(const struct process_spec *spec,
                                      const struct process_options *o)
{
    struct process_result r;

    process_run(spec, &r, 1, -1, o);
    return r;
}

static struct process_result run(const char *script)
{
    const struct process_spec spec = fake_hook(script);

    return run_spec(&spec, &keep);
}

static void assert_out(const struct process_result *r, const char *text)
{
    struct slice out = buf_slice(&r->out);

    assert_int_equal(out.len, strlen(text));
    assert_memory_equal(out.ptr, text, out.len);
}

static void a_child_reads_its_input_and_is_read(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("cat; echo whoops >&2; exit 3");

    spec.input = SLICE("{\"a\":1}\n");
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec, &keep);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_int_equal(r.exit_code, 3);
    assert_out(&r, "{\"a\":1}\n");
    assert_true(slice_equal(buf_slice(&r.err_out), SLICE("whoops\n")));
    assert_int_equal(r.stdout_bytes, 8);
    assert_int_equal(r.stderr_bytes, 7);
    assert_int_equal(r.left_behind, 0);
}

static void megabytes_go_in_and_come_out_at_once(void **state)
{
    (void)state;
    enum { BYTES = 3 * 1024 * 1024 };
    char *input = calloc(1, BYTES);
    struct process_spec spec = fake_hook("tee /dev/stderr");

    memset(input, 'x', BYTES);
    spec.input = (struct slice){ .ptr = input, .len = BYTES };
    spec.stdout_limit_bytes = BYTES;
    spec.stderr_limit_bytes = BYTES;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec, &keep);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_int_equal(r.out.len_bytes, BYTES);
    assert_int_equal(r.err_out.len_bytes, BYTES);
    free(input);
}

static void a_child_that_never_reads_hurts_nobody(void **state)
{
    (void)state;
    enum { BYTES = 1024 * 1024 };
    char *input = calloc(1, BYTES);
    struct process_spec spec = fake_hook("echo done");

    spec.input = (struct slice){ .ptr = input, .len = BYTES };
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec, &keep);

    assert_int_equal(r.end, PROCESS_EXITED);
    assert_out(&r, "done\n");
    free(input);
}

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
    struct process_spec spec = fake_hook("sleep 60");

    spec.timeout_ms = 100;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec, &keep);

    assert_int_equal(r.end, PROCESS_TIMED_OUT);
    assert_int_equal(r.signal, SIGTERM);
    assert_in_range(r.duration_us, 100 * 1000, 450 * 1000);
}

static void a_child_that_ignores_term_is_killed_after_the_grace(void **state)
{
    (void)state;
    struct process_spec spec = fake_hook("trap '' TERM; while :; do sleep 1; done");

    spec.timeout_ms = 100;
    CLEANUP(process_result_done) struct process_result r = run_spec(&spec, &keep);

    assert_int_equal(r.end, PROCESS_TIMED_OUT);
    assert_int_equal(r.signal, SIGKILL);
    assert_in_range(r.duration_us, 600 * 1000, 1500 * 1000);
}

int main(void)
{
    struct err err;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_reads_its_input_and_is_read),
        cmocka_unit_test(megabytes_go_in_and_come_out_at_once),
        cmocka_unit_test(a_child_that_never_reads_hurts_nobody),
        cmocka_unit_test(a_signal_is_no_exit_code),
        cmocka_unit_test(a_deadline_ends_a_child_that_heeds_term_at_once),
        cmocka_unit_test(a_child_that_ignores_term_is_killed_after_the_grace),
    };

    (void)end;
    if (!process_init(&err)) {
        return 1;
    }
    return cmocka_run_group_tests_name("process/process", tests, NULL, NULL);
}
