#include "collector/record/outline.h"

#include <string.h>

#include "collector/base/clock.h"
#include "collector/record/payload.h"
#include "tests/unit/record/any_record.h"
#include "tests/unit/record/sample_record.h"
#include "tests/unit/unit.h"

struct fixture {
    struct arena arena;
    struct buf json;
    struct buf other; /* the same in another spelling */
    struct buf identity;
    struct buf expected;
    struct buf row;
    struct buf expected_row;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    arena_init(&f->arena, 4 * 1024 * 1024);
    buf_init(&f->json, RECORD_MAX_BYTES);
    buf_init(&f->other, RECORD_MAX_BYTES);
    buf_init(&f->identity, RECORD_MAX_BYTES);
    buf_init(&f->expected, RECORD_MAX_BYTES);
    buf_init(&f->row, RECORD_MAX_BYTES);
    buf_init(&f->expected_row, RECORD_MAX_BYTES);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    arena_clear(&f->arena);
    buf_done(&f->json);
    buf_done(&f->other);
    buf_done(&f->identity);
    buf_done(&f->expected);
    buf_done(&f->row);
    buf_done(&f->expected_row);
    free(f);
    return 0;
}

/* ---- Against the whole decode --------------------------------------------------------------- */

static size_t n_members(struct json_value object)
{
    struct payload_iter it = payload_iter(object);
    struct json_value v;
    size_t n = 0;

    while (payload_next(&it, NULL, &v)) {
        n++;
    }
    return n;
}

/* Two objects have the same members, in any order. */
static bool same_members(struct slice x, struct slice y)
{
    struct json_value a;
    struct json_value b;
    struct json_value v;
    struct slice key;
    struct err err;

    if (!payload_check(x, &a, &err) || !payload_check(y, &b, &err) ||
        n_members(a) != n_members(b)) {
        return false;
    }
    for (struct payload_iter it = payload_iter(a); payload_next(&it, &key, &v);) {
        struct slice name = { .ptr = key.ptr + 1, .len = key.len - 2 };

        if (!slice_equal(payload_get(b, name).raw, v.raw)) {
            return false;
        }
    }
    return true;
}

/* The identity, which begins with a comma, as an object. */
static struct slice object_of(const struct buf *identity, struct arena *a)
{
    CLEANUP(buf_done) struct buf b;
    struct slice object;

    buf_init(&b, RECORD_MAX_BYTES);
    buf_add(&b, buf_slice(identity));
    assert_true(b.len_bytes > 0 && b.ptr[0] == ',');
    b.ptr[0] = '{';
    buf_add_char(&b, '}');
    assert_true(arena_dup(a, buf_slice(&b), &object));
    return object;
}

static bool same_texts(const struct outline *o, const struct evaluation *e)
{
    int64_t time_us;

    return slice_equal(o->type, SLICE("hook_evaluation")) && slice_equal(o->id, e->head.id) &&
           slice_equal(o->collector, e->head.collector) && clock_parse(o->time, &time_us) &&
           time_us == e->head.time_us && slice_equal(o->thread_id, e->thread_id) &&
           slice_equal(o->task_run_id, e->task_run_id) && slice_equal(o->user_id, e->user_id);
}

/* The i-th hook that ran is x, and gives the row that e->hooks[k] gives. */
static bool same_hook(struct fixture *f, const struct outline *o, size_t i,
                      const struct evaluation *e, size_t k, bool byte_by_byte)
{
    const struct outline_hook *hook = &o->ran[i];

    buf_clear(&f->row);
    buf_clear(&f->expected_row);
    encode_execution_row(o->id, hook->ordinal, buf_slice(&f->identity), hook->json, &f->row);
    encode_hook_execution(e, k, buf_slice(&f->expected), &f->expected_row);
    return hook->ordinal == e->hooks[k].ordinal && slice_equal(hook->json, e->hooks[k].json) &&
           (byte_by_byte ? slice_equal(buf_slice(&f->row), buf_slice(&f->expected_row))
                         : same_members(buf_slice(&f->row), buf_slice(&f->expected_row)));
}

