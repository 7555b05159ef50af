#include "sinks/kafka_message.h"

#include <string.h>

#include "tests/unit/unit.h"

#define J SLICE("0190a000-0000-7000-8000-000000000001")
#define ID "018f0000-0000-7000-8000-000000000001"
#define TIME "2026-11-30T14:22:45.000001Z"
/* A record of a type, with what else it has. */
#define RECORD(type, members)                                                         \
    "{\"type\":\"" type "\",\"schema\":1,\"id\":\"" ID "\",\"collector\":\"host-a\"," \
    "\"time\":\"" TIME "\"" members "}"
#define THREAD ",\"thread_id\":\"thread-1\""
#define TASK_RUN ",\"task_run_id\":\"run-1\""
#define USER ",\"user_id\":\"user-1\""
#define HOOKS(list) ",\"hooks\":[" list "]"
#define HOOK(ordinal, decision) \
    "{\"ordinal\":" ordinal ",\"hook_name\":\"h" ordinal "\",\"decision\":\"" decision "\"}"

enum { SPACE_BYTES = 1024 * 1024 };

/* The messages of one record, until the next. */
struct made {
    struct kafka_space space;
    struct kafka_message *list;
    size_t n;
};

static void begin(struct made *m)
{
    *m = (struct made){ 0 };
    kafka_space_init(&m->space, SPACE_BYTES, 0);
}

static void end(struct made *m)
{
    kafka_space_done(&m->space);
}
#define MADE CLEANUP(end) struct made

static enum sink_result make(struct made *m, enum record_type type, const char *json)
{
    const struct sink_record r = { .seq = 4711, .type = type, .json = slice_from_cstr(json) };
    struct err err = { 0 };

    arena_reset(&m->space.arena);
    return kafka_messages(&r, &m->space, &m->list, &m->n, &err);
}

static void assert_text(struct slice found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.ptr, expected, found.len);
}

/* The message's headers are these pairs of name and value, in this order, and no other. */
static void assert_headers(const struct kafka_message *m, const char *const (*pairs)[2], size_t n)
{
    rd_kafka_headers_t *headers = kafka_headers(m, J);

    assert_int_equal(rd_kafka_header_cnt(headers), n);
    for (size_t i = 0; i < n; i++) {
        const char *name;
        const void *value;
        size_t size;

        assert_int_equal(rd_kafka_header_get_all(headers, i, &name, &value, &size), 0);
        assert_string_equal(name, pairs[i][0]);
        assert_text((struct slice){ .ptr = value, .len = size }, pairs[i][1]);
    }
    rd_kafka_headers_destroy(headers);
}

/* ---- The key ------------------------------------------------------------------------------ */

static void the_key_is_thread_else_task_run_else_user_else_collector(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *key;
        bool subject; /* it is the subject, too */
    } cases[] = {
        { RECORD("hook_evaluation", THREAD TASK_RUN USER HOOKS("")), "thread-1", true },
        { RECORD("hook_evaluation", USER TASK_RUN THREAD HOOKS("")), "thread-1", true },
        { RECORD("hook_evaluation", THREAD TASK_RUN HOOKS("")), "thread-1", true },
        { RECORD("hook_evaluation", THREAD USER HOOKS("")), "thread-1", true },
        { RECORD("hook_evaluation", TASK_RUN USER HOOKS("")), "run-1", true },
        { RECORD("hook_evaluation", USER TASK_RUN HOOKS("")), "run-1", true },
        { RECORD("hook_evaluation", TASK_RUN HOOKS("")), "run-1", true },
        { RECORD("hook_evaluation", USER HOOKS("")), "user-1", true },
        { RECORD("hook_evaluation", ",\"thread_id\":\"\"" USER HOOKS("")), "user-1", true },
        { RECORD("hook_evaluation", HOOKS("")), "host-a", false },
    };
    MADE m;

    begin(&m);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(make(&m, RECORD_HOOK_EVALUATION, cases[i].json), SINK_OK);
        assert_text(m.list[0].key, cases[i].key);
        assert_text(m.list[0].subject, cases[i].subject ? cases[i].key : "");
    }
}

static void the_key_is_the_text_and_not_its_spelling(void **state)
{
    (void)state;
    MADE m;

    begin(&m);
    assert_int_equal(make(&m, RECORD_TOOL_EXECUTION,
                          RECORD("tool_execution", ",\"thread_id\":\"a\\u0062\\\"c\"")),
                     SINK_OK);
    assert_text(m.list[0].key, "ab\"c");
}

/* ---- Records of every kind ---------------------------------------------------------------- */

