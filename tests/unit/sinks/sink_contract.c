#include "tests/unit/sinks/sink_contract.h"

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/mem.h"
#include "collector/record/encode.h"
#include "sinks/pump.h"
#include "tests/unit/unit.h"

enum { SAMPLE_TIME_S = 1764513000, HOOKS = 3 };

static const struct sink_subject *subject; /* of this program */

/* Samples ------------------------------------------------------------------- */

struct sink_samples {
    struct sink_record *list;
    struct buf *bytes;
    size_t n;
};

static void fill_hooks(struct execution hooks[HOOKS])
{
    hooks[0] = (struct execution){ .ordinal = 0,
                                   .hook_name = SLICE("deny-rm"),
                                   .hook_type = HOOK_COMMAND,
                                   .tier = TIER_SYSTEM,
                                   .decision = DECISION_DENY,
                                   .reason = { .text = SLICE("no") },
                                   .has_exit_code = true,
                                   .exit_code = 2,
                                   .duration_us = 1500 };
    hooks[1] = (struct execution){ .ordinal = 1,
                                   .hook_name = SLICE("log-all"),
                                   .hook_type = HOOK_COMMAND,
                                   .tier = TIER_AGENT,
                                   .decision = DECISION_PASS,
                                   .duration_us = 90 };
    hooks[2] = (struct execution){ .ordinal = 2,
                                   .hook_name = SLICE("late"),
                                   .hook_type = HOOK_COMMAND,
                                   .tier = TIER_USER_GLOBAL,
                                   .decision = DECISION_SKIPPED,
                                   .skip_reason = SKIP_SHORT_CIRCUIT };
}

static void add_evaluation(struct buf *b, const struct id *id, int64_t time_us)
{
    struct execution hooks[HOOKS];
    const struct evaluation e = {
        .head = { .id = id_slice(id), .collector = SLICE("host-a"), .time_us = time_us },
        .dispatch_id = id_slice(id),
        .source = SOURCE_DISPATCHER,
        .contract = SLICE("sre"),
        .chain = CHAIN_ALL,
        .duration_us = 2500,
        .thread_id = SLICE("thread-1"),
        .call_id = SLICE("call-1"),
        .hook_event_type = SLICE("PreToolUse"),
        .tool_name = SLICE("Bash"),
        .final_decision = DECISION_DENY,
        .hooks_configured = HOOKS,
        .hooks_run = 2,
        .hooks = hooks,
        .n_hooks = HOOKS,
    };

    fill_hooks(hooks);
    encode_evaluation(&e, b);
}

static void add_tool(struct buf *b, const struct id *id, int64_t time_us)
{
    const struct tool_execution t = {
        .head = { .id = id_slice(id), .collector = SLICE("host-a"), .time_us = time_us },
        .source = SOURCE_DISPATCHER,
        .contract = SLICE("sre"),
        .phase = PHASE_START,
        .thread_id = SLICE("thread-1"),
        .call_id = SLICE("call-1"),
        .tool_name = SLICE("Bash"),
        .tool_input = SLICE("{\"command\":\"ls\"}"),
    };

    encode_tool_execution(&t, b);
}

static struct digest leaf_of(struct slice bytes)
{
    const struct slice parts[] = { { .ptr = "", .len = 1 }, bytes };

    return digest_of_parts(parts, COUNT_OF(parts));
}

struct sink_samples *sink_samples_at(uint64_t seq, size_t n, int64_t time_us)
{
    struct sink_samples *s = xcalloc(1, sizeof(*s));

    s->list = xcalloc(n, sizeof(*s->list));
    s->bytes = xcalloc(n, sizeof(*s->bytes));
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        struct id id = id_new();
        bool is_tool = (seq + i) % 2 == 0;

        buf_init(&s->bytes[i], RECORD_MAX_BYTES);
        if (is_tool) {
            add_tool(&s->bytes[i], &id, time_us + (int64_t)i * 1000000);
        } else {
            add_evaluation(&s->bytes[i], &id, time_us + (int64_t)i * 1000000);
        }
        s->list[i].seq = seq + i;
        s->list[i].type = is_tool ? RECORD_TOOL_EXECUTION : RECORD_HOOK_EVALUATION;
        s->list[i].json = buf_slice(&s->bytes[i]);
        s->list[i].leaf = leaf_of(s->list[i].json);
    }
    return s;
}

