#include "queries/trace.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "queries/evaluation.h"
#include "tests/unit/queries/fake_store.h"
#include "tests/unit/unit.h"

enum { ARENA_BYTES = 16 * 1024 * 1024 };

static struct fake_records story;
static struct store *store;

/* Numbers keep their digits, a key may stand twice: what the tool sent is not ours to change. */
#define TOOL_INPUT "{\"a\":1.10,\"a\":1e400,\"command\":\"rm -rf /\"}"

static void add_evaluation(struct evaluation e, struct execution *hooks, size_t n)
{
    e.contract = SLICE("sre");
    e.thread_id = SLICE("t1");
    e.agent_name = e.agent_name.len > 0 ? e.agent_name : SLICE("meta_agent");
    e.chain = e.chain ? e.chain : CHAIN_ALL;
    e.hooks = hooks;
    e.n_hooks = n;
    fake_records_evaluation(&story, e);
}

static void add_denied_call(void)
{
    struct execution hooks[] = { { .hook_name = SLICE("guard"),
                                   .tier = TIER_SYSTEM,
                                   .decision = DECISION_DENY,
                                   .reason = { .text = SLICE("Not permitted.") },
                                   .duration_us = 14000 },
                                 fake_skipped("late", SKIP_SHORT_CIRCUIT, "*"),
                                 fake_skipped("other", SKIP_MATCHER, "ReadFile"),
                                 fake_skipped("another", SKIP_MATCHER, "ListDir") };

    add_evaluation((struct evaluation){ .dispatch_id = SLICE("dispatch-1"),
                                        .hook_event_type = SLICE("PreToolUse"),
                                        .tool_name = SLICE("RunInTerminal"),
                                        .call_id = SLICE("c1"),
                                        .blocking = true,
                                        .final_decision = DECISION_DENY,
                                        .duration_us = 15000,
                                        .hooks_run = 1 },
                   hooks, COUNT_OF(hooks));
    fake_records_tool(&story, (struct tool_execution){ .dispatch_id = SLICE("dispatch-1"),
                                                       .phase = PHASE_START,
                                                       .thread_id = SLICE("t1"),
                                                       .call_id = SLICE("c1"),
                                                       .tool_name = SLICE("RunInTerminal"),
                                                       .tool_input = SLICE(TOOL_INPUT) });
}

static void add_slow_call_of_a_child(void)
{
    struct execution hooks[] = {
        { .hook_name = SLICE("slow"),
          .decision = DECISION_ERROR,
          .cause = CAUSE_TIMEOUT,
          .timed_out = true,
          .fail_mode = SLICE("allow"),
          .duration_us = 2040000 },
        { .hook_name = SLICE("quiet"), .decision = DECISION_PASS, .duration_us = 300 }
    };

    add_evaluation((struct evaluation){ .hook_event_type = SLICE("PostToolUse"),
                                        .tool_name = SLICE("ReadFile"),
                                        .agent_name = SLICE("reviewer"),
                                        .child = true,
                                        .final_decision = DECISION_PASS,
                                        .duration_us = 2041000,
                                        .hooks_run = 2 },
                   hooks, COUNT_OF(hooks));
    fake_records_tool(&story, (struct tool_execution){ .phase = PHASE_END,
                                                       .thread_id = SLICE("t1"),
                                                       .call_id = SLICE("c9"),
                                                       .tool_name = SLICE("ListDir"),
                                                       .has_succeeded = true });
}

static void add_stop(enum chain_kind chain)
{
    add_evaluation((struct evaluation){ .dispatch_id = SLICE("dispatch-2"),
                                        .hook_event_type = SLICE("Stop"),
                                        .chain = chain,
                                        .final_decision = DECISION_PASS },
                   NULL, 0);
}

static int set_up(void **state)
{
    struct err err;

    (void)state;
    add_denied_call();
    add_slow_call_of_a_child();
    add_stop(CHAIN_PROMPT);
    add_stop(CHAIN_COMMAND);
    fake_store_load(&story);
    return fake_store_ops.open(NULL, &store, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fake_records_done(&story);
    return 0;
}

static struct trace ask(struct arena *a, struct trace_options o)
{
    struct trace t;
    struct err err;

    arena_init(a, ARENA_BYTES);
    o.thread = SLICE("t1");
    if (!trace_query(store, &o, a, &t, &err)) {
        fail_msg("%s", err.text);
    }
    return t;
}

static char *drawn(const struct trace *t, struct paint p, bool all)
{
    char *text = NULL;
    size_t len = 0;

    p.out = open_memstream(&text, &len);
    trace_print(t, &p, all);
    (void)fclose(p.out);
    return text;
}

static void shows(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("no '%s' in:\n%s", part, text);
    }
}

