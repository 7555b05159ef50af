#include "collector/record/encode.h"

#include <string.h>

#include "collector/base/arena.h"
#include "collector/record/decode.h"
#include "tests/unit/record/sample_record.h"
#include "tests/unit/unit.h"

#define ID "018f0000-0000-7000-8000-000000000001"
#define HEAD(type)                                                                \
    "{\"type\":\"" type "\",\"schema\":1,\"id\":\"" ID "\",\"collector\":\"m1\"," \
    "\"time\":\"2026-11-30T14:22:45.000001Z\","

static struct record_head head(void)
{
    return (struct record_head){ .id = SLICE(ID),
                                 .collector = SLICE("m1"),
                                 .time_us = 1796048565000001 };
}

static struct buf new_buf(void)
{
    struct buf b;

    buf_init(&b, RECORD_MAX_BYTES);
    return b;
}

static void an_evaluation_has_the_keys_of_its_schema_in_order(void **state)
{
    (void)state;
    struct execution hooks[2] = {
        { .hook_name = SLICE("deny"),
          .hook_type = HOOK_COMMAND,
          .tier = TIER_SYSTEM,
          .decision = DECISION_DENY,
          .matcher = SLICE("Bash|.*"),
          .matcher_mode = MATCHER_REGEX,
          .reason = { .text = SLICE("no \"rm\"") },
          .blank_reason = true,
          .exception_type = SLICE("Timeout"),
          .fail_mode = SLICE("block"),
          .cause = CAUSE_EXIT_CODE,
          .intended = DECISION_DENY,
          .has_exit_code = true,
          .exit_code = -2,
          .signal = 9,
          .timed_out = true,
          .queue_us = 1,
          .duration_us = 2,
          .stdout_bytes = 3,
          .stderr_tail = SLICE("tail\n"),
          .left_behind = 4 },
        { .ordinal = 1,
          .hook_name = SLICE("ask"),
          .hook_type = HOOK_HTTP,
          .tier = TIER_USER_GLOBAL,
          .decision = DECISION_SKIPPED,
          .skip_reason = SKIP_SHORT_CIRCUIT,
          .matcher = SLICE("*"),
          .matcher_mode = MATCHER_ANY },
    };
    struct evaluation e = {
        .head = head(),
        .dispatch_id = SLICE("D"),
        .source = SOURCE_DISPATCHER,
        .contract = SLICE("sre"),
        .chain = CHAIN_ALL,
        .duration_us = 10,
        .queue_us = 11,
        .thread_id = SLICE("T"),
        .run_id = SLICE("R"),
        .call_id = SLICE("C"),
        .user_id = SLICE("U"),
        .agent_name = SLICE("A"),
        .task_id = SLICE("K"),
        .task_run_id = SLICE("KR"),
        .execution_kind = SLICE("web_chat"),
        .hook_event_type = SLICE("PreToolUse"),
        .tool_name = SLICE("Bash"),
        .has_turn = true,
        .turn = 12,
        .child = true,
        .blocking = true,
        .final_decision = DECISION_DENY,
        .reason = { .text = SLICE("no") },
        .allowing_hook = SLICE("H"),
        .hooks_configured = 13,
        .hooks_run = 14,
        .system_hooks_run = 15,
        .agent_hooks_run = 16,
        .user_global_hooks_run = 17,
        .rejection_count = 18,
        .config_digest = SLICE("abc"),
        .payload = { .bytes = 19,
                     .sha256 = SLICE("def"),
                     .keys = SLICE("[\"a\"]"),
                     .captured = SLICE("{\"a\":1.50}"),
                     .erased = 2 },
        .hooks = hooks,
        .n_hooks = 2,
    };
    struct buf out = new_buf();

    encode_evaluation(&e, &out);
    assert_string_equal(
        buf_cstr(&out),
        HEAD(
            "hook_evaluation") "\"dispatch_id\":\"D\",\"source\":\"dispatcher\",\"contract\":\"sre\",\"chain\":\"all\","
                               "\"duration_us\":10,\"queue_us\":11,\"thread_id\":\"T\",\"run_id\":\"R\",\"call_id\":\"C\","
                               "\"user_id\":\"U\",\"agent_name\":\"A\",\"task_id\":\"K\",\"task_run_id\":\"KR\","
                               "\"execution_kind\":\"web_chat\",\"hook_event_type\":\"PreToolUse\","
                               "\"tool_name\":\"Bash\",\"turn\":12,\"child\":true,\"blocking\":true,"
                               "\"final_decision\":\"deny\",\"reason\":\"no\",\"allowing_hook\":\"H\","
                               "\"hooks_configured\":13,\"hooks_run\":14,\"system_hooks_run\":15,\"agent_hooks_run\":16,"
                               "\"user_global_hooks_run\":17,\"rejection_count\":18,\"config_digest\":\"abc\","
                               "\"payload\":{\"bytes\":19,\"sha256\":\"def\",\"keys\":[\"a\"],\"captured\":{\"a\":1.50},"
                               "\"erased\":2},"
                               "\"hooks\":[{\"ordinal\":0,\"hook_name\":\"deny\",\"hook_type\":\"command\","
                               "\"tier\":\"system\",\"decision\":\"deny\",\"matcher\":\"Bash|.*\","
                               "\"matcher_mode\":\"regex\",\"reason\":\"no \\\"rm\\\"\",\"blank_reason\":true,"
                               "\"exception_type\":\"Timeout\",\"fail_mode\":\"block\",\"cause\":\"exit_code\","
                               "\"intended\":\"deny\",\"exit_code\":-2,\"signal\":9,\"timed_out\":true,\"queue_us\":1,"
                               "\"duration_us\":2,\"stdout_bytes\":3,\"stderr_tail\":\"tail\\n\",\"left_behind\":4},"
                               "{\"ordinal\":1,\"hook_name\":\"ask\",\"hook_type\":\"http\",\"tier\":\"user-global\","
                               "\"decision\":\"skipped\",\"skip_reason\":\"short_circuit\",\"matcher\":\"*\","
                               "\"matcher_mode\":\"any\"}]}");
    buf_done(&out);
}