struct sink_samples *sink_samples_new(uint64_t seq, size_t n)
{
    return sink_samples_at(seq, n, (SAMPLE_TIME_S + (int64_t)seq) * 1000000);
}

const struct sink_record *sink_samples_list(const struct sink_samples *s)
{
    return s->list;
}

void sink_samples_free(struct sink_samples *s)
{
    if (s) {
        for (size_t i = 0; i < s->n; i++) {
            buf_done(&s->bytes[i]);
        }
        free(s->bytes);
        free(s->list);
        free(s);
    }
}

void sink_samples_freep(struct sink_samples **s)
{
    sink_samples_free(*s);
    *s = NULL;
}

/* Tests --------------------------------------------------------------------- */

#define J SLICE("0190a000-0000-7000-8000-000000000001")
#define K SLICE("0190a000-0000-7000-8000-000000000002")

static struct sink *open_sink(void)
{
    struct sink *s = NULL;
    struct err err = { 0 };

    if (!subject->ops->open(subject->cfg, &s, &err)) {
        fail_msg("%s", err.text);
    }
    return s;
}

static void close_sink(struct sink **s)
{
    subject->ops->close(*s);
    *s = NULL;
}
#define SINK CLEANUP(close_sink) struct sink
#define SAMPLES CLEANUP(sink_samples_freep) struct sink_samples

static struct sink_position position_of(struct sink *s, struct slice journal)
{
    struct sink_position at = { 0 };
    struct err err = { 0 };

    if (!subject->ops->position(s, journal, &at, &err)) {
        fail_msg("%s", err.text);
    }
    return at;
}

static uint64_t position(struct sink *s, struct slice journal)
{
    return position_of(s, journal).next;
}

/* It knows its last record: this one. */
static void assert_last(struct sink *s, const struct sink_record *r)
{
    struct sink_position at = position_of(s, J);

    assert_int_equal(at.last, r->seq);
    assert_memory_equal(at.leaf.bytes, r->leaf.bytes, DIGEST_BYTES);
}

static struct span span_of(const struct sink_samples *s, size_t n)
{
    return (struct span){ .journal = J,
                          .from = s->list[0].seq,
                          .to = s->list[0].seq + n - 1,
                          .records = s->list,
                          .n = n };
}

static enum sink_result write_span(struct sink *s, const struct span *span)
{
    struct err err = { 0 };
    enum sink_result result = subject->ops->write(s, span, &err);

    if (result != SINK_OK) {
        assert_string_not_equal(err.text, "");
    }
    return result;
}

static void assert_count(uint64_t n)
{
    if (subject->count) {
        assert_int_equal(subject->count(J), n);
    }
}

static void close_accepts_null(void **state)
{
    (void)state;
    subject->ops->close(NULL);
}

static void what_was_written_is_there_after_opening_again(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(1, 5);
    SINK *s = open_sink();
    const struct span span = span_of(samples, 5);

    assert_int_equal(write_span(s, &span), SINK_OK);
    close_sink(&s);
    s = open_sink();
    assert_count(5);
}

static void the_position_of_an_unknown_journal_is_1(void **state)
{
    (void)state;
    SINK *s = open_sink();

    assert_int_equal(position(s, J), 1);
    assert_int_equal(position_of(s, J).last, 0);
}

static void a_write_moves_the_position_of_its_journal_alone_and_names_its_last_record(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(1, 5);
    SINK *s = open_sink();
    const struct span first = span_of(samples, 2);
    struct span span = span_of(samples, 5);

    assert_int_equal(write_span(s, &first), SINK_OK);
    assert_last(s, &samples->list[1]);
    span = pump_rest(&span, 2);
    assert_int_equal(write_span(s, &span), SINK_OK);
    assert_int_equal(position(s, J), 6);
    assert_int_equal(position(s, K), 1);
    assert_last(s, &samples->list[4]);
    close_sink(&s);
    s = open_sink();
    assert_int_equal(position(s, J), 6);
    assert_last(s, &samples->list[4]);
}

