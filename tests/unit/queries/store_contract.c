#include "tests/unit/queries/store_contract.h"

#include <string.h>

#include "tests/unit/unit.h"

/* cmocka hands no argument to a group's tests but through state, which is per test. */
static const struct store_under_test *under_test;

static struct execution hooks_of_first[] = { { .hook_name = SLICE("guard"),
                                               .decision = DECISION_DENY },
                                             { .ordinal = 1,
                                               .hook_name = SLICE("late"),
                                               .decision = DECISION_SKIPPED,
                                               .skip_reason = SKIP_SHORT_CIRCUIT } };
static struct execution hooks_of_second[] = { { .hook_name = SLICE("O'Brien \"x\""),
                                                .decision = DECISION_PASS } };

/* Seven records: numbers and ids 1 to 7, one a second. */
static void write_records(struct fake_records *r)
{
    fake_records_registry(r, (struct hook_registry){ .contract = SLICE("sre"),
                                                     .config_digest = SLICE("d1"),
                                                     .parts = 1,
                                                     .hooks = SLICE("[]") });
    fake_records_evaluation(r, (struct evaluation){ .dispatch_id = SLICE("dispatch-1"),
                                                    .contract = SLICE("sre"),
                                                    .thread_id = SLICE("t1"),
                                                    .call_id = SLICE("c1"),
                                                    .hook_event_type = SLICE("PreToolUse"),
                                                    .tool_name = SLICE("RunInTerminal"),
                                                    .config_digest = SLICE("d1"),
                                                    .hooks = hooks_of_first,
                                                    .n_hooks = 2 });
    fake_records_tool(r, (struct tool_execution){ .dispatch_id = SLICE("dispatch-1"),
                                                  .contract = SLICE("sre"),
                                                  .phase = PHASE_START,
                                                  .thread_id = SLICE("t1"),
                                                  .call_id = SLICE("c1"),
                                                  .tool_name = SLICE("RunInTerminal") });
    fake_records_evaluation(r, (struct evaluation){ .dispatch_id = SLICE("dispatch-2"),
                                                    .contract = SLICE("sre"),
                                                    .thread_id = SLICE("t1"),
                                                    .hook_event_type = SLICE("Stop"),
                                                    .hooks = hooks_of_second,
                                                    .n_hooks = 1 });
    fake_records_evaluation(r, (struct evaluation){ .dispatch_id = SLICE("dispatch-3"),
                                                    .contract = SLICE("oscova"),
                                                    .thread_id = SLICE("t2"),
                                                    .hook_event_type = SLICE("Stop") });
    fake_records_gap(r, (struct gap){ .known = true, .lost = 3, .cause = SLICE("quota") });
    fake_records_tool(r, (struct tool_execution){ .contract = SLICE("sre"),
                                                  .phase = PHASE_END,
                                                  .thread_id = SLICE("t2"),
                                                  .call_id = SLICE("c'2"),
                                                  .tool_name = SLICE("ReadFile") });
}

struct fixture {
    struct fake_records records;
    struct store *store;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err;

    if (!f) {
        return -1;
    }
    write_records(&f->records);
    under_test->load(under_test->ctx, &f->records);
    if (!under_test->ops->open(&under_test->config, &f->store, &err)) {
        print_error("%s\n", err.text);
        return -1;
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    under_test->ops->close(f->store);
    fake_records_done(&f->records);
    free(f);
    return 0;
}

/* The numbers of the rows that came, as "2 3 4". */
struct seen {
    const struct fake_records *records;
    char text[256];
    size_t stop_after; /* 0: never */
    size_t n;
};

static bool on_row(void *ctx, const struct store_row *row)
{
    struct seen *seen = ctx;
    const struct sink_record *r = &seen->records->items[row->seq - 1];
    size_t len = strlen(seen->text);

    assert_true(slice_equal(row->body, r->json));
    assert_true(slice_equal(row->journal, SLICE("journal-1")));
    assert_memory_equal(row->leaf.bytes, r->leaf.bytes, DIGEST_BYTES);
    assert_int_equal(row->type, r->type);
    assert_int_equal(row->time_us, fake_time((int64_t)row->seq));
    (void)snprintf(seen->text + len, sizeof(seen->text) - len, "%s%d", len > 0 ? " " : "",
                   (int)row->seq);
    return ++seen->n != seen->stop_after;
}

static struct seen ask(struct fixture *f, struct store_filter filter, size_t stop_after)
{
    struct seen seen = { .records = &f->records, .stop_after = stop_after };
    struct err err;