static void what_is_not_applicable_is_left_out(void **state)
{
    (void)state;
    struct execution hook = { .hook_name = SLICE("h"), .decision = DECISION_PASS };
    struct evaluation e = { .head = head(), .hooks = &hook, .n_hooks = 1 };
    struct buf out = new_buf();

    encode_evaluation(&e, &out);
    assert_string_equal(
        buf_cstr(&out),
        HEAD(
            "hook_evaluation") "\"duration_us\":0,\"queue_us\":0,\"child\":false,\"blocking\":false,"
                               "\"hooks_configured\":0,\"hooks_run\":0,\"system_hooks_run\":0,"
                               "\"agent_hooks_run\":0,\"user_global_hooks_run\":0,\"rejection_count\":0,"
                               "\"hooks\":[{\"ordinal\":0,\"hook_name\":\"h\",\"decision\":\"pass\","
                               "\"queue_us\":0,\"duration_us\":0,\"stdout_bytes\":0}]}");
    buf_done(&out);
}

static void the_row_of_a_hook_carries_the_evaluation_s_identity(void **state)
{
    (void)state;
    struct execution hooks[2] = { { .ordinal = 0, .decision = DECISION_SKIPPED },
                                  { .ordinal = 1,
                                    .hook_name = SLICE("h"),
                                    .hook_type = HOOK_COMMAND,
                                    .decision = DECISION_ALLOW,
                                    .duration_us = 5 } };
    struct evaluation e = { .head = head(),
                            .dispatch_id = SLICE("D"),
                            .source = SOURCE_DISPATCHER,
                            .contract = SLICE("sre"),
                            .chain = CHAIN_COMMAND,
                            .thread_id = SLICE("T"),
                            .hook_event_type = SLICE("Stop"),
                            .final_decision = DECISION_DENY,
                            .reason = { .text = SLICE("not of this hook") },
                            .config_digest = SLICE("abc"),
                            .hooks = hooks,
                            .n_hooks = 2 };
    struct buf out = new_buf();
    struct buf identity = new_buf();

    encode_identity(&e, &identity);
    encode_hook_execution(&e, 1, buf_slice(&identity), &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"type\":\"hook_execution\",\"schema\":1,\"id\":\"" ID ".1\",\"collector\":\"m1\","
        "\"time\":\"2026-11-30T14:22:45.000001Z\",\"evaluation_id\":\"" ID "\","
        "\"dispatch_id\":\"D\",\"source\":\"dispatcher\",\"contract\":\"sre\","
        "\"chain\":\"command\",\"thread_id\":\"T\",\"hook_event_type\":\"Stop\",\"child\":false,"
        "\"blocking\":false,\"config_digest\":\"abc\",\"ordinal\":1,\"hook_name\":\"h\","
        "\"hook_type\":\"command\",\"decision\":\"allow\",\"queue_us\":0,\"duration_us\":5,"
        "\"stdout_bytes\":0}");
    buf_done(&identity);
    buf_done(&out);
}