static bool same_hooks(struct fixture *f, const struct outline *o, const struct evaluation *e,
                       bool byte_by_byte)
{
    size_t n = 0;

    for (size_t k = 0; k < e->n_hooks; k++) {
        if (e->hooks[k].decision == DECISION_SKIPPED) {
            continue;
        }
        if (n == o->n_ran || !same_hook(f, o, n, e, k, byte_by_byte)) {
            return false;
        }
        n++;
    }
    return n == o->n_ran;
}

/* Fails the test unless the outline says what the whole decode says. */
static void compare(struct fixture *f, struct slice json, bool byte_by_byte)
{
    struct evaluation e;
    struct outline o;
    struct err err = { 0 };

    if (!decode_evaluation(json, &f->arena, &e, &err) ||
        !outline_read(json, RECORD_HOOK_EVALUATION, &f->arena, &f->identity, &o, &err)) {
        fail_msg("%s: %" SLICE_FMT, err.text, SLICE_ARG(json));
    }
    buf_clear(&f->expected);
    encode_identity(&e, &f->expected);
    if (byte_by_byte) {
        assert_string_equal(buf_cstr(&f->identity), buf_cstr(&f->expected));
    } else if (!same_members(object_of(&f->identity, &f->arena),
                             object_of(&f->expected, &f->arena))) {
        fail_msg("%s and not %s: %" SLICE_FMT, buf_cstr(&f->identity), buf_cstr(&f->expected),
                 SLICE_ARG(json));
    }
    assert_true(same_texts(&o, &e));
    if (!same_hooks(f, &o, &e, byte_by_byte)) {
        fail_msg("%s and not %s: %" SLICE_FMT, buf_cstr(&f->row), buf_cstr(&f->expected_row),
                 SLICE_ARG(json));
    }
}

static void it_says_what_the_whole_record_says(void **state)
{
    struct fixture *f = *state;

    for (uint64_t n = 1; n <= 500; n++) {
        uint64_t seed = n;
        struct evaluation e = any_evaluation(&seed, &f->arena);

        buf_clear(&f->json);
        encode_evaluation(&e, &f->json);
        compare(f, buf_slice(&f->json), true);
        arena_reset(&f->arena);
    }
}

/* ---- In another spelling ------------------------------------------------------------------ */

enum { MEMBERS = 64 };

/* The members of an object, as `"key":value`. */
static size_t split(struct slice object, struct slice *ret)
{
    struct payload_iter it;
    struct json_value v;
    struct slice key;
    struct err err;
    size_t n = 0;

    assert_true(payload_check(object, &v, &err));
    it = payload_iter(v);
    while (payload_next(&it, &key, &v)) {
        assert_true(n < MEMBERS);
        ret[n++] =
            (struct slice){ .ptr = key.ptr, .len = (size_t)(v.raw.ptr + v.raw.len - key.ptr) };
    }
    return n;
}

static void shuffle(uint64_t *seed, struct slice *members, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = roll(seed, (uint32_t)i);
        struct slice s = members[i - 1];

        members[i - 1] = members[k];
        members[k] = s;
    }
}

