#include "collector/dispatcher/chain.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/dispatcher/fake_contract.h"
#include "tests/unit/unit.h"

enum { MS = 1000 };

static const struct process_options process = { 0 };
static const struct chain_options plain = { .process = &process };

/* One dispatch that has run, and the evaluation of its first chain. */
struct ran {
    struct fake_set set;
    struct dispatch d;
    struct evaluation e;
};

static void prepare(struct ran *r, const struct fake_step *steps, size_t n)
{
    struct err err;

    fake_set_init(&r->set, steps, n);
    dispatch_init(&r->d, &r->set.set, SLICE("{\"n\":1}"));
    assert_true(chain_prepare(&r->d, &err));
}

static void run_with(struct ran *r, const struct chain_options *o)
{
    chain_run(&r->d, o);
    chain_evaluation(&r->d, &r->d.chains[0], &r->e);
}

static void run(struct ran *r, const struct fake_step *steps, size_t n)
{
    prepare(r, steps, n);
    run_with(r, &plain);
}

static void ran_done(struct ran *r)
{
    dispatch_done(&r->d);
    fake_set_done(&r->set);
}

static void assert_text(struct slice got, const char *text)
{
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.ptr, text, got.len);
}

static void hooks_run_in_order_and_are_written_down(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "a", .script = "cat", .tier = TIER_SYSTEM },
        { .name = "b",
          .script = "echo 12345678901234567890 >&2; exit 1",
          .tier = TIER_AGENT,
          .wave = 1 },
        { .name = "c", .script = "exit 0", .tier = TIER_USER_GLOBAL, .wave = 2 },
        { .name = "d", .skip = SKIP_MATCHER, .tier = TIER_USER_GLOBAL, .wave = 3 },
    };
    CLEANUP(ran_done) struct ran r;

    run(&r, steps, COUNT_OF(steps));

    assert_int_equal(r.e.n_hooks, 4);
    assert_int_equal(r.e.hooks_run, 3);
    assert_int_equal(r.e.system_hooks_run, 1);
    assert_int_equal(r.e.agent_hooks_run, 1);
    assert_int_equal(r.e.user_global_hooks_run, 1);
    assert_int_equal(r.e.hooks_configured, 4);
    assert_int_equal(r.e.rejection_count, 1);
    assert_int_equal(r.e.final_decision, DECISION_REJECT);
    assert_int_equal(r.e.source, SOURCE_DISPATCHER);
    assert_text(r.e.contract, "fake");
    assert_text(r.e.thread_id, "thread-1");
    assert_true(slice_equal(r.e.dispatch_id, id_slice(&r.d.id)));
    assert_true(id_valid(r.e.head.id));
    assert_true(r.e.head.time_us >= r.d.received_us && r.e.duration_us > 0);
    assert_int_equal(r.e.hooks[0].decision, DECISION_PASS);
    assert_int_equal(r.e.hooks[0].stdout_bytes, 7);
    assert_true(r.e.hooks[0].has_exit_code && r.e.hooks[0].exit_code == 0);
    assert_true(r.e.hooks[0].duration_us > 0);
    assert_int_equal(r.e.hooks[1].decision, DECISION_REJECT);
    assert_int_equal(r.e.hooks[1].exit_code, 1);
    assert_text(r.e.hooks[1].reason.text, "12345678901234567890\n");
    assert_text(r.e.hooks[1].stderr_tail, "12345678901234567890\n");
    assert_text(r.e.hooks[1].hook_name, "b");
    assert_text(r.e.hooks[1].matcher, "*");
    assert_text(r.e.hooks[1].fail_mode, "allow");
    assert_int_equal(r.e.hooks[3].decision, DECISION_SKIPPED);
    assert_int_equal(r.e.hooks[3].skip_reason, SKIP_MATCHER);
    assert_int_equal(r.e.hooks[3].ordinal, 3);
}

static void a_stop_leaves_the_rest_skipped(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "a", .script = "exit 2" },
        { .name = "b", .script = "exit 0", .wave = 1 },
        { .name = "c", .skip = SKIP_DISABLED, .wave = 2 },
    };
    CLEANUP(ran_done) struct ran r;

    run(&r, steps, COUNT_OF(steps));

    assert_int_equal(r.e.final_decision, DECISION_DENY);
    assert_int_equal(r.e.hooks_run, 1);
    assert_int_equal(r.e.hooks[1].skip_reason, SKIP_SHORT_CIRCUIT);
    assert_int_equal(r.e.hooks[2].skip_reason, SKIP_DISABLED);
}

