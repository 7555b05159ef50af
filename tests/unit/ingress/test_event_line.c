#include "collector/ingress/event_line.h"

#include <string.h>

#include "collector/record/decode.h"
#include "tests/unit/unit.h"

static struct arena arena;
static struct buf record;
static enum record_type type;
static struct err err;

static int start(void **state)
{
    (void)state;
    arena_init(&arena, 4 << 20);
    buf_init(&record, RECORD_MAX_BYTES);
    type = RECORD_NONE;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_clear(&arena);
    buf_done(&record);
    return 0;
}

static bool reads(const char *line)
{
    buf_clear(&record);
    return event_line_read(slice_from_cstr(line), "box", &arena, &record, &type, &err);
}

static void what_is_absent_is_filled_in(void **state)
{
    struct tool_execution t;

    (void)state;
    assert_true(reads("{\"type\":\"tool_execution\",\"phase\":\"start\",\"thread_id\":\"t\","
                      "\"tool_name\":\"x\",\"tool_input\":{\"n\":1.50}}"));
    assert_int_equal(type, RECORD_TOOL_EXECUTION);
    assert_true(decode_tool_execution(buf_slice(&record), &arena, &t, &err));
    assert_true(id_valid(t.head.id));
    assert_true(slice_equal(t.head.collector, SLICE("box")));
    assert_true(t.head.time_us > 0);
    assert_int_equal(t.source, SOURCE_HOST);
    assert_true(slice_equal(t.tool_input, SLICE("{\"n\":1.50}")));
}

static void what_the_host_says_of_itself_stays(void **state)
{
    struct evaluation e;

    (void)state;
    assert_true(
        reads("{\"type\":\"hook_evaluation\",\"schema\":1,"
              "\"id\":\"01a22d0c-d0f3-7000-af91-dd1797f5af35\",\"collector\":\"box\","
              "\"time\":\"2026-01-02T03:04:05Z\",\"source\":\"host\",\"contract\":\"sre\","
              "\"thread_id\":\"t\",\"hook_event_type\":\"Stop\",\"final_decision\":\"deny\","
              "\"reason\":\"no\",\"hooks\":[{\"hook_name\":\"h\",\"decision\":\"deny\"}]}"));
    assert_int_equal(type, RECORD_HOOK_EVALUATION);
    assert_true(decode_evaluation(buf_slice(&record), &arena, &e, &err));
    assert_true(slice_equal(e.head.id, SLICE("01a22d0c-d0f3-7000-af91-dd1797f5af35")));
    assert_true(slice_equal(e.head.collector, SLICE("box")));
    assert_int_equal(e.final_decision, DECISION_DENY);
    assert_int_equal(e.n_hooks, 1);
}

static void the_first_moment_of_1970_is_a_time(void **state)
{
    struct tool_execution t;

    (void)state;
    assert_true(reads("{\"type\":\"tool_execution\",\"phase\":\"start\",\"thread_id\":\"t\","
                      "\"tool_name\":\"x\",\"time\":\"1970-01-01T00:00:00Z\"}"));
    assert_true(decode_tool_execution(buf_slice(&record), &arena, &t, &err));
    assert_int_equal(t.head.time_us, 0);
}

#define PASSED                                                                \
    "{\"type\":\"hook_evaluation\",\"contract\":\"sre\",\"thread_id\":\"t\"," \
    "\"hook_event_type\":\"Stop\",\"final_decision\":\"pass\""
#define FREE_EVALUATION(key) PASSED ",\"" key "\":\"password=hunter2\"}"
#define FREE_HOOK(key)                                                           \
    PASSED ",\"hooks\":[{\"hook_name\":\"h\",\"decision\":\"pass\",\"" key "\":" \
           "\"password=hunter2\"}]}"
#define FREE_TOOL(key)                                                                        \
    "{\"type\":\"tool_execution\",\"phase\":\"end\",\"thread_id\":\"t\",\"tool_name\":\"x\"," \
    "\"" key "\":\"password=hunter2\"}"