static void the_row_of_a_decoded_hook_is_the_same_and_keeps_what_a_newer_writer_added(void **state)
{
    (void)state;
    CLEANUP(arena_clear) struct arena a;
    struct execution hooks[] = { { .hook_name = SLICE("h\n"), .decision = DECISION_DENY } };
    struct evaluation e = { .head = head(), .hooks = hooks, .n_hooks = 1 };
    struct evaluation decoded;
    struct buf record = new_buf();
    struct buf direct = new_buf();
    struct buf spliced = new_buf();
    struct err err;

    arena_init(&a, 1 << 20);
    encode_evaluation(&e, &record);
    encode_hook_execution(&e, 0, (struct slice){ 0 }, &direct);
    assert_true(decode_evaluation(buf_slice(&record), &a, &decoded, &err));
    encode_hook_execution(&decoded, 0, (struct slice){ 0 }, &spliced);
    assert_string_equal(buf_cstr(&spliced), buf_cstr(&direct));

    decoded.hooks[0].json = SLICE("{\"ordinal\":0,\"newer\":{}}");
    buf_clear(&spliced);
    encode_hook_execution(&decoded, 0, (struct slice){ 0 }, &spliced);
    assert_non_null(strstr(buf_cstr(&spliced), ".0\",\"ordinal\":0,\"newer\":{}}"));
    buf_done(&record);
    buf_done(&direct);
    buf_done(&spliced);
}

static void the_other_records_have_the_keys_of_their_schemas(void **state)
{
    (void)state;
    struct tool_execution t = { .head = head(),
                                .dispatch_id = SLICE("D"),
                                .source = SOURCE_HOST,
                                .contract = SLICE("sre"),
                                .phase = PHASE_END,
                                .thread_id = SLICE("T"),
                                .call_id = SLICE("C"),
                                .tool_name = SLICE("Bash"),
                                .sub_agent_name = SLICE("S"),
                                .tool_input = SLICE("{\"a\":[]}"),
                                .tool_output = SLICE("\"out\""),
                                .has_succeeded = true,
                                .skills_loaded = SLICE("x,y"),
                                .skill_source = SLICE("p,q") };
    struct hook_registry r = { .head = head(),
                               .contract = SLICE("sre"),
                               .config_digest = SLICE("abc"),
                               .parts = 1,
                               .hooks = SLICE("[{\"name\":\"h\"}]") };
    struct gap known = { .head = head(),
                         .known = true,
                         .lost = 0,
                         .cause = SLICE("io"),
                         .first_us = 1,
                         .last_us = 2000000 };
    struct gap unknown = { .head = head(), .cause = SLICE("unclean_boot") };
    struct admin a = { .head = head(),
                       .action = SLICE("token_create"),
                       .actor = SLICE("uid 0"),
                       .details = SLICE("{\"name\":\"ci\"}") };
    struct buf out = new_buf();

    encode_tool_execution(&t, &out);
    buf_add_char(&out, '\n');
    encode_hook_registry(&r, &out);
    buf_add_char(&out, '\n');
    encode_gap(&known, &out);
    buf_add_char(&out, '\n');
    encode_gap(&unknown, &out);
    buf_add_char(&out, '\n');
    encode_admin(&a, &out);
    assert_string_equal(
        buf_cstr(&out),
        HEAD(
            "tool_execution") "\"dispatch_id\":\"D\",\"source\":\"host\",\"contract\":\"sre\",\"phase\":\"end\","
                              "\"thread_id\":\"T\",\"call_id\":\"C\",\"tool_name\":\"Bash\",\"sub_agent_name\":\"S\","
                              "\"tool_input\":{\"a\":[]},\"tool_output\":\"out\",\"tool_succeeded\":false,"
                              "\"skills_loaded\":\"x,y\",\"skill_source\":\"p,q\"}\n" HEAD(
                                  "hook_registry") "\"contract\":\"sre\",\"config_digest\":\"abc\",\"part\":0,\"parts\":1,"
                                                   "\"hooks\":[{\"name\":\"h\"}]}\n" HEAD(
                                                       "gap") "\"lost\":0,\"cause\":\"io\",\"first_time\":\"1970-01-01T00:00:00.000001Z\","
                                                              "\"last_time\":\"1970-01-01T00:00:02.000000Z\"}\n" HEAD(
                                                                  "gap") "\"cause\":\"unclean_boot\"}\n" HEAD("admin") "\"action\":\"token_create\",\"actor\":\"uid 0\",\"details\":{\"name\":\"ci\"}}");
    buf_done(&out);
}

/* A reason of n characters, each of them `unit`. */
static struct slice repeated(struct arena *a, const char *unit, size_t n)
{
    size_t len = strlen(unit);
    char *text = arena_alloc(a, n, len);

    for (size_t i = 0; i < n; i++) {
        memcpy(text + i * len, unit, len);
    }
    return (struct slice){ .ptr = text, .len = n * len };
}