static void a_wave_runs_side_by_side_and_is_folded_in_order(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "a", .script = "sleep 0.3; echo first >&2; exit 2" },
        { .name = "b", .script = "echo second >&2; exit 2" },
        { .name = "c", .script = "sleep 0.3; exit 0" },
        { .name = "d", .script = "exit 0", .wave = 1 },
    };
    CLEANUP(ran_done) struct ran r;

    run(&r, steps, COUNT_OF(steps));

    assert_in_range(r.e.duration_us, 290 * MS, 570 * MS);
    assert_text(r.e.reason.text, "first\n");
    assert_int_equal(r.e.hooks[1].decision, DECISION_DENY);
    assert_int_equal(r.e.hooks[2].decision, DECISION_PASS);
    assert_int_equal(r.e.hooks[3].skip_reason, SKIP_SHORT_CIRCUIT);
}

static void each_failure_is_told_as_what_it_is(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "t", .script = "sleep 9", .timeout_ms = 100 },
        { .name = "s", .script = "kill -SEGV $$", .wave = 1 },
        { .name = "o", .script = "yes", .output_limit = 100, .wave = 2 },
        { .name = "x", .script = "/no/such/program", .wave = 3 },
        { .name = "i", .script = "exit 0", .input_fails = true, .wave = 4 },
        { .name = "h", .script = "", .type = HOOK_HTTP, .wave = 5 },
        { .name = "p", .script = "", .type = HOOK_PROMPT, .wave = 6 },
    };
    static const struct {
        enum cause cause;
        const char *reason;
    } expected[] = {
        { CAUSE_TIMEOUT, "timed out after 100 ms" },
        { CAUSE_SIGNAL, "ended by signal 11 SIGSEGV" },
        { CAUSE_OUTPUT_LIMIT, "stdout passed its limit" },
        { CAUSE_SPAWN, "cannot start /no/such/program: No such file or directory" },
        { CAUSE_INPUT, "no room for the input" },
        { CAUSE_UNSUPPORTED, "this build has no runner for HTTP hooks" },
        { CAUSE_UNSUPPORTED, "this build has no runner for prompt hooks" },
    };
    CLEANUP(ran_done) struct ran r;

    run(&r, steps, COUNT_OF(steps));

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        assert_int_equal(r.e.hooks[i].decision, DECISION_ERROR);
        assert_int_equal(r.e.hooks[i].cause, expected[i].cause);
        assert_text(r.e.hooks[i].reason.text, expected[i].reason);
        assert_false(r.e.hooks[i].has_exit_code);
        assert_int_equal(r.e.hooks[i].timed_out, i == 0);
        assert_int_equal(r.e.hooks[i].signal, i == 1 ? SIGSEGV : 0);
    }
    assert_int_equal(r.e.hooks_run, COUNT_OF(steps));
}

static void what_a_hook_leaves_behind_is_in_its_row(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "a", .script = "sleep 30 >/dev/null 2>&1 &" },
        { .name = "b", .script = "exit 0", .wave = 1 },
    };
    static const struct process_options end = { .end_left_behind = true };
    static const struct chain_options o = { .process = &end };
    CLEANUP(ran_done) struct ran r;

    prepare(&r, steps, COUNT_OF(steps));
    run_with(&r, &o);

    assert_int_equal(r.e.hooks[0].left_behind, 1);
    assert_int_equal(r.e.hooks[1].left_behind, 0);
}

static void *close_soon(void *arg)
{
    const int *fd = arg;

    (void)usleep(100 * MS);
    (void)close(*fd);
    return NULL;
}

static void a_client_that_goes_away_cancels_all_chains(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "a", .script = "exit 1" },
        { .name = "b", .script = "sleep 30", .wave = 1 },
        { .name = "c", .script = "exit 0", .wave = 2 },
        { .name = "d", .script = "exit 0", .chain = 1 },
    };
    CLEANUP(ran_done) struct ran r;
    struct evaluation second;
    pthread_t thread;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    prepare(&r, steps, COUNT_OF(steps));
    r.d.cancel_fd = pair[0];
    assert_int_equal(pthread_create(&thread, NULL, close_soon, &pair[1]), 0);
    run_with(&r, &plain);
    assert_int_equal(pthread_join(thread, NULL), 0);
    chain_evaluation(&r.d, &r.d.chains[1], &second);

    assert_int_equal(r.e.final_decision, DECISION_CANCELLED);
    assert_int_equal(r.e.hooks[0].decision, DECISION_REJECT);
    assert_int_equal(r.e.hooks[1].decision, DECISION_CANCELLED);
    assert_int_equal(r.e.hooks[1].cause, CAUSE_CANCELLED);
    assert_int_equal(r.e.hooks[2].skip_reason, SKIP_SHORT_CIRCUIT);
    assert_int_equal(second.final_decision, DECISION_CANCELLED);
    assert_int_equal(second.hooks_run, 0);
    (void)close(pair[0]);
}