static void a_record_is_one_message_on_its_topic(void **state)
{
    (void)state;
    static const struct {
        enum record_type type;
        const char *json;
        enum kafka_topic topic;
        const char *ce_type;
        const char *key;
    } cases[] = {
        { RECORD_HOOK_EVALUATION, RECORD("hook_evaluation", THREAD HOOKS(HOOK("0", "skipped"))),
          KAFKA_HOOK_EVALUATION, "hooktrail.hook_evaluation", "thread-1" },
        { RECORD_TOOL_EXECUTION, RECORD("tool_execution", THREAD), KAFKA_TOOL_EXECUTION,
          "hooktrail.tool_execution", "thread-1" },
        { RECORD_HOOK_REGISTRY, RECORD("hook_registry", ",\"part\":0"), KAFKA_AUDIT,
          "hooktrail.hook_registry", "host-a" },
        { RECORD_GAP, RECORD("gap", ",\"lost\":5"), KAFKA_AUDIT, "hooktrail.gap", "host-a" },
        { RECORD_CHECKPOINT, RECORD("checkpoint", ""), KAFKA_AUDIT, "hooktrail.checkpoint",
          "host-a" },
        { RECORD_ADMIN, RECORD("admin", ",\"actor\":\"root\""), KAFKA_AUDIT, "hooktrail.admin",
          "host-a" },
        { RECORD_NONE, RECORD("of_tomorrow", ",\"news\":[1]"), KAFKA_AUDIT, "hooktrail.of_tomorrow",
          "host-a" },
    };
    MADE m;

    begin(&m);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(make(&m, cases[i].type, cases[i].json), SINK_OK);
        assert_int_equal(m.n, 1);
        assert_int_equal(m.list[0].topic, cases[i].topic);
        assert_text(m.list[0].type, cases[i].ce_type);
        assert_text(m.list[0].key, cases[i].key);
        assert_text(m.list[0].value, cases[i].json);
        assert_text(m.list[0].id, ID);
        assert_text(m.list[0].seq, "4711");
    }
}

static void the_topics_have_their_names(void **state)
{
    (void)state;
    assert_string_equal(kafka_topic_name(KAFKA_HOOK_EVALUATION), "hook_evaluation");
    assert_string_equal(kafka_topic_name(KAFKA_HOOK_EXECUTION), "hook_execution");
    assert_string_equal(kafka_topic_name(KAFKA_TOOL_EXECUTION), "tool_execution");
    assert_string_equal(kafka_topic_name(KAFKA_AUDIT), "audit");
}

static void a_record_is_a_cloud_event_with_its_journal_and_number(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "ce_specversion", "1.0" },
        { "ce_id", ID },
        { "ce_source", "/hooktrail/host-a" },
        { "ce_type", "hooktrail.tool_execution" },
        { "ce_time", TIME },
        { "ce_subject", "thread-1" },
        { "content-type", "application/json" },
        { "journal", "0190a000-0000-7000-8000-000000000001" },
        { "seq", "4711" },
    };
    MADE m;

    begin(&m);
    assert_int_equal(make(&m, RECORD_TOOL_EXECUTION, RECORD("tool_execution", THREAD)), SINK_OK);
    assert_headers(&m.list[0], pairs, COUNT_OF(pairs));
}

static void what_is_about_nobody_has_no_subject(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "ce_specversion", "1.0" },
        { "ce_id", ID },
        { "ce_source", "/hooktrail/host-a" },
        { "ce_type", "hooktrail.of_tomorrow" },
        { "ce_time", TIME },
        { "content-type", "application/json" },
        { "journal", "0190a000-0000-7000-8000-000000000001" },
        { "seq", "4711" },
    };
    MADE m;

    begin(&m);
    assert_int_equal(make(&m, RECORD_NONE, RECORD("of_tomorrow", "")), SINK_OK);
    assert_headers(&m.list[0], pairs, COUNT_OF(pairs));
}

/* ---- Hooks that ran ----------------------------------------------------------------------- */

static void each_hook_that_ran_is_a_message_of_its_own_beside_the_evaluation(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "ce_specversion", "1.0" },
        { "ce_id", ID ".2" },
        { "ce_source", "/hooktrail/host-a" },
        { "ce_type", "hooktrail.hook_execution" },
        { "ce_time", TIME },
        { "ce_subject", "thread-1" },
        { "content-type", "application/json" },
        { "journal", "0190a000-0000-7000-8000-000000000001" },
        { "seq", "4711" },
    };
    MADE m;

    begin(&m);
    assert_int_equal(make(&m, RECORD_HOOK_EVALUATION,
                          RECORD("hook_evaluation", THREAD HOOKS(HOOK("0", "pass") "," HOOK(
                                                        "1", "skipped") "," HOOK("2", "deny")))),
                     SINK_OK);
    assert_int_equal(m.n, 3);
    assert_int_equal(m.list[0].topic, KAFKA_HOOK_EVALUATION);
    assert_text(m.list[1].id, ID ".0");
    for (size_t i = 1; i < m.n; i++) {
        assert_int_equal(m.list[i].topic, KAFKA_HOOK_EXECUTION);
        assert_text(m.list[i].key, "thread-1");
    }
    assert_headers(&m.list[2], pairs, COUNT_OF(pairs));
}

