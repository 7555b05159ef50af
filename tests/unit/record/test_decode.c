#include "collector/record/decode.h"

#include <stdlib.h>
#include <string.h>

#include "collector/record/encode.h"
#include "collector/record/payload.h"
#include "tests/unit/record/any_record.h"
#include "tests/unit/record/sample_record.h"
#include "tests/unit/unit.h"

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

/* One of every type that has a reader; of a checkpoint only the head is read. */
static const struct {
    enum record_type type;
    const char *line;
} records[] = {
    { RECORD_HOOK_EVALUATION,
      HEAD("hook_evaluation", "1") ",\"duration_us\":1,\"queue_us\":0,\"turn\":-3,\"child\":false,"
                                   "\"blocking\":true,\"reason\":\"\\u0001\xc3\xa4\","
                                   "\"hooks_configured\":1,\"hooks_run\":1,\"system_hooks_run\":0,"
                                   "\"agent_hooks_run\":1,\"user_global_hooks_run\":0,"
                                   "\"rejection_count\":0,\"payload\":{\"bytes\":2,\"keys\":[]},"
                                   "\"hooks\":[{\"ordinal\":0,\"decision\":\"pass\","
                                   "\"timed_out\":true,\"queue_us\":0,\"duration_us\":0,"
                                   "\"stdout_bytes\":0},{\"ordinal\":1,\"decision\":\"skipped\","
                                   "\"skip_reason\":\"scope\"}]}" },
    { RECORD_TOOL_EXECUTION,
      HEAD("tool_execution",
           "1") ",\"dispatch_id\":\"D\",\"source\":\"host\","
                "\"contract\":\"sre\",\"phase\":\"end\",\"thread_id\":\"T\",\"call_id\":\"C\","
                "\"tool_name\":\"Bash\",\"sub_agent_name\":\"S\",\"tool_input\":{\"a\":[1.50]},"
                "\"tool_output\":null,\"tool_succeeded\":false,\"skills_loaded\":\"x\","
                "\"skill_source\":\"p\"}" },
    { RECORD_HOOK_REGISTRY,
      HEAD("hook_registry", "1") ",\"contract\":\"sre\",\"config_digest\":\"abc\",\"part\":2,"
                                 "\"parts\":3,\"hooks\":[{\"name\":\"h\"}]}" },
    { RECORD_GAP, HEAD("gap", "1") ",\"lost\":7,\"cause\":\"io\",\"first_time\":"
                                   "\"2026-11-30T14:22:45.000001Z\",\"last_time\":"
                                   "\"2026-11-30T14:22:46.000000Z\"}" },
    { RECORD_GAP, HEAD("gap", "1") ",\"cause\":\"unclean_boot\"}" },
    { RECORD_ADMIN,
      HEAD("admin", "1") ",\"action\":\"reload\",\"actor\":\"uid 0\",\"details\":{\"a\":1}}" },
};

static void a_record_of_every_type_is_read_back_whole(void **state)
{
    struct fixture *f = *state;
    struct err err;

    for (size_t i = 0; i < COUNT_OF(records); i++) {
        struct slice line = slice_from_cstr(records[i].line);

        for (enum record_type type = RECORD_HOOK_EVALUATION; type < RECORD_TYPE_COUNT; type++) {
            if (type != RECORD_CHECKPOINT) {
                assert_int_equal(recode(type, line, &f->arena, &f->first, &err),
                                 type == records[i].type);
            }
        }
        assert_string_equal(buf_cstr(&f->first), records[i].line);
        buf_clear(&f->first);
    }
}

static void nothing_but_blanks_may_stand_behind_a_record(void **state)
{
    struct fixture *f = *state;
    static const char *const behind[] = { "x", " {}", "\n}", ",", " \n\"\"" };
    struct err err;

    for (size_t i = 0; i < COUNT_OF(records) * COUNT_OF(behind); i++) {
        enum record_type type = records[i / COUNT_OF(behind)].type;
        const char *line = records[i / COUNT_OF(behind)].line;

        buf_clear(&f->first);
        buf_addf(&f->first, " %s \n", line);
        assert_true(recode(type, buf_slice(&f->first), &f->arena, &f->second, &err));
        buf_add(&f->first, slice_from_cstr(behind[i % COUNT_OF(behind)]));
        assert_false(recode(type, buf_slice(&f->first), &f->arena, &f->second, &err));
        assert_non_null(strstr(err.text, "something stands behind the value"));
        assert_false(recode(RECORD_NONE, buf_slice(&f->first), &f->arena, &f->second, &err));
    }
}

