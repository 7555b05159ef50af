#include "collector/record/decode.h"

#include <stdlib.h>
#include <string.h>

#include "collector/record/encode.h"
#include "tests/unit/record/sample_record.h"
#include "tests/unit/unit.h"

#define ID "018f0000-0000-7000-8000-000000000001"
#define HEAD(type, schema)                                            \
    "{\"type\":\"" type "\",\"schema\":" schema ",\"id\":\"" ID "\"," \
    "\"collector\":\"m1\",\"time\":\"2026-11-30T14:22:45.000001Z\""

struct fixture {
    struct arena arena;
    struct buf first;
    struct buf second;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    arena_init(&f->arena, 4 * 1024 * 1024);
    buf_init(&f->first, RECORD_MAX_BYTES);
    buf_init(&f->second, RECORD_MAX_BYTES);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    arena_clear(&f->arena);
    buf_done(&f->first);
    buf_done(&f->second);
    free(f);
    return 0;
}

/* ---- Random records --------------------------------------------------------- */

static uint32_t roll(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33) % n;
}

/* Nothing, or up to 40 pieces of what is hard to write and to read. */
static struct slice any_text(uint64_t *seed, struct arena *a)
{
    static const char *const pieces[] = {
        "a", "Bash|Write", "\"", "\\", "\n", "\x01", "\xc3\xa4", "\xf0\x9f\x98\x80", "{}[],:", " ",
    };
    struct buf b;
    struct slice s;

    buf_init(&b, 4096);
    for (uint32_t i = roll(seed, 3) == 0 ? 0 : roll(seed, 40); i > 0; i--) {
        buf_add(&b, slice_from_cstr(pieces[roll(seed, COUNT_OF(pieces))]));
    }
    assert_true(arena_dup(a, buf_slice(&b), &s));
    buf_done(&b);
    return s;
}

static struct slice any_json(uint64_t *seed)
{
    static const char *const texts[] = { "", "null", "1.50", "\"\\ud800\"", "{\"a\":[{}]}", "[]" };

    return slice_from_cstr(texts[roll(seed, COUNT_OF(texts))]);
}

static struct record_head any_head(uint64_t *seed, struct arena *a)
{
    return (struct record_head){ .id = SLICE(ID),
                                 .collector = any_text(seed, a),
                                 .time_us = 1 + (int64_t)roll(seed, 1U << 31) * 1000003 };
}

static struct cut_text any_reason(uint64_t *seed, struct arena *a)
{
    struct cut_text r = { .text = any_text(seed, a) };

    if (r.text.len > 0 && roll(seed, 3) == 0) {
        r.chars = 1000 + roll(seed, 1000);
    }
    return r;
}

static int64_t any_number(uint64_t *seed)
{
    static const int64_t numbers[] = { 0, 1, -1, 4711, INT64_MAX, INT64_MIN };

    return numbers[roll(seed, COUNT_OF(numbers))];
}

static struct execution any_execution(uint64_t *seed, struct arena *a, uint32_t ordinal)
{
    struct execution x = {
        .ordinal = ordinal,
        .hook_name = any_text(seed, a),
        .hook_type = 1 + roll(seed, HOOK_TYPE_COUNT - 1),
        .tier = roll(seed, TIER_COUNT),
        .decision = 1 + roll(seed, DECISION_COUNT - 1),
        .matcher = any_text(seed, a),
        .reason = any_reason(seed, a),
    };

    if (x.matcher.len > 0) {
        x.matcher_mode = 1 + roll(seed, MATCHER_MODE_COUNT - 1);
    }
    if (x.decision == DECISION_SKIPPED) {
        x.skip_reason = 1 + roll(seed, SKIP_REASON_COUNT - 1);
        return x;
    }
    x.blank_reason = roll(seed, 2);
    x.exception_type = any_text(seed, a);
    x.fail_mode = any_text(seed, a);
    x.cause = roll(seed, CAUSE_COUNT);
    x.intended = roll(seed, DECISION_COUNT);
    x.has_exit_code = roll(seed, 2);
    x.exit_code = x.has_exit_code ? (int32_t)roll(seed, 256) - 1 : 0;
    x.signal = (int32_t)roll(seed, 2) * 9;
    x.timed_out = roll(seed, 2);
    x.queue_us = any_number(seed);
    x.duration_us = any_number(seed);
    x.stdout_bytes = roll(seed, 1U << 30);
    x.stderr_tail = any_text(seed, a);
    x.left_behind = roll(seed, 3);
    return x;
}