static void a_plan_that_runs_nothing_is_known_before(void **state)
{
    (void)state;
    static const struct fake_step steps[] = { { .name = "a", .skip = SKIP_MATCHER },
                                              { .name = "b", .skip = SKIP_SCOPE, .wave = 1 } };
    static const struct fake_step one[] = { { .name = "a", .script = "exit 0" } };
    CLEANUP(ran_done) struct ran r;
    CLEANUP(ran_done) struct ran other;

    prepare(&r, steps, COUNT_OF(steps));
    prepare(&other, one, COUNT_OF(one));

    assert_false(chain_runs_something(&r.d));
    assert_true(chain_runs_something(&other.d));
    run_with(&r, &plain);
    assert_int_equal(r.e.hooks_run, 0);
    assert_int_equal(r.e.hooks[1].skip_reason, SKIP_SCOPE);
}

static void a_refusal_runs_nothing(void **state)
{
    (void)state;
    static const struct fake_step steps[] = { { .name = "a", .script = "exit 0" } };
    struct fake_set set;
    struct dispatch d;
    struct err err;

    fake_set_init(&set, steps, COUNT_OF(steps));
    dispatch_init(&d, &set.set, SLICE("refuse"));
    assert_false(chain_prepare(&d, &err));
    assert_string_equal(err.text, "refused");
    dispatch_done(&d);
    fake_set_done(&set);
}

static void no_memory_for_a_wave_is_an_error_of_the_chain(void **state)
{
    (void)state;
    static const struct fake_step steps[] = { { .name = "a", .script = "exit 0" } };
    CLEANUP(ran_done) struct ran r;

    prepare(&r, steps, COUNT_OF(steps));
    r.d.arena.limit_bytes = r.d.arena.used_bytes;
    run_with(&r, &plain);

    assert_int_equal(r.e.final_decision, DECISION_ERROR);
    assert_int_equal(r.e.hooks[0].decision, DECISION_SKIPPED);
    assert_true(r.e.reason.text.len > 0);
}

struct seen {
    char log[256];
    char tag[64];
};

static void note(struct seen *s, const char *what, const struct step *step)
{
    size_t n = strlen(s->log);

    (void)snprintf(s->log + n, sizeof(s->log) - n, "%s %" SLICE_FMT ";", what,
                   SLICE_ARG(step->hook->name));
}

static void on_start(void *ctx, struct dispatch *d, const struct chain *c, const struct step *s,
                     const char *tag)
{
    struct seen *seen = ctx;

    (void)d;
    (void)c;
    note(seen, "start", s);
    (void)snprintf(seen->tag, sizeof(seen->tag), "%s", tag);
}

static void on_pid(void *ctx, const struct step *s, pid_t pid, uint64_t start_ticks)
{
    note(ctx, pid > 0 && start_ticks > 0 ? "pid" : "no pid", s);
}

static void on_end(void *ctx, struct dispatch *d, const struct step *s)
{
    (void)d;
    note(ctx, "end", s);
}

static void an_observer_sees_each_hook_come_and_go(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        { .name = "a", .script = "exit 0" },
        { .name = "b", .script = "/no/such/program", .wave = 1 },
    };
    struct seen seen = { 0 };
    const struct chain_observer observer = { on_start, on_pid, on_end, &seen };
    const struct chain_options o = { .process = &process, .observer = &observer };
    CLEANUP(ran_done) struct ran r;
    char tag[64];

    prepare(&r, steps, COUNT_OF(steps));
    run_with(&r, &o);
    (void)snprintf(tag, sizeof(tag), "%s.1", r.d.chains[0].id.text);

    assert_string_equal(seen.log, "start a;pid a;end a;start b;end b;");
    assert_string_equal(seen.tag, tag);
}

int main(void)
{
    struct err err;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_run_in_order_and_are_written_down),
        cmocka_unit_test(a_stop_leaves_the_rest_skipped),
        cmocka_unit_test(a_wave_runs_side_by_side_and_is_folded_in_order),
        cmocka_unit_test(each_failure_is_told_as_what_it_is),
        cmocka_unit_test(what_a_hook_leaves_behind_is_in_its_row),
        cmocka_unit_test(a_client_that_goes_away_cancels_all_chains),
        cmocka_unit_test(a_plan_that_runs_nothing_is_known_before),
        cmocka_unit_test(a_refusal_runs_nothing),
        cmocka_unit_test(no_memory_for_a_wave_is_an_error_of_the_chain),
        cmocka_unit_test(an_observer_sees_each_hook_come_and_go),
    };

    if (!process_init(&err)) {
        return 1;
    }
    return cmocka_run_group_tests_name("dispatcher/chain", tests, NULL, NULL);
}