static void a_span_sent_again_after_a_lost_answer_is_stored_once(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(1, 4);
    SINK *s = open_sink();
    const struct span span = span_of(samples, 4);

    assert_int_equal(write_span(s, &span), SINK_OK);
    assert_int_equal(write_span(s, &span), SINK_DOWN);
    assert_int_equal(position(s, J), 5);
    assert_int_equal(subject->count(J), 4);
}

static void a_span_that_is_not_the_next_writes_nothing(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(7, 4);
    SINK *s = open_sink();
    const struct span span = span_of(samples, 4);

    assert_int_equal(write_span(s, &span), SINK_DOWN);
    assert_int_equal(position(s, J), 1);
    assert_int_equal(subject->count(J), 0);
}

static void a_span_may_have_gaps_inside_and_at_its_end(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(3, 1);
    SINK *s = open_sink();
    struct span span = span_of(samples, 1);

    span.from = 1;
    span.to = 9;
    assert_int_equal(write_span(s, &span), SINK_OK);
    assert_int_equal(position(s, J), 10);
    assert_last(s, &samples->list[0]);
    assert_int_equal(subject->count(J), 1);
}

static void an_empty_span_moves_the_position_alone(void **state)
{
    (void)state;
    SINK *s = open_sink();
    const struct span span = { .journal = J, .from = 1, .to = 3 };

    assert_int_equal(write_span(s, &span), SINK_OK);
    assert_int_equal(position(s, J), 4);
    assert_int_equal(subject->count(J), 0);
}

static void many_journals_in_turn_go_on_each_from_its_position(void **state)
{
    (void)state;
    enum { JOURNALS = 6, ROUNDS = 2 };
    SAMPLES *samples = sink_samples_new(1, ROUNDS);
    SINK *s = open_sink();
    char id[] = "0190a000-0000-7000-8000-00000000000x";
    struct span span = { .journal = slice_from_cstr(id), .n = 1 };

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        span.from = round;
        span.to = round;
        span.records = sink_samples_list(samples) + round - 1;
        for (int i = 0; i < JOURNALS; i++) {
            id[sizeof(id) - 2] = (char)('0' + i);
            assert_int_equal(write_span(s, &span), SINK_OK);
            assert_int_equal(position(s, span.journal), round + 1);
        }
    }
}

static void of_two_writers_one_goes_on_and_the_other_writes_nothing(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(1, 4);
    SINK *one = open_sink();
    SINK *two = open_sink();
    const struct span span = span_of(samples, 4);

    assert_int_equal(position(two, J), 1);
    assert_int_equal(write_span(one, &span), SINK_OK);
    assert_int_equal(write_span(two, &span), subject->fences ? SINK_BROKEN : SINK_DOWN);
    assert_int_equal(subject->count(J), 4);
    assert_int_equal(position(two, J), 5);
}

static void a_record_sent_late_leaves_the_position_and_is_stored_once(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(1, 2);
    SINK *s = open_sink();
    const struct span first = span_of(samples, 1);
    const struct span skip = { .journal = J, .from = 2, .to = 5 };
    const struct span late = {
        .journal = J, .from = 2, .to = 2, .records = &samples->list[1], .n = 1, .late = true
    };

    assert_int_equal(write_span(s, &first), SINK_OK);
    assert_int_equal(write_span(s, &skip), SINK_OK);
    assert_int_equal(write_span(s, &late), SINK_OK);
    assert_int_equal(write_span(s, &late), SINK_OK);
    assert_int_equal(subject->count(J), subject->forgets ? 3 : 2);
    close_sink(&s);
    s = open_sink();
    assert_int_equal(position(s, J), 6);
    assert_last(s, &samples->list[0]);
}