/* The same members in any order; some keys a second time; and one that nobody knows. */
static void respell(uint64_t *seed, struct slice object, struct buf *out)
{
    struct slice members[MEMBERS];
    size_t n = split(object, members);

    shuffle(seed, members, n);
    for (size_t i = 0; i < n; i++) {
        buf_add(out, i == 0 ? SLICE("{") : SLICE(","));
        if (roll(seed, 8) == 0) {
            buf_add(out, SLICE("\"new\":{\"id\":\"x\",\"hooks\":[{}]},"));
        }
        buf_add(out, members[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (roll(seed, 4) == 0) {
            struct slice key;
            struct slice value;

            (void)slice_cut(members[i], ':', &key, &value);
            buf_addf(out, ",%" SLICE_FMT ":[\"second\"]", SLICE_ARG(key));
        }
    }
    buf_add_char(out, '}');
}

/* Blanks on both sides of each token. */
static void spread(uint64_t *seed, struct slice json, struct buf *out)
{
    static const char *const blanks[] = { " ", "\n", "\t\r\n ", "" };
    bool quoted = false;

    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        bool token = !quoted && strchr("{}[]:,", c);

        if (token) {
            buf_add(out, slice_from_cstr(blanks[roll(seed, COUNT_OF(blanks))]));
        }
        buf_add_char(out, c);
        if (token) {
            buf_add(out, slice_from_cstr(blanks[roll(seed, COUNT_OF(blanks))]));
        }
        if (quoted && c == '\\') {
            buf_add_char(out, json.ptr[++i]);
        } else if (c == '"') {
            quoted = !quoted;
        }
    }
}

static void the_order_of_the_keys_does_not_matter_and_of_two_the_first_counts(void **state)
{
    struct fixture *f = *state;

    for (uint64_t n = 1; n <= 500; n++) {
        uint64_t seed = n;
        struct evaluation e = any_evaluation(&seed, &f->arena);

        buf_clear(&f->json);
        buf_clear(&f->other);
        encode_evaluation(&e, &f->json);
        respell(&seed, buf_slice(&f->json), &f->other);
        compare(f, buf_slice(&f->other), false);
        arena_reset(&f->arena);
    }
}

/* Values that hold blanks inside, as they stand in no identity and in no hook, stay as they are. */
static void blanks_between_the_tokens_do_not_matter(void **state)
{
    struct fixture *f = *state;

    for (uint64_t n = 1; n <= 1000; n++) {
        uint64_t seed = n;
        struct evaluation e = any_evaluation(&seed, &f->arena);

        buf_clear(&f->json);
        buf_clear(&f->other);
        encode_evaluation(&e, &f->json);
        if (n % 2 == 0) {
            respell(&seed, buf_slice(&f->json), &f->other);
            buf_clear(&f->json);
            buf_add(&f->json, buf_slice(&f->other));
            buf_clear(&f->other);
        }
        spread(&seed, buf_slice(&f->json), &f->other);
        compare(f, buf_slice(&f->other), false);
        arena_reset(&f->arena);
    }
}

static void a_row_of_a_record_with_blanks_is_json(void **state)
{
    struct fixture *f = *state;
    static const char *const records[] = {
        HEAD("hook_evaluation", "1") " ,\"thread_id\":\"T\",\"hooks\":[{\"ordinal\":0}]}",
        HEAD("hook_evaluation",
             "1") ",\"queue_us\":1 ,\"run_id\":\"R\" ,\"hooks\":[{\"ordinal\":0}]}",
        HEAD("hook_evaluation", "1") ",\"hooks\":[ { \"ordinal\" : 0 } ]}",
        "{ \"collector\" : \"m1\" , \"id\" : \"" ID "\" , \"schema\" : 1 , \"time\" : "
        "\"2026-11-30T14:22:45Z\" , \"type\" : \"hook_evaluation\" , \"hooks\" : [{\"ordinal\":0}] }",
    };

    for (size_t i = 0; i < COUNT_OF(records); i++) {
        struct outline o;
        struct json_value v;
        struct err err = { 0 };

        assert_true(outline_read(slice_from_cstr(records[i]), RECORD_HOOK_EVALUATION, &f->arena,
                                 &f->identity, &o, &err));
        assert_int_equal(o.n_ran, 1);
        buf_clear(&f->row);
        encode_execution_row(o.id, 0, buf_slice(&f->identity), o.ran[0].json, &f->row);
        if (!payload_check(buf_slice(&f->row), &v, &err)) {
            fail_msg("%s: %s", err.text, buf_cstr(&f->row));
        }
    }
}

/* ---- Of what type ------------------------------------------------------------------------- */

static bool outlined(struct fixture *f, enum record_type type, const char *json,
                     struct outline *ret, struct err *err)
{
    return outline_read(slice_from_cstr(json), type, &f->arena, &f->identity, ret, err);
}

static void a_tool_execution_gives_its_thread(void **state)
{
    struct fixture *f = *state;
    struct outline o;
    struct err err;

    assert_true(outlined(f, RECORD_TOOL_EXECUTION,
                         HEAD("tool_execution", "1") ",\"phase\":\"later\",\"thread_id\":\"T\\n\","
                                                     "\"user_id\":\"no such key\","
                                                     "\"tool_input\":{\"thread_id\":\"U\"}}",
                         &o, &err));
    assert_true(slice_equal(o.type, SLICE("tool_execution")));
    assert_true(slice_equal(o.id, SLICE(ID)));
    assert_true(slice_equal(o.collector, SLICE("m1")));
    assert_true(slice_equal(o.time, SLICE("2026-11-30T14:22:45.000001Z")));
    assert_true(slice_equal(o.thread_id, SLICE("T\n")));
    assert_int_equal(o.user_id.len + o.task_run_id.len + o.n_ran, 0);
}

static void an_audit_record_passes_with_a_type_and_a_schema_that_nobody_knows(void **state)
{
    struct fixture *f = *state;
    static const enum record_type types[] = { RECORD_NONE, RECORD_HOOK_REGISTRY, RECORD_GAP,
                                              RECORD_CHECKPOINT, RECORD_ADMIN };

    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct outline o;
        struct err err;

        assert_true(outlined(f, types[i],
                             HEAD("later_\\u0061udit", "99") ",\"hooks\":{},\"thread_id\":\"T\"}",
                             &o, &err));
        assert_true(slice_equal(o.type, SLICE("later_audit")));
        assert_true(slice_equal(o.id, SLICE(ID)));
        assert_true(slice_equal(o.collector, SLICE("m1")));
        assert_int_equal(o.thread_id.len, 0);
    }
}