static struct evaluation any_evaluation(uint64_t *seed, struct arena *a)
{
    struct evaluation e = {
        .head = any_head(seed, a),
        .dispatch_id = any_text(seed, a),
        .source = roll(seed, SOURCE_COUNT),
        .contract = any_text(seed, a),
        .chain = roll(seed, CHAIN_KIND_COUNT),
        .duration_us = any_number(seed),
        .queue_us = any_number(seed),
        .thread_id = any_text(seed, a),
        .run_id = any_text(seed, a),
        .call_id = any_text(seed, a),
        .user_id = any_text(seed, a),
        .agent_name = any_text(seed, a),
        .task_id = any_text(seed, a),
        .task_run_id = any_text(seed, a),
        .execution_kind = any_text(seed, a),
        .hook_event_type = any_text(seed, a),
        .tool_name = any_text(seed, a),
        .has_turn = roll(seed, 2),
        .child = roll(seed, 2),
        .blocking = roll(seed, 2),
        .final_decision = roll(seed, DECISION_COUNT),
        .reason = any_reason(seed, a),
        .allowing_hook = any_text(seed, a),
        .hooks_configured = roll(seed, 1U << 31),
        .hooks_run = roll(seed, 9),
        .system_hooks_run = roll(seed, 9),
        .agent_hooks_run = roll(seed, 9),
        .user_global_hooks_run = roll(seed, 9),
        .rejection_count = roll(seed, 9),
        .config_digest = any_text(seed, a),
        .n_hooks = roll(seed, 6),
    };

    e.turn = e.has_turn ? any_number(seed) : 0;
    if (roll(seed, 2)) {
        e.payload = (struct payload_facts){ .bytes = 1 + roll(seed, 1000),
                                            .sha256 = any_text(seed, a),
                                            .keys = roll(seed, 2) ? SLICE("[\"a\"]") : SLICE(""),
                                            .captured = any_json(seed),
                                            .erased = roll(seed, 3) };
    }
    e.hooks = arena_alloc(a, 6, sizeof(*e.hooks));
    for (uint32_t i = 0; i < e.n_hooks; i++) {
        e.hooks[i] = any_execution(seed, a, i);
    }
    return e;
}

/* ---- Equality ----------------------------------------------------------------- */

static bool same_reason(struct cut_text x, struct cut_text y)
{
    return slice_equal(x.text, y.text) && x.chars == y.chars;
}

static bool same_execution(const struct execution *x, const struct execution *y)
{
    return x->ordinal == y->ordinal && slice_equal(x->hook_name, y->hook_name) &&
           x->hook_type == y->hook_type && x->tier == y->tier && x->decision == y->decision &&
           x->skip_reason == y->skip_reason && slice_equal(x->matcher, y->matcher) &&
           x->matcher_mode == y->matcher_mode && same_reason(x->reason, y->reason) &&
           x->blank_reason == y->blank_reason &&
           slice_equal(x->exception_type, y->exception_type) &&
           slice_equal(x->fail_mode, y->fail_mode) && x->cause == y->cause &&
           x->intended == y->intended && x->has_exit_code == y->has_exit_code &&
           x->exit_code == y->exit_code && x->signal == y->signal && x->timed_out == y->timed_out &&
           x->queue_us == y->queue_us && x->duration_us == y->duration_us &&
           x->stdout_bytes == y->stdout_bytes && slice_equal(x->stderr_tail, y->stderr_tail) &&
           x->left_behind == y->left_behind;
}

static bool same_who(const struct evaluation *x, const struct evaluation *y)
{
    return slice_equal(x->head.id, y->head.id) &&
           slice_equal(x->head.collector, y->head.collector) &&
           x->head.time_us == y->head.time_us && slice_equal(x->dispatch_id, y->dispatch_id) &&
           x->source == y->source && slice_equal(x->contract, y->contract) &&
           x->chain == y->chain && slice_equal(x->thread_id, y->thread_id) &&
           slice_equal(x->run_id, y->run_id) && slice_equal(x->call_id, y->call_id) &&
           slice_equal(x->user_id, y->user_id) && slice_equal(x->agent_name, y->agent_name) &&
           slice_equal(x->task_id, y->task_id) && slice_equal(x->task_run_id, y->task_run_id) &&
           slice_equal(x->execution_kind, y->execution_kind) &&
           slice_equal(x->hook_event_type, y->hook_event_type) &&
           slice_equal(x->tool_name, y->tool_name);
}