    if (!under_test->ops->select(f->store, &filter, on_row, &seen, &err)) {
        fail_msg("%s", err.text);
    }
    return seen;
}

static void conditions_choose_records(void **state)
{
    static const struct {
        struct store_filter filter;
        const char *rows;
    } cases[] = {
        { { 0 }, "1 2 3 4 5 6 7" },
        { { .newest_first = true }, "7 6 5 4 3 2 1" },
        { { .types = 1U << RECORD_HOOK_EVALUATION }, "2 4 5" },
        { { .types = 1U << RECORD_TOOL_EXECUTION | 1U << RECORD_GAP }, "3 6 7" },
        { { .types = 1U << RECORD_HOOK_REGISTRY }, "1" },
        { { .types = 1U << RECORD_CHECKPOINT }, "" },
        { { .thread_id = SLICE("t1") }, "2 3 4" },
        { { .thread_id = SLICE("t1"), .types = 1U << RECORD_GAP }, "" },
        { { .thread_id = SLICE("T1") }, "" },
        { { .call_id = SLICE("c1") }, "2 3" },
        { { .call_id = SLICE("c'2") }, "7" },
        { { .call_id = SLICE("' OR 1=1 --") }, "" },
        { { .tool_name = SLICE("ReadFile") }, "7" },
        { { .event = SLICE("Stop") }, "4 5" },
        { { .event = SLICE("Stop"), .thread_id = SLICE("t2") }, "5" },
        { { .contract = SLICE("sre") }, "1 2 3 4 7" },
        { { .config_digest = SLICE("d1") }, "1 2" },
        { { .dispatch_id = SLICE("dispatch-1") }, "2 3" },
        { { .id = SLICE("00000000-0000-7000-8000-000000000006") }, "6" },
        { { .limit = 2 }, "1 2" },
        { { .limit = 2, .newest_first = true }, "7 6" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct seen seen = ask(*state, cases[i].filter, 0);

        if (strcmp(seen.text, cases[i].rows) != 0) {
            fail_msg("case %zu: '%s', not '%s'", i, seen.text, cases[i].rows);
        }
    }
}

static void a_period_begins_with_its_first_moment_and_ends_before_its_last(void **state)
{
    struct store_filter filter = { .from_us = fake_time(2), .to_us = fake_time(5) };

    assert_string_equal(ask(*state, filter, 0).text, "2 3 4");
}

static void the_caller_can_stop(void **state)
{
    assert_string_equal(ask(*state, (struct store_filter){ 0 }, 3).text, "1 2 3");
    assert_string_equal(ask(*state, (struct store_filter){ 0 }, 0).text, "1 2 3 4 5 6 7");
}

static bool on_position(void *ctx, const struct store_position *p)
{
    uint64_t *next = ctx;

    assert_true(slice_equal(p->journal, SLICE("journal-1")));
    *next = p->next_seq;
    return true;
}

static void the_position_tells_what_is_loaded(void **state)
{
    struct fixture *f = *state;
    uint64_t next = 0;
    struct err err;

    assert_true(under_test->ops->positions(f->store, on_position, &next, &err));
    assert_int_equal(next, 8);
}

int store_contract_run(const struct store_under_test *t)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(conditions_choose_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_period_begins_with_its_first_moment_and_ends_before_its_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_caller_can_stop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_position_tells_what_is_loaded, set_up, tear_down),
    };

    under_test = t;
    return cmocka_run_group_tests_name(t->name, tests, NULL, NULL);
}