static void what_is_skipped_by_any_spelling_derives_no_row(void **state)
{
    struct fixture *f = *state;
    struct outline o;
    struct err err;

    assert_true(
        outlined(f, RECORD_HOOK_EVALUATION,
                 HEAD("hook_evaluation",
                      "1") ",\"hooks\":[{\"decision\":\"skipped\"},"
                           "{\"ordinal\":\"x\",\"decision\":\"\\u0073kipped\"},"
                           "{\"decision\":\"later\",\"ordinal\":7},"
                           "{\"ordinal\":8,\"ordinal\":9,\"new\":{\"ordinal\":10}},"
                           "{\"decision\":\"deny\",\"decision\":\"skipped\",\"ordinal\":11}]}",
                 &o, &err));
    assert_int_equal(o.n_ran, 3);
    assert_int_equal(o.ran[0].ordinal, 7);
    assert_int_equal(o.ran[1].ordinal, 8);
    assert_int_equal(o.ran[2].ordinal, 11);
    assert_true(slice_equal(o.ran[0].json, SLICE("{\"decision\":\"later\",\"ordinal\":7}")));
}

#define E(rest) RECORD_HOOK_EVALUATION, HEAD("hook_evaluation", "1") rest
#define NO_HEAD(type) "{\"type\":\"" type "\",\"schema\":1"
#define TIME "\"time\":\"2026-11-30T14:22:45.000001Z\""