/* As recode(), of a copy with nothing behind it; what is read is JSON, and an error has a text. */
static bool is_read(struct fixture *f, enum record_type type, const char *text, size_t len)
{
    char *copy = exact_copy(text, len);
    struct slice json = { .ptr = copy, .len = len };
    struct err err = { 0 };
    struct err why = { 0 };
    struct json_value v;
    bool ok = recode(type, json, &f->arena, &f->second, &err);

    assert_true(ok ? payload_check(json, &v, &why)
                   : err.code == ERR_INVALID && err.text[0] != '\0');
    buf_clear(&f->second);
    arena_reset(&f->arena);
    free(copy);
    return ok;
}

static void no_record_that_was_cut_is_read(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(records); i++) {
        for (size_t n = 0; n < strlen(records[i].line); n++) {
            assert_false(is_read(f, records[i].type, records[i].line, n));
            assert_false(is_read(f, RECORD_NONE, records[i].line, n));
        }
    }
}

/* One byte is another one, is gone, or stands there twice. */
static void a_record_with_a_wrong_byte_is_read_or_refused(void **state)
{
    struct fixture *f = *state;
    static const char bytes[] = "{}[]:,\"\\0-e.n tu\x01\xff\xc3"; /* the NUL, too */
    size_t read = 0;

    for (size_t i = 0; i < COUNT_OF(records); i++) {
        struct slice line = slice_from_cstr(records[i].line);
        char wrong[1024];

        for (size_t at = 0; at < line.len; at++) {
            memcpy(wrong, line.ptr, line.len);
            for (size_t k = 0; k < sizeof(bytes); k++) {
                wrong[at] = bytes[k];
                read += is_read(f, records[i].type, wrong, line.len);
                read += is_read(f, RECORD_NONE, wrong, line.len);
            }
            memcpy(wrong + at, line.ptr + at + 1, line.len - at - 1);
            read += is_read(f, records[i].type, wrong, line.len - 1);
            memcpy(wrong + at + 1, line.ptr + at, line.len - at);
            wrong[at] = line.ptr[at];
            read += is_read(f, records[i].type, wrong, line.len + 1);
        }
    }
    assert_true(read > 1000);
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
        { "{\"schema\":1,\"type\":\"gap\"}", "type: gap where hook_evaluation is expected" },
        { "{\"type\":\"gap\",\"schema\":2}", "type: gap where hook_evaluation is expected" },
        { "{\"schema\":2,\"type\":\"gap\"}", "schema: 2 is newer" },
        { "{\"type\":\"gap\",\"schema\":", "type: gap where hook_evaluation is expected" },
        { "{\"new\":1.,\"type\":\"gap\"}", "line 1, column 10: a digit is missing" },
        { "{\"schema\":1,\"id\":\"" ID "\",\"hooks\":[]}", "type: is missing" },
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
        { HEAD("hook_evaluation", "1") "\n,\"hooks\":[{},{\"new\":tru}]}",
          "line 2, column 21: neither null, true nor false" },
        { HEAD("hook_evaluation", "1") "\n,\"payload\":{\"bytes\":1",
          "line 2, column 22: the text" },
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
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"hooks_run\":4294967296}",
          "hooks_run: a number that is out of range" },
        { HEAD("hook_evaluation", "1") ",\"hooks\":[],\"hooks_run\":1.5}",
          "hooks_run: an integer" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct evaluation e = { .turn = 4711 };
        struct err err = { 0 };

        assert_false(decode_evaluation(slice_from_cstr(cases[i].json), &f->arena, &e, &err));
        if (strncmp(err.text, cases[i].text, strlen(cases[i].text)) != 0) {
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
        TEST(the_order_of_the_keys_does_not_matter),
        TEST(a_record_of_every_type_is_read_back_whole),
        TEST(nothing_but_blanks_may_stand_behind_a_record),
        TEST(no_record_that_was_cut_is_read),
        TEST(a_record_with_a_wrong_byte_is_read_or_refused),
        TEST(the_head_of_any_record_is_read_alone),
        TEST(a_text_without_escapes_lies_in_the_line),
        TEST(keys_of_a_newer_writer_and_second_ones_are_passed_over),
        TEST(what_is_no_such_record_is_refused_by_its_key),
        TEST(a_record_that_does_not_fit_into_the_arena_is_too_big),
        TEST(a_word_is_all_of_it),
    };

    return cmocka_run_group_tests_name("record/decode", tests, NULL, NULL);
}