static void secrets_are_taken_out(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"tool_execution\",\"phase\":\"end\",\"thread_id\":\"t\",\"tool_name\":\"x\","
        "\"tool_output\":{\"password\":\"hunter2\"}}",
        "{\"type\":\"tool_execution\",\"phase\":\"end\",\"thread_id\":\"t\",\"tool_name\":\"x\","
        "\"tool_input\":{\"api_key\":\"hunter2\"}}",
        "{\"type\":\"hook_evaluation\",\"contract\":\"sre\",\"thread_id\":\"t\","
        "\"hook_event_type\":\"Stop\",\"final_decision\":\"pass\","
        "\"reason\":\"curl https://u:hunter2@example.com/\"}",
        "{\"type\":\"hook_evaluation\",\"contract\":\"sre\",\"thread_id\":\"t\","
        "\"hook_event_type\":\"Stop\",\"final_decision\":\"pass\",\"hooks\":[{\"hook_name\":\"h\","
        "\"decision\":\"pass\",\"stderr_tail\":\"Authorization: Bearer hunter2hunter2\"}]}",
        FREE_TOOL("call_id"),
        FREE_TOOL("contract"),
        FREE_TOOL("dispatch_id"),
        FREE_TOOL("sub_agent_name"),
        FREE_TOOL("skills_loaded"),
        FREE_TOOL("skill_source"),
        FREE_EVALUATION("run_id"),
        FREE_EVALUATION("call_id"),
        FREE_EVALUATION("user_id"),
        FREE_EVALUATION("agent_name"),
        FREE_EVALUATION("task_id"),
        FREE_EVALUATION("execution_kind"),
        FREE_EVALUATION("tool_name"),
        FREE_EVALUATION("allowing_hook"),
        FREE_EVALUATION("config_digest"),
        FREE_HOOK("matcher"),
        FREE_HOOK("exception_type"),
        FREE_HOOK("fail_mode"),
        FREE_HOOK("reason"),
        PASSED ",\"payload\":{\"bytes\":1,\"keys\":[\"--password\",\"hunter2\"]}}",
        PASSED ",\"payload\":{\"bytes\":1,\"sha256\":\"password=hunter2\"}}",
        PASSED ",\"payload\":{\"bytes\":1,\"captured\":{\"token\":\"hunter2\"}}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (!reads(lines[i]) || strstr(buf_cstr(&record), "hunter2") ||
            !strstr(buf_cstr(&record), "redacted")) {
            fail_msg("%s\nbecame %s", lines[i], buf_cstr(&record));
        }
    }
}

