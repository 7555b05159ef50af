#include "collector/ingress/counts.h"

#include <string.h>

#include "tests/unit/unit.h"

static struct counts counts;
static struct buf text;

static int start(void **state)
{
    (void)state;
    counts_init(&counts);
    buf_init(&text, 1 << 20);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    counts_done(&counts);
    buf_done(&text);
    return 0;
}

static bool prints(const char *line)
{
    buf_clear(&text);
    counts_print(&counts, &text);
    return strstr(buf_cstr(&text), line) != NULL;
}

static void decisions_are_counted_by_contract_event_and_decision(void **state)
{
    static const char sre[] = "sre";

    (void)state;
    counts_decision(&counts, sre, SLICE("Stop"), DECISION_PASS);
    counts_decision(&counts, sre, SLICE("Stop"), DECISION_PASS);
    counts_decision(&counts, sre, SLICE("Stop"), DECISION_DENY);

    assert_true(prints("{contract=\"sre\",event=\"Stop\",decision=\"pass\"} 2\n"));
    assert_true(prints("{contract=\"sre\",event=\"Stop\",decision=\"deny\"} 1\n"));
}

static void an_event_s_name_cannot_forge_a_line(void **state)
{
    static const char sre[] = "sre";

    (void)state;
    counts_decision(&counts, sre, SLICE("a\"} 1\nforged 2"), DECISION_PASS);

    assert_true(prints("event=\"a_}_1_forged_2\""));
    assert_false(prints("\nforged"));
}

static void more_rows_than_there_are_are_counted_as_other(void **state)
{
    static const char sre[] = "sre";
    char event[16];

    (void)state;
    for (int i = 0; i < COUNTS_ROWS + 10; i++) {
        int n = snprintf(event, sizeof(event), "e%d", i);

        counts_decision(&counts, sre, (struct slice){ .ptr = event, .len = (size_t)n },
                        DECISION_PASS);
    }
    assert_true(prints("event=\"e254\",decision=\"pass\"} 1\n"));
    assert_true(prints("{contract=\"other\",event=\"\",decision=\"\"} 11\n"));
}

static void durations_fall_into_cumulative_buckets(void **state)
{
    static const struct {
        int64_t us;
        const char *line;
    } cases[] = {
        { 100, "_bucket{le=\"0.0001\"} 1\n" },
        { 101, "_bucket{le=\"0.00025\"} 2\n" },
        { 60000000, "_bucket{le=\"60\"} 3\n" },
        { 60000001, "_bucket{le=\"+Inf\"} 4\n" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        counts_duration(&counts, cases[i].us, 1);
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(prints(cases[i].line));
    }
    assert_true(prints("hooktrail_dispatch_duration_seconds_count 4\n"));
    assert_true(prints("hooktrail_queue_seconds_total 0.000004\n"));
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        FRESH(decisions_are_counted_by_contract_event_and_decision),
        FRESH(an_event_s_name_cannot_forge_a_line),
        FRESH(more_rows_than_there_are_are_counted_as_other),
        FRESH(durations_fall_into_cumulative_buckets),
    };

    return cmocka_run_group_tests_name("ingress/counts", tests, NULL, NULL);
}