static void what_is_missing_or_wrong_is_refused_by_its_name(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum record_type type;
        const char *json;
        const char *error;
    } cases[] = {
        { E("}"), "hooks: a list is expected" },
        { E(",\"hooks\":{}}"), "hooks: a list is expected" },
        { E(",\"hooks\":null}"), "hooks: a list is expected" },
        { E(",\"hooks\":[1]}"), "hooks: an object is expected" },
        { E(",\"hooks\":[[]]}"), "hooks: an object is expected" },
        { E(",\"hooks\":[{}]}"), "hooks: ordinal: a number is expected" },
        { E(",\"hooks\":[{\"decision\":\"deny\"}]}"), "hooks: ordinal: a number is expected" },
        { E(",\"hooks\":[{\"ordinal\":\"1\"}]}"), "hooks: ordinal: a number is expected" },
        { E(",\"hooks\":[{\"ordinal\":-1}]}"), "hooks: ordinal: a number is expected" },
        { E(",\"hooks\":[{\"ordinal\":1.5}]}"), "hooks: ordinal: a number is expected" },
        { E(",\"hooks\":[{\"ordinal\":4294967296}]}"), "hooks: ordinal: a number is expected" },
        { E(",\"hooks\":[],\"thread_id\":1}"), "thread" },
        { E(",\"hooks\":[],\"user_id\":null}"), "user" },
        { E(",\"hooks\":[{\"ordinal\":0,\"a\":1.}]}"), "line 1, column 164: a digit is missing" },
        { E(",\"hooks\":[{\"ordinal\":0]}"), "',' or '}' is expected" },
        { E(",\"hooks\":[]} x"), "something stands behind the value" },
        { E(",\"hooks\":[]"), "the text ends too early" },
        { RECORD_HOOK_EVALUATION, "[]", "a record is an object" },
        { RECORD_HOOK_EVALUATION, HEAD("hook_evaluation", "2") ",\"hooks\":[]}",
          "schema: 2 is newer than this program reads (1)" },
        { RECORD_HOOK_EVALUATION, HEAD("hook_evaluation", "0") ",\"hooks\":[]}",
          "schema: 0 is old" },
        { RECORD_HOOK_EVALUATION, HEAD("gap", "1") ",\"hooks\":[]}",
          "type: gap where hook_evaluation is expected" },
        { RECORD_HOOK_EVALUATION, NO_HEAD("hook_evaluation") "," TIME ",\"hooks\":[]}", "id: " },
        { RECORD_HOOK_EVALUATION, NO_HEAD("hook_evaluation") ",\"id\":\"x\"," TIME ",\"hooks\":[]}",
          "id: a UUID is expected" },
        { RECORD_HOOK_EVALUATION, NO_HEAD("hook_evaluation") ",\"id\":\"" ID "\",\"hooks\":[]}",
          "time: " },
        { RECORD_TOOL_EXECUTION, HEAD("tool_execution", "2") "}", "schema: 2 is newer" },
        { RECORD_TOOL_EXECUTION, HEAD("later", "1") "}", "type: a type that this version" },
        { RECORD_TOOL_EXECUTION, HEAD("tool_execution", "\"1\"") "}", "schema: an integer" },
        { RECORD_TOOL_EXECUTION, NO_HEAD("tool_execution") "," TIME "}", "id: " },
        { RECORD_TOOL_EXECUTION, "{\"schema\":1,\"id\":\"" ID "\"," TIME "}", "type: is missing" },
        { RECORD_GAP, NO_HEAD("gap") "," TIME "}", "id: a UUID is expected" },
        { RECORD_ADMIN, NO_HEAD("admin") ",\"id\":\"" ID "\"}", "time: an RFC 3339 time" },
        { RECORD_ADMIN, NO_HEAD("admin") ",\"id\":\"" ID "\",\"time\":\"noon\"}", "time: an RFC" },
        { RECORD_GAP, "{\"type\":1,\"schema\":1,\"id\":\"" ID "\"," TIME "}", "type" },
        { RECORD_GAP, "{\"schema\":1,\"id\":\"" ID "\"," TIME "}", "type: is missing" },
        { RECORD_GAP, "{\"type\":\"gap\",\"id\":\"" ID "\"," TIME "}", "schema: " },
        { RECORD_CHECKPOINT, HEAD("checkpoint", "1") ",\"root\":tru}", "neither null" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct outline o;
        struct err err = { 0 };

        if (outlined(f, cases[i].type, cases[i].json, &o, &err) ||
            !strstr(err.text, cases[i].error)) {
            fail_msg("%s: %s", cases[i].json, err.text);
        }
        assert_int_equal(err.code, ERR_INVALID);
    }
}