static void a_thread_is_told_from_its_first_event_to_its_last(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;

    struct trace t = ask(&a, (struct trace_options){ 0 });

    assert_int_equal(t.n, 6);
    assert_int_equal(t.evaluations, 4);
    assert_int_equal(t.from_us, fake_time(1));
    assert_int_equal(t.to_us, fake_time(6));
    assert_false(t.truncated);
}

static void a_thread_that_nobody_saw_is_not_found(void **state)
{
    CLEANUP(arena_clear) struct arena a;
    const struct trace_options unknown = { .thread = SLICE("T1") };
    const struct trace_options early = { .thread = SLICE("t1"), .to_us = fake_time(1) };
    struct trace t;
    struct err err;

    (void)state;
    arena_init(&a, ARENA_BYTES);
    assert_false(trace_query(store, &unknown, &a, &t, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.text, "no record of thread 'T1'");
    assert_false(trace_query(store, &early, &a, &t, &err));
    assert_string_equal(err.text, "no record of thread 't1' in that time");
}

static void a_limit_tells_where_to_go_on(void **state)
{
    CLEANUP(arena_clear) struct arena a;
    CLEANUP(arena_clear) struct arena b;

    (void)state;

    struct trace t = ask(&a, (struct trace_options){ .limit = 2 });
    struct trace rest = ask(&b, (struct trace_options){ .limit = 4, .from_us = t.next_us });

    assert_int_equal(t.n, 2);
    assert_true(t.truncated);
    assert_int_equal(t.next_us, fake_time(3));
    assert_int_equal(rest.n, 4);
    assert_false(rest.truncated);

    char *text = drawn(&t, (struct paint){ 0 }, false);

    shows(text, "Z, or a higher --limit\n");
    free(text);
}

static void losses_in_the_thread_s_time_stand_in_it(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;
    fake_records_gap(&story, (struct gap){ .known = true,
                                           .lost = 12,
                                           .cause = SLICE("disk_full"),
                                           .first_us = fake_time(2) + 1,
                                           .last_us = fake_time(3) });
    fake_records_gap(&story, (struct gap){ .cause = SLICE("unclean_boot") }); /* after the thread */

    struct trace t = ask(&a, (struct trace_options){ 0 });
    char *text = drawn(&t, (struct paint){ 0 }, false);

    assert_int_equal(t.n, 7);
    assert_int_equal(t.events[2].type, RECORD_GAP);
    shows(text, "GAP: 12 records were lost (disk_full)");
    free(text);
}

static void a_record_is_told_as_the_bytes_that_were_journalled(void **state)
{
    CLEANUP(arena_clear) struct arena a;
    CLEANUP(buf_done) struct buf out;

    (void)state;
    buf_init(&out, 1024 * 1024);

    struct trace t = ask(&a, (struct trace_options){ 0 });

    t.unshipped = 4;
    trace_json(&t, &out);
    for (size_t i = 0; i < 6; i++) {
        struct slice body = story.items[i].json;

        assert_non_null(memmem(out.ptr, out.len_bytes, body.ptr + 1, body.len - 1));
    }
    shows(buf_cstr(&out), TOOL_INPUT);
    shows(buf_cstr(&out), "{\"kind\":\"evaluation\",\"type\":\"hook_evaluation\",");
    shows(buf_cstr(&out), "{\"kind\":\"tool_execution\",\"type\"");
    shows(buf_cstr(&out), "],\"truncated\":false,\"unshipped\":4}\n");
}

static void a_timeline_names_who_decided_what_failed_and_how_many_were_skipped(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;

    struct trace t = ask(&a, (struct trace_options){ 0 });
    char *text = drawn(&t, (struct paint){ 0 }, false);

    shows(
        text,
        "thread t1  4 evaluations in 5.00 s: 1 blocked, 0 held, 0 asked, 0 hooks failed, 1 timed out");
    shows(text, "1 ran, 3 skipped (2 matcher, 1 short_circuit)");
    shows(text, "guard  deny in 14 ms: Not permitted.");
    shows(text, "slow  timed out after 2.04 s, failMode allow");
    shows(text, "child agent reviewer");
    shows(text, "tool ends     ListDir                   failed  call c9");
    shows(text, "Stop/prompt");
    assert_null(strstr(text, "quiet"));
    assert_null(strstr(text, "late"));
    assert_null(strstr(text, "tool starts"));
    assert_null(strchr(text, '\033'));
    free(text);
}

static struct trace_event rejected(const char *event, bool blocking)
{
    return (struct trace_event){ .type = RECORD_HOOK_EVALUATION,
                                 .at_us = 1000000,
                                 .evaluation = { .hook_event_type = slice_from_cstr(event),
                                                 .blocking = blocking,
                                                 .final_decision = DECISION_REJECT } };
}

static void what_stops_nothing_is_not_counted_as_blocked(void **state)
{
    struct trace_event events[] = { rejected("Start", false), rejected("PreToolUse", true),
                                    rejected("PostToolUse", true), rejected("Stop", true) };
    const struct trace t = {
        .thread = SLICE("t1"), .events = events, .n = 4, .evaluations = 4, .to_us = 1000000
    };

    (void)state;

    char *text = drawn(&t, (struct paint){ 0 }, false);

    shows(text, ": 2 blocked, 1 held, 0 asked");
    free(text);
}

static void an_ask_shows_its_question(void **state)
{
    struct execution hooks[] = { { .hook_name = SLICE("gate"), .decision = DECISION_ASK } };
    struct trace_event event = { .type = RECORD_HOOK_EVALUATION,
                                 .evaluation = { .hook_event_type = SLICE("PreToolUse"),
                                                 .blocking = true,
                                                 .final_decision = DECISION_ASK,
                                                 .reason = { .text = SLICE("Deploy it?") },
                                                 .hooks = hooks,
                                                 .n_hooks = 1 } };
    const struct trace t = { .thread = SLICE("t1"), .events = &event, .n = 1, .evaluations = 1 };

    (void)state;

    char *text = drawn(&t, (struct paint){ 0 }, false);

    shows(text, "1 evaluation in ");
    shows(text, "0 blocked, 0 held, 1 asked");
    shows(text, "gate  ask in 0 us: Deploy it?");
    free(text);
}

static void all_shows_each_hook_and_each_tool_execution(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;

    struct trace t = ask(&a, (struct trace_options){ 0 });
    char *text = drawn(&t, (struct paint){ .color = true }, true);

    shows(text, "quiet");
    shows(text, "late  user-global  skipped: short_circuit");
    shows(text, "other  user-global  skipped: matcher 'ReadFile'");
    shows(text, "tool starts");
    assert_null(strstr(text, "  start"));
    shows(text, "\033[31m");
    free(text);
}

static void a_narrow_terminal_breaks_lines_instead_of_hiding_their_end(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;

    struct trace t = ask(&a, (struct trace_options){ 0 });
    char *text = drawn(&t, (struct paint){ .width = 80 }, false);

    shows(text, "\n                1 ran, 3 skipped (2 matcher, 1 short_circuit)\n");
    free(text);
}

static void an_evaluation_comes_with_the_other_chain_of_its_dispatch(void **state)
{
    CLEANUP(arena_clear) struct arena a;
    CLEANUP(buf_done) struct buf out;
    json_error_t fault;
    struct err err;

    (void)state;
    arena_init(&a, ARENA_BYTES);
    buf_init(&out, 1024 * 1024);
    assert_true(
        evaluation_json(store, SLICE("00000000-0000-7000-8000-000000000005"), &a, &out, &err));

    json_t *json = json_loadb(out.ptr, out.len_bytes, 0, &fault);
    const json_t *siblings = json_object_get(json, "siblings");
    const json_t *evaluation = json_object_get(json, "evaluation");

    assert_string_equal(json_string_value(json_object_get(evaluation, "chain")), "prompt");
    assert_int_equal(json_array_size(siblings), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(siblings, 0), "chain")),
                        "command");
    assert_int_equal(json_integer_value(json_object_get(json, "seq")), 5);
    json_decref(json);
    assert_false(evaluation_json(store, SLICE("00000000-0000-7000-8000-000000000002"), &a, &out,
                                 &err)); /* a tool execution */
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

#define STORY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(a_thread_is_told_from_its_first_event_to_its_last),
        STORY_TEST(a_thread_that_nobody_saw_is_not_found),
        STORY_TEST(a_limit_tells_where_to_go_on),
        STORY_TEST(losses_in_the_thread_s_time_stand_in_it),
        STORY_TEST(a_record_is_told_as_the_bytes_that_were_journalled),
        STORY_TEST(a_timeline_names_who_decided_what_failed_and_how_many_were_skipped),
        STORY_TEST(what_stops_nothing_is_not_counted_as_blocked),
        STORY_TEST(an_ask_shows_its_question),
        STORY_TEST(all_shows_each_hook_and_each_tool_execution),
        STORY_TEST(a_narrow_terminal_breaks_lines_instead_of_hiding_their_end),
        STORY_TEST(an_evaluation_comes_with_the_other_chain_of_its_dispatch),
    };

    return cmocka_run_group_tests_name("queries/trace", tests, NULL, NULL);
}