static void a_reason_is_cut_by_characters_and_says_so(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        size_t n;
        uint64_t chars; /* told by whoever cut it before */
        size_t kept;
        const char *told; /* behind the reason */
    } cases[] = {
        { "r", 256, 0, 256, ",\"hooks_configured\"" },
        { "r", 257, 0, 256, "\xe2\x80\xa6\",\"reason_truncated\":true,\"reason_chars\":257," },
        { "\xc3\xa4", 256, 0, 256, ",\"hooks_configured\"" },
        { "\xf0\x9f\x98\x80", 300, 0, 256,
          "\xe2\x80\xa6\",\"reason_truncated\":true,\"reason_chars\":300," },
        { "\"", 300, 0, 256, "\xe2\x80\xa6\",\"reason_truncated\":true,\"reason_chars\":300," },
        { "r", 100, 900, 100, ",\"reason_truncated\":true,\"reason_chars\":900," },
        { "r", 257, 900, 257, ",\"reason_truncated\":true,\"reason_chars\":900," },
        { "r", 258, 900, 256, "\xe2\x80\xa6\",\"reason_truncated\":true,\"reason_chars\":900," },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf out = new_buf();
        struct buf want = new_buf();
        struct arena a;

        arena_init(&a, 64 * 1024);

        struct evaluation e = { .head = head(),
                                .reason = { .text = repeated(&a, cases[i].unit, cases[i].n),
                                            .chars = cases[i].chars } };

        buf_add_json_string(&want, repeated(&a, cases[i].unit, cases[i].kept));
        if (cases[i].told[0] != ',') {
            want.len_bytes--;
        }
        buf_add(&want, slice_from_cstr(cases[i].told));
        encode_evaluation(&e, &out);
        if (!strstr(buf_cstr(&out), buf_cstr(&want))) {
            fail_msg("%zu: %s", i, buf_cstr(&out));
        }
        buf_done(&out);
        buf_done(&want);
        arena_clear(&a);
    }
}

static void forty_skipped_hooks_cost_less_than_6_kib(void **state)
{
    (void)state;
    static const enum skip_reason reasons[] = { SKIP_SCOPE, SKIP_MATCHER, SKIP_SHORT_CIRCUIT };

    for (size_t k = 0; k < COUNT_OF(reasons); k++) {
        struct execution hooks[40];
        struct evaluation e = sample_evaluation();
        struct buf out = new_buf();

        for (uint32_t i = 0; i < COUNT_OF(hooks); i++) {
            hooks[i] = (struct execution){ .ordinal = i,
                                           .hook_name = SLICE("guard-file-write"),
                                           .hook_type = HOOK_COMMAND,
                                           .tier = TIER_USER_GLOBAL,
                                           .decision = DECISION_SKIPPED,
                                           .skip_reason = reasons[k],
                                           .matcher = SLICE("Write"),
                                           .matcher_mode = MATCHER_REGEX,
                                           .fail_mode = SLICE("allow") };
        }
        e.n_hooks = 0;
        encode_evaluation(&e, &out);

        size_t without = out.len_bytes;

        buf_clear(&out);
        e.hooks = hooks;
        e.n_hooks = COUNT_OF(hooks);
        encode_evaluation(&e, &out);
        assert_in_range(out.len_bytes - without, 4000, 6 * 1024 - 1);
        buf_done(&out);
    }
}

static void a_record_over_the_limit_is_told(void **state)
{
    (void)state;
    struct arena a;
    struct buf out = new_buf();

    arena_init(&a, 1024 * 1024);

    struct tool_execution t = { .head = head(), .tool_name = repeated(&a, "x", RECORD_MAX_BYTES) };

    encode_tool_execution(&t, &out);
    assert_false(buf_ok(&out));
    assert_true(out.len_bytes <= RECORD_MAX_BYTES);
    buf_done(&out);
    arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_evaluation_has_the_keys_of_its_schema_in_order),
        cmocka_unit_test(what_is_not_applicable_is_left_out),
        cmocka_unit_test(the_row_of_a_hook_carries_the_evaluation_s_identity),
        cmocka_unit_test(the_row_of_a_decoded_hook_is_the_same_and_keeps_what_a_newer_writer_added),
        cmocka_unit_test(the_other_records_have_the_keys_of_their_schemas),
        cmocka_unit_test(a_reason_is_cut_by_characters_and_says_so),
        cmocka_unit_test(forty_skipped_hooks_cost_less_than_6_kib),
        cmocka_unit_test(a_record_over_the_limit_is_told),
    };

    return cmocka_run_group_tests_name("record/encode", tests, NULL, NULL);
}