static void counts_that_a_host_left_out_are_those_of_its_list(void **state)
{
#define RAN(decision, tier) \
    "{\"hook_name\":\"h\",\"decision\":\"" decision "\",\"tier\":\"" tier "\"}"
#define SKIPPED(why) "{\"hook_name\":\"h\",\"decision\":\"skipped\",\"skip_reason\":\"" why "\"}"
#define LIST                                                                   \
    ",\"hooks\":[" RAN("reject", "system") "," RAN("reject", "agent") "," RAN( \
        "pass", "agent") "," RAN("deny",                                       \
                                 "user-global") "," SKIPPED("matcher") "," SKIPPED("scope") "]"
    static const struct {
        const char *line;
        uint32_t configured, run, system, agent, user, rejections;
    } cases[] = {
        { PASSED "}", 0, 0, 0, 0, 0, 0 },
        { PASSED LIST "}", 5, 4, 1, 2, 1, 2 },
        { PASSED LIST ",\"hooks_unlisted\":3}", 8, 4, 1, 2, 1, 2 },
        { PASSED ",\"hooks\":[{\"hook_name\":\"h\",\"decision\":\"pass\"}]}", 1, 1, 0, 0, 1, 0 },
        { PASSED ",\"hooks_run\":9}", 9, 9, 0, 0, 0, 0 },
        { PASSED LIST ",\"hooks_run\":9}", 9, 9, 0, 0, 0, 2 },
        { PASSED LIST ",\"hooks_configured\":7}", 7, 4, 1, 2, 1, 2 },
        { PASSED LIST ",\"rejection_count\":3}", 5, 4, 1, 2, 1, 3 },
        { PASSED LIST ",\"hooks_configured\":12,\"hooks_run\":11,\"system_hooks_run\":10,"
                      "\"agent_hooks_run\":1,\"rejection_count\":8}",
          12, 11, 10, 1, 0, 8 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct evaluation e;

        assert_true(reads(cases[i].line));
        assert_true(decode_evaluation(buf_slice(&record), &arena, &e, &err));
        if (e.hooks_configured != cases[i].configured || e.hooks_run != cases[i].run ||
            e.system_hooks_run != cases[i].system || e.agent_hooks_run != cases[i].agent ||
            e.user_global_hooks_run != cases[i].user || e.rejection_count != cases[i].rejections) {
            fail_msg("%s\nbecame %s", cases[i].line, buf_cstr(&record));
        }
    }
}

static void a_line_that_is_no_record_of_a_host_is_refused_by_its_key(void **state)
{
#define TOOL \
    "{\"type\":\"tool_execution\",\"phase\":\"start\",\"thread_id\":\"t\",\"tool_name\":\"x\""
#define EVALUATION \
    "{\"type\":\"hook_evaluation\",\"contract\":\"sre\",\"thread_id\":\"t\",\"hook_event_type\":\"S\""
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        { "no json", "" },
        { "[]", "a record is an object" },
        { "{}", "type: " },
        { "{\"type\":7}", "type: " },
        { "{\"type\":\"admin\"}", "type: must be tool_execution or hook_evaluation" },
        { TOOL ",\"phase2\":1}", "phase2" },
        { TOOL ",\"hooks\":[]}", "hooks" },
        { TOOL ",\"source\":\"dispatcher\"}", "source: must be \"host\"" },
        { TOOL ",\"id\":\"7\"}", "id: " },
        { TOOL ",\"id\":\"\"}", "id: a UUID is expected" },
        { TOOL ",\"collector\":\"other\"}", "collector: must be \"box\"" },
        { EVALUATION ",\"collector\":\"other\",\"final_decision\":\"pass\"}",
          "collector: must be \"box\"" },
        { TOOL ",\"schema\":99}", "schema: " },
        { TOOL ",\"time\":\"today\"}", "time" },
        { TOOL ",\"tool_succeeded\":\"yes\"}", "tool_succeeded" },
        { "{\"type\":\"tool_execution\",\"thread_id\":\"t\",\"tool_name\":\"x\"}", "phase: " },
        { "{\"type\":\"tool_execution\",\"phase\":\"end\",\"tool_name\":\"x\"}", "thread_id: " },
        { "{\"type\":\"tool_execution\",\"phase\":\"end\",\"thread_id\":\"t\"}", "tool_name: " },
        { EVALUATION "}", "final_decision: " },
        { EVALUATION ",\"final_decision\":\"skipped\"}", "final_decision: " },
        { EVALUATION ",\"final_decision\":\"pass\",\"hooks\":{}}", "hooks: " },
        { EVALUATION ",\"final_decision\":\"pass\",\"hooks\":[{}]}", "hooks[0].hook_name: " },
        { EVALUATION ",\"final_decision\":\"pass\",\"hooks\":[{\"hook_name\":\"h\"}]}",
          "hooks[0].decision: " },
        { EVALUATION ",\"final_decision\":\"pass\",\"hooks_configured\":1,\"hooks_run\":2}",
          "hooks_configured: is less than hooks_run" },
        { EVALUATION ",\"final_decision\":\"pass\",\"hooks_configured\":1,\"hooks\":["
                     "{\"hook_name\":\"h\",\"decision\":\"pass\"},"
                     "{\"hook_name\":\"i\",\"decision\":\"pass\"}]}",
          "hooks_configured: is less than hooks_run" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(reads(cases[i].line));
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s: %s", cases[i].line, err.text);
        }
        assert_null(strchr(err.text, '\n'));
    }
}

static void a_record_over_the_limit_is_refused(void **state)
{
    enum { BYTES = RECORD_MAX_BYTES };
    char *line = malloc(2 * BYTES);

    (void)state;
    assert_non_null(line);
    (void)snprintf(line, 2 * BYTES, "%s,\"call_id\":\"%0*d\"}", TOOL, BYTES, 0);
    assert_false(reads(line));
    assert_int_equal(err.code, ERR_TOO_BIG);
    free(line);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        FRESH(what_is_absent_is_filled_in),
        FRESH(what_the_host_says_of_itself_stays),
        FRESH(the_first_moment_of_1970_is_a_time),
        FRESH(secrets_are_taken_out),
        FRESH(counts_that_a_host_left_out_are_those_of_its_list),
        FRESH(a_line_that_is_no_record_of_a_host_is_refused_by_its_key),
        FRESH(a_record_over_the_limit_is_refused),
    };

    return cmocka_run_group_tests_name("ingress/event_line", tests, NULL, NULL);
}