static void a_type_nobody_knows_is_delivered(void **state)
{
    (void)state;
    struct id id = id_new();
    char json[256];
    int len = snprintf(json, sizeof(json),
                       "{\"type\":\"later\",\"schema\":1,\"id\":\"%s\",\"collector\":\"h\","
                       "\"time\":\"2026-11-30T14:00:00.000000Z\"}",
                       id.text);
    const struct sink_record r = { .seq = 1, .json = { .ptr = json, .len = (size_t)len } };
    const struct span span = { .journal = J, .from = 1, .to = 1, .records = &r, .n = 1 };
    SINK *s = open_sink();

    assert_int_equal(write_span(s, &span), SINK_OK);
    assert_count(1);
}

static void bytes_that_are_no_record_are_rejected_and_nothing_of_their_span_is_there(void **state)
{
    (void)state;
    SAMPLES *samples = sink_samples_new(1, 4);
    SINK *s = open_sink();
    const struct span span = span_of(samples, 4);

    samples->list[2].json = SLICE("{\"type\":\"hook_evaluation\",");
    assert_int_equal(write_span(s, &span), SINK_REJECT);
    assert_int_equal(subject->count(J), 0);
    if (subject->ops->position) {
        assert_int_equal(position(s, J), 1);
    }
}

static void a_poisoned_record_is_given_up_and_all_others_arrive(void **state)
{
    (void)state;
    enum { N = 40, POISONED = 17 };
    SAMPLES *samples = sink_samples_new(1, N);
    struct span rest = span_of(samples, N);
    struct pump p = { .cfg = subject->cfg,
                      .ops = subject->ops,
                      .backoff = { .first_ms = 1, .limit_ms = 1 },
                      .batch_max = N,
                      .batch_now = N };

    samples->list[POISONED].json = SLICE("poison");
    for (int i = 0; i < 10 * N; i++) {
        size_t consumed = pump_step(&p, &rest).consumed;

        if (consumed == rest.n) {
            break;
        }
        rest = pump_rest(&rest, consumed);
    }
    pump_close(&p);
    assert_int_equal(p.dead, 1);
    assert_int_equal(subject->count(J), N - 1);
}

/* Running ------------------------------------------------------------------- */

static int before_each(void **state)
{
    (void)state;
    subject->reset();
    return 0;
}

struct contract_test {
    struct CMUnitTest test;
    bool needs_position;
    bool needs_refusal;
};

#define TEST(f, position, refusal)                                \
    {                                                             \
        cmocka_unit_test_setup(f, before_each), position, refusal \
    }
static const struct contract_test all[] = {
    TEST(close_accepts_null, false, false),
    TEST(what_was_written_is_there_after_opening_again, false, false),
    TEST(a_type_nobody_knows_is_delivered, false, false),
    TEST(the_position_of_an_unknown_journal_is_1, true, false),
    TEST(a_write_moves_the_position_of_its_journal_alone_and_names_its_last_record, true, false),
    TEST(a_span_sent_again_after_a_lost_answer_is_stored_once, true, false),
    TEST(a_span_that_is_not_the_next_writes_nothing, true, false),
    TEST(a_span_may_have_gaps_inside_and_at_its_end, true, false),
    TEST(an_empty_span_moves_the_position_alone, true, false),
    TEST(many_journals_in_turn_go_on_each_from_its_position, true, false),
    TEST(of_two_writers_one_goes_on_and_the_other_writes_nothing, true, false),
    TEST(a_record_sent_late_leaves_the_position_and_is_stored_once, true, false),
    TEST(bytes_that_are_no_record_are_rejected_and_nothing_of_their_span_is_there, false, true),
    TEST(a_poisoned_record_is_given_up_and_all_others_arrive, false, true),
};

int sink_contract_run(const struct sink_subject *s)
{
    struct CMUnitTest tests[COUNT_OF(all)];
    size_t n = 0;

    subject = s;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if ((!all[i].needs_position || s->ops->position) &&
            (!all[i].needs_refusal || s->refuses_data)) {
            tests[n++] = all[i].test;
        }
    }
    return _cmocka_run_group_tests(s->name, tests, n, NULL, NULL);
}