/* ---- Limits --------------------------------------------------------------------------------- */

/* A record with an escape in a text, and more hooks than the first list of them holds. */
static struct evaluation large(struct execution hooks[20])
{
    struct evaluation e = sample_evaluation();

    e.thread_id = SLICE("a\nb");
    for (uint32_t i = 0; i < 20; i++) {
        hooks[i] = (struct execution){ .ordinal = i, .decision = DECISION_PASS };
    }
    e.hooks = hooks;
    e.n_hooks = 20;
    return e;
}

static void what_does_not_fit_into_the_arena_is_too_big(void **state)
{
    struct fixture *f = *state;
    struct execution hooks[20];
    struct evaluation e = large(hooks);
    size_t fits = 0;

    encode_evaluation(&e, &f->json);
    for (size_t limit = 0; fits == 0 && limit < 1 << 20; limit = limit * 2 + 1) {
        CLEANUP(arena_clear) struct arena small;
        struct outline o;
        struct err err = { 0 };

        arena_init(&small, limit);
        if (outline_read(buf_slice(&f->json), RECORD_HOOK_EVALUATION, &small, &f->identity, &o,
                         &err)) {
            fits = limit;
            assert_int_equal(o.n_ran, 20);
            for (uint32_t i = 0; i < 20; i++) {
                assert_int_equal(o.ran[i].ordinal, i);
            }
        } else {
            assert_int_equal(err.code, ERR_TOO_BIG);
        }
    }
    assert_true(fits > 0);
}

static void an_identity_that_does_not_fit_is_too_big(void **state)
{
    struct fixture *f = *state;
    struct execution hooks[20];
    struct evaluation e = large(hooks);
    struct outline o;
    struct err err;

    encode_evaluation(&e, &f->json);
    encode_identity(&e, &f->expected);
    for (size_t limit = 0; limit <= f->expected.len_bytes; limit++) {
        CLEANUP(buf_done) struct buf small;
        bool fits = limit == f->expected.len_bytes;

        buf_init(&small, limit);
        assert_int_equal(
            outline_read(buf_slice(&f->json), RECORD_HOOK_EVALUATION, &f->arena, &small, &o, &err),
            fits);
        assert_true(fits || err.code == ERR_TOO_BIG);
        arena_reset(&f->arena);
    }
}

static void the_identity_of_the_record_before_is_gone(void **state)
{
    struct fixture *f = *state;
    struct outline o;
    struct err err;

    buf_add(&f->identity, SLICE("what was there"));
    assert_true(outlined(f, RECORD_HOOK_EVALUATION,
                         "{\"schema\":1,\"id\":\"" ID "\"," TIME
                         ",\"hooks\":[],\"type\":\"hook_evaluation\"}",
                         &o, &err));
    assert_string_equal(buf_cstr(&f->identity), "," TIME ",\"evaluation_id\":\"" ID "\"");
    assert_int_equal(o.collector.len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_says_what_the_whole_record_says),
        TEST(the_order_of_the_keys_does_not_matter_and_of_two_the_first_counts),
        TEST(blanks_between_the_tokens_do_not_matter),
        TEST(a_row_of_a_record_with_blanks_is_json),
        TEST(a_tool_execution_gives_its_thread),
        TEST(an_audit_record_passes_with_a_type_and_a_schema_that_nobody_knows),
        TEST(what_is_skipped_by_any_spelling_derives_no_row),
        TEST(what_is_missing_or_wrong_is_refused_by_its_name),
        TEST(what_does_not_fit_into_the_arena_is_too_big),
        TEST(an_identity_that_does_not_fit_is_too_big),
        TEST(the_identity_of_the_record_before_is_gone),
    };

    return cmocka_run_group_tests_name("record/outline", tests, NULL, NULL);
}