static bool same_what(const struct evaluation *x, const struct evaluation *y)
{
    return x->duration_us == y->duration_us && x->queue_us == y->queue_us &&
           x->has_turn == y->has_turn && x->turn == y->turn && x->child == y->child &&
           x->blocking == y->blocking && x->final_decision == y->final_decision &&
           same_reason(x->reason, y->reason) && slice_equal(x->allowing_hook, y->allowing_hook) &&
           x->hooks_configured == y->hooks_configured && x->hooks_run == y->hooks_run &&
           x->system_hooks_run == y->system_hooks_run && x->agent_hooks_run == y->agent_hooks_run &&
           x->user_global_hooks_run == y->user_global_hooks_run &&
           x->rejection_count == y->rejection_count &&
           slice_equal(x->config_digest, y->config_digest) &&
           x->payload.bytes == y->payload.bytes &&
           slice_equal(x->payload.sha256, y->payload.sha256) &&
           slice_equal(x->payload.keys, y->payload.keys) &&
           slice_equal(x->payload.captured, y->payload.captured) &&
           x->payload.erased == y->payload.erased && x->n_hooks == y->n_hooks;
}

static void what_was_written_is_read_back_whole(void **state)
{
    struct fixture *f = *state;

    for (uint64_t n = 1; n <= 2000; n++) {
        uint64_t seed = n;
        struct evaluation written = any_evaluation(&seed, &f->arena);
        struct evaluation read;
        struct err err = { 0 };

        encode_evaluation(&written, &f->first);
        if (!decode_evaluation(buf_slice(&f->first), &f->arena, &read, &err)) {
            fail_msg("seed %llu: %s: %s", (unsigned long long)n, err.text, buf_cstr(&f->first));
        }
        if (!same_who(&written, &read) || !same_what(&written, &read)) {
            fail_msg("seed %llu: %s", (unsigned long long)n, buf_cstr(&f->first));
        }
        for (size_t i = 0; i < read.n_hooks; i++) {
            if (!same_execution(&written.hooks[i], &read.hooks[i])) {
                fail_msg("seed %llu, hook %zu: %s", (unsigned long long)n, i, buf_cstr(&f->first));
            }
        }
        encode_evaluation(&read, &f->second);
        assert_string_equal(buf_cstr(&f->first), buf_cstr(&f->second));
        buf_clear(&f->first);
        buf_clear(&f->second);
        arena_clear(&f->arena);
    }
}

static bool same_outline_of_hook(const struct execution *whole, const struct execution *outline)
{
    return whole->ordinal == outline->ordinal && whole->decision == outline->decision &&
           slice_equal(whole->json, outline->json);
}

static void an_outline_says_the_same_of_what_it_has(void **state)
{
    struct fixture *f = *state;

    for (uint64_t n = 1; n <= 500; n++) {
        uint64_t seed = n;
        struct evaluation written = any_evaluation(&seed, &f->arena);
        struct evaluation whole;
        struct evaluation outline;
        struct buf identity;
        struct err err;

        buf_init(&identity, RECORD_MAX_BYTES);
        encode_evaluation(&written, &f->first);
        assert_true(decode_evaluation(buf_slice(&f->first), &f->arena, &whole, &err));
        assert_true(decode_evaluation_outline(buf_slice(&f->first), &f->arena, &outline, &err));
        encode_identity(&whole, &f->second);
        encode_identity(&outline, &identity);
        assert_string_equal(buf_cstr(&identity), buf_cstr(&f->second));
        assert_int_equal(outline.n_hooks, whole.n_hooks);
        for (size_t i = 0; i < whole.n_hooks; i++) {
            assert_true(same_outline_of_hook(&whole.hooks[i], &outline.hooks[i]));
        }
        buf_done(&identity);
        buf_clear(&f->first);
        buf_clear(&f->second);
        arena_clear(&f->arena);
    }
}

static void what_is_no_part_of_an_outline_is_not_looked_at(void **state)
{
    struct fixture *f = *state;
    struct slice json =
        SLICE(HEAD("tool_execution", "1") ",\"phase\":\"later\",\"thread_id\":\"T\","
                                          "\"tool_input\":{\"thread_id\":\"U\"}}");
    struct tool_execution t;
    struct err err;

    assert_false(decode_tool_execution(json, &f->arena, &t, &err));
    assert_true(decode_tool_outline(json, &f->arena, &t, &err));
    assert_true(slice_equal(t.head.id, SLICE(ID)));
    assert_true(slice_equal(t.thread_id, SLICE("T")));
    assert_int_equal(t.tool_input.len, 0);
}