static void a_row_of_a_hook_has_the_evaluations_identity_and_its_own_members(void **state)
{
    (void)state;
    MADE m;

    begin(&m);
    assert_int_equal(make(&m, RECORD_HOOK_EVALUATION,
                          RECORD("hook_evaluation", THREAD HOOKS(HOOK("7", "deny")))),
                     SINK_OK);
    assert_text(m.list[1].value,
                "{\"type\":\"hook_execution\",\"schema\":1,\"id\":\"" ID ".7\","
                "\"collector\":\"host-a\",\"time\":\"" TIME "\",\"evaluation_id\":\"" ID "\"" THREAD
                ",\"ordinal\":7,\"hook_name\":\"h7\",\"decision\":\"deny\"}");
}

/* ---- Again, and what is no record --------------------------------------------------------- */

static void assert_equal_slices(struct slice a, struct slice b)
{
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
}

static void what_is_sent_again_is_equal_in_all(void **state)
{
    (void)state;
    static const char json[] =
        RECORD("hook_evaluation", THREAD HOOKS(HOOK("0", "pass") "," HOOK("1", "deny")));
    MADE first;
    MADE again;

    begin(&first);
    begin(&again);
    assert_int_equal(make(&first, RECORD_HOOK_EVALUATION, json), SINK_OK);
    assert_int_equal(make(&again, RECORD_TOOL_EXECUTION, RECORD("tool_execution", "")), SINK_OK);
    assert_int_equal(make(&again, RECORD_HOOK_EVALUATION, json), SINK_OK);
    assert_int_equal(first.n, again.n);
    for (size_t i = 0; i < first.n; i++) {
        const struct kafka_message *a = &first.list[i];
        const struct kafka_message *b = &again.list[i];

        assert_int_equal(a->topic, b->topic);
        assert_equal_slices(a->key, b->key);
        assert_equal_slices(a->value, b->value);
        assert_equal_slices(a->type, b->type);
        assert_equal_slices(a->id, b->id);
        assert_equal_slices(a->source, b->source);
        assert_equal_slices(a->subject, b->subject);
        assert_equal_slices(a->time, b->time);
        assert_equal_slices(a->seq, b->seq);
    }
}

static void what_is_no_record_is_refused_and_what_is_newer_waits(void **state)
{
    (void)state;
    MADE m;

    begin(&m);
    assert_int_equal(make(&m, RECORD_TOOL_EXECUTION, "{\"poison\":true}"), SINK_REJECT);
    assert_int_equal(make(&m, RECORD_NONE, "no JSON"), SINK_REJECT);
    assert_int_equal(make(&m, RECORD_HOOK_EVALUATION, RECORD("hook_evaluation", "")), SINK_REJECT);
    assert_int_equal(make(&m, RECORD_TOOL_EXECUTION,
                          "{\"type\":\"tool_execution\",\"schema\":99,\"id\":\"" ID "\"}"),
                     SINK_BROKEN);
}

static void a_record_that_no_room_is_left_for_is_refused(void **state)
{
    (void)state;
    struct kafka_message *list;
    size_t n;
    const struct sink_record r = { .seq = 1,
                                   .type = RECORD_TOOL_EXECUTION,
                                   .json = SLICE(RECORD("tool_execution", THREAD)) };
    struct err err = { 0 };
    MADE m = { 0 };

    kafka_space_init(&m.space, 16, 0);
    assert_int_equal(kafka_messages(&r, &m.space, &list, &n, &err), SINK_REJECT);
    assert_int_equal(err.code, ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_thread_else_task_run_else_user_else_collector),
        cmocka_unit_test(the_key_is_the_text_and_not_its_spelling),
        cmocka_unit_test(a_record_is_one_message_on_its_topic),
        cmocka_unit_test(the_topics_have_their_names),
        cmocka_unit_test(a_record_is_a_cloud_event_with_its_journal_and_number),
        cmocka_unit_test(what_is_about_nobody_has_no_subject),
        cmocka_unit_test(each_hook_that_ran_is_a_message_of_its_own_beside_the_evaluation),
        cmocka_unit_test(a_row_of_a_hook_has_the_evaluations_identity_and_its_own_members),
        cmocka_unit_test(what_is_sent_again_is_equal_in_all),
        cmocka_unit_test(what_is_no_record_is_refused_and_what_is_newer_waits),
        cmocka_unit_test(a_record_that_no_room_is_left_for_is_refused),
    };

    return cmocka_run_group_tests_name("sinks/kafka_message", tests, NULL, NULL);
}