static void the_order_of_the_keys_does_not_matter(void **state)
{
    struct fixture *f = *state;
    struct slice json = SLICE(
        "{\"thread_id\" : \"T\",\"thread_id\":\"second\",\"time\":\"2026-11-30T14:22:45.000001Z\","
        " \"collector\":\"m1\",\"new\":{\"id\":\"inner\"},\"id\": \"" ID "\",\"schema\":1,"
        "\"type\":\"tool_execution\",\"call_id\":\"C\"}");
    struct tool_execution t;
    struct err err;

    assert_true(decode_tool_execution(json, &f->arena, &t, &err));
    assert_true(slice_equal(t.head.id, SLICE(ID)));
    assert_true(slice_equal(t.head.collector, SLICE("m1")));
    assert_true(slice_equal(t.thread_id, SLICE("T")));
    assert_true(slice_equal(t.call_id, SLICE("C")));
}

static void the_other_records_are_read_back_whole(void **state)
{
    struct fixture *f = *state;
    static const char lines[][400] = {
        HEAD("tool_execution",
             "1") ",\"dispatch_id\":\"D\",\"source\":\"host\","
                  "\"contract\":\"sre\",\"phase\":\"end\",\"thread_id\":\"T\",\"call_id\":\"C\","
                  "\"tool_name\":\"Bash\",\"sub_agent_name\":\"S\",\"tool_input\":{\"a\":[1.50]},"
                  "\"tool_output\":null,\"tool_succeeded\":false,\"skills_loaded\":\"x\","
                  "\"skill_source\":\"p\"}",
        HEAD("hook_registry", "1") ",\"contract\":\"sre\",\"config_digest\":\"abc\",\"part\":2,"
                                   "\"parts\":3,\"hooks\":[{\"name\":\"h\"}]}",
        HEAD("gap",
             "1") ",\"lost\":7,\"cause\":\"io\",\"first_time\":"
                  "\"2026-11-30T14:22:45.000001Z\",\"last_time\":\"2026-11-30T14:22:46.000000Z\"}",
        HEAD("gap", "1") ",\"cause\":\"unclean_boot\"}",
        HEAD("admin", "1") ",\"action\":\"reload\",\"actor\":\"uid 0\",\"details\":{\"a\":1}}",
    };
    struct tool_execution t;
    struct hook_registry r;
    struct gap g;
    struct admin a;
    struct err err;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct slice line = slice_from_cstr(lines[i]);

        if (decode_tool_execution(line, &f->arena, &t, &err)) {
            encode_tool_execution(&t, &f->first);
        } else if (decode_hook_registry(line, &f->arena, &r, &err)) {
            encode_hook_registry(&r, &f->first);
        } else if (decode_gap(line, &f->arena, &g, &err)) {
            encode_gap(&g, &f->first);
        } else if (decode_admin(line, &f->arena, &a, &err)) {
            encode_admin(&a, &f->first);
        }
        assert_string_equal(buf_cstr(&f->first), lines[i]);
        buf_clear(&f->first);
    }
}

static void the_head_of_any_record_is_read_alone(void **state)
{
    struct fixture *f = *state;
    struct slice json = SLICE(HEAD("checkpoint", "1") ",\"root\":\"abc\"}");
    enum record_type type;
    struct record_head head;
    struct err err;

    assert_true(decode_head(json, &f->arena, &type, &head, &err));
    assert_int_equal(type, RECORD_CHECKPOINT);
    assert_true(slice_equal(head.id, SLICE(ID)));
    assert_true(slice_equal(head.collector, SLICE("m1")));
    assert_int_equal(head.time_us, 1796048565000001);
}

static void a_text_without_escapes_lies_in_the_line(void **state)
{
    struct fixture *f = *state;
    struct slice json = SLICE(HEAD("hook_evaluation", "1") ",\"thread_id\":\"T\",\"hooks\":[]}");
    struct evaluation e;
    struct err err;

    assert_true(decode_evaluation(json, &f->arena, &e, &err));
    assert_in_range((uintptr_t)e.thread_id.ptr, (uintptr_t)json.ptr,
                    (uintptr_t)json.ptr + json.len);
}

static void keys_of_a_newer_writer_and_second_ones_are_passed_over(void **state)
{
    struct fixture *f = *state;
    struct slice json = SLICE(HEAD("hook_evaluation", "1") ",\"news\":{\"thread_id\":1},"
                                                           "\"hooks_run\":1,\"thread_id\":\"T\","
                                                           "\"thread_id\":\"U\",\"hooks\":["
                                                           "{\"ordinal\":3,\"news\":[]}]}");
    struct evaluation e;
    struct err err;

    assert_true(decode_evaluation(json, &f->arena, &e, &err));
    assert_true(slice_equal(e.thread_id, SLICE("T")));
    assert_int_equal(e.hooks_run, 1);
    assert_int_equal(e.hooks[0].ordinal, 3);
}

static void what_is_no_such_record_is_refused_by_its_key(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *json;
        const char *text;
    } cases[] = {
        { "{", "line 1, column 2" },
        { "[]", "a record is an object" },
        { "{\"schema\":1}", "type:" },
        { "{\"type\":\"hook_execution\",\"schema\":1}", "type:" },
        { "{\"type\":1,\"schema\":1}", "type:" },
        { HEAD("gap", "1") "}", "type: gap where hook_evaluation is expected" },
        { "{\"type\":\"hook_evaluation\"}", "schema: an integer" },
        { HEAD("hook_evaluation", "\"1\"") "}", "schema: an integer" },
        { HEAD("hook_evaluation", "2") "}", "schema: 2 is newer than this program reads (1)" },
        { HEAD("hook_evaluation", "0") "}", "schema: 0 is older" },
        { "{\"type\":\"hook_evaluation\",\"schema\":1}", "id: a UUID is expected" },
        { "{\"type\":\"hook_evaluation\",\"schema\":1,\"id\":\"x\"}", "id: a UUID" },
        { "{\"type\":\"hook_evaluation\",\"schema\":1,\"id\":\"" ID "\"}", "time: is missing" },
        { "{\"type\":\"hook_evaluation\",\"schema\":1,\"id\":\"" ID "\",\"time\":\"noon\"}",
          "time: an RFC 3339 time" },
        { HEAD("hook_evaluation", "1") "}", "hooks: a list" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":{}}", "hooks: a list" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[{},1]}", "hooks[1]: an object" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[{\"decision\":\"maybe\"}]}",
          "hooks[0]: decision: a word that this version does not know" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[{\"exit_code\":2147483648}]}",
          "hooks[0]: exit_code: a number that is out of range" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"payload\":1}", "payload: an object" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"payload\":{\"keys\":\"a\"}}",
          "payload: keys: a list" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"thread_id\":null}", "thread_id: a string" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"blocking\":1}", "blocking: true or false" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"hooks_run\":-1}", "hooks_run: a number" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"hooks_run\":4294967296}", "out of range" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"hooks_run\":1.5}", "an integer" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct evaluation e = { .turn = 4711 };
        struct err err = { 0 };

        assert_false(decode_evaluation(slice_from_cstr(cases[i].json), &f->arena, &e, &err));
        if (!strstr(err.text, cases[i].text)) {
            fail_msg("%s: %s", cases[i].json, err.text);
        }
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(e.turn, 4711);
    }
}

static void a_record_that_does_not_fit_into_the_arena_is_too_big(void **state)
{
    (void)state;
    struct evaluation e = sample_evaluation();
    struct buf json;
    struct arena small;
    struct err err = { 0 };

    buf_init(&json, RECORD_MAX_BYTES);
    arena_init(&small, 100);
    encode_evaluation(&e, &json);
    assert_false(decode_evaluation(buf_slice(&json), &small, &e, &err));
    assert_int_equal(err.code, ERR_TOO_BIG);
    buf_done(&json);
    arena_clear(&small);
}

/* Bytes that hold a NUL come from URLs and from hooks, and are longer than any word. */
static void a_word_is_all_of_it(void **state)
{
    (void)state;
    static const char behind[64] = "deny";

    assert_int_equal(decision_from(SLICE("deny")), DECISION_DENY);
    assert_int_equal(decision_from(SLICE("den")), DECISION_NONE);
    assert_int_equal(decision_from(SLICE("denyx")), DECISION_NONE);
    assert_int_equal(decision_from(SLICE("")), DECISION_NONE);
    for (size_t len = 5; len < sizeof(behind); len++) {
        assert_int_equal(decision_from((struct slice){ .ptr = behind, .len = len }), DECISION_NONE);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read_back_whole),
        TEST(an_outline_says_the_same_of_what_it_has),
        TEST(what_is_no_part_of_an_outline_is_not_looked_at),
        TEST(the_order_of_the_keys_does_not_matter),
        TEST(the_other_records_are_read_back_whole),
        TEST(the_head_of_any_record_is_read_alone),
        TEST(a_text_without_escapes_lies_in_the_line),
        TEST(keys_of_a_newer_writer_and_second_ones_are_passed_over),
        TEST(what_is_no_such_record_is_refused_by_its_key),
        TEST(a_record_that_does_not_fit_into_the_arena_is_too_big),
        TEST(a_word_is_all_of_it),
    };

    return cmocka_run_group_tests_name("record/decode", tests, NULL, NULL);
}
