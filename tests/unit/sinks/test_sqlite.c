#include "sinks/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/sql/schema.h"
#include "collector/sql/sqlite.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

static char path[64];
static struct sink_config cfg = { .timeout_ms = 2000, .name = "sqlite" };

static void remove_store(void)
{
    static const char *const names[] = { "t.db", "t.db-wal", "t.db-shm" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)unlink(fake_folder_file(names[i]));
    }
}

static struct sqlite *open_store(enum sqlite_mode mode)
{
    struct sqlite *db = NULL;
    struct err err = { 0 };

    if (!sqlite_open(path, mode, 2000, &db, &err)) {
        fail_msg("%s", err.text);
    }
    return db;
}

/* Text of the only cell of a query's only row; valid until the next question. */
static const char *ask(const char *sql)
{
    static char text[256];
    CLEANUP(sqlite_closep) struct sqlite *db = open_store(SQLITE_TO_READ);
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;
    struct err err = { 0 };
    bool row = false;

    if (sqlite_prepare(db, sql, &stmt, &err) != SQL_DONE ||
        sqlite_step(db, stmt, &row, &err) != SQL_DONE) {
        fail_msg("%s: %s", sql, err.text);
    }
    (void)snprintf(text, sizeof(text), "%" SLICE_FMT, SLICE_ARG(sqlite_column_slice(stmt, 0)));
    return text;
}

static void assert_told(const char *sql, const char *expected)
{
    assert_string_equal(ask(sql), expected);
}

static int64_t number(const char *sql)
{
    return strtoll(ask(sql), NULL, 10);
}

static void change(const char *sql)
{
    CLEANUP(sqlite_closep) struct sqlite *db = open_store(SQLITE_TO_WRITE);
    struct err err = { 0 };

    if (sqlite_exec(db, sql, &err) != SQL_DONE) {
        fail_msg("%s: %s", sql, err.text);
    }
}

static uint64_t count(struct slice journal)
{
    (void)journal; /* the suite writes to one */
    return (uint64_t)number("SELECT (SELECT count(*) FROM hook_evaluation)"
                            " + (SELECT count(*) FROM tool_execution)"
                            " + (SELECT count(*) FROM audit_record)");
}

#define J_TEXT "0190a000-0000-7000-8000-000000000001"
#define J SLICE(J_TEXT)

static struct sink *open_sink(void)
{
    struct sink *s = NULL;
    struct err err = { 0 };

    if (!sink_sqlite_ops.open(&cfg, &s, &err)) {
        fail_msg("%s", err.text);
    }
    return s;
}

static enum sink_result write_some(struct sink *s, uint64_t from, size_t n, struct err *err)
{
    CLEANUP(sink_samples_freep) struct sink_samples *samples = sink_samples_new(from, n);
    const struct span span = { .journal = J,
                               .from = from,
                               .to = from + n - 1,
                               .records = sink_samples_list(samples),
                               .n = n };

    return s->ops->write(s, &span, err);
}

static struct sink *the_sink; /* opened before each test */

static int open_it(void **state)
{
    (void)state;
    remove_store();
    the_sink = open_sink();
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    sink_sqlite_ops.close(the_sink);
    remove_store();
    return 0;
}

static void a_record_has_its_row_and_each_hook_that_ran_has_one(void **state)
{
    (void)state;
    struct err err = { 0 };

    assert_int_equal(write_some(the_sink, 1, 1, &err), SINK_OK);
    assert_told(
        "SELECT contract || ' ' || thread_id || ' ' || final_decision || ' ' || hooks_run"
        " || ' ' || duration_us || ' ' || json_extract(body, '$.tool_name') FROM hook_evaluation",
        "sre thread-1 deny 2 2500 Bash");
    assert_told("SELECT group_concat(hook_name || '=' || decision || '/' || tier, ' ')"
                " FROM hook_execution",
                "deny-rm=deny/system log-all=pass/agent");
    assert_int_equal(number("SELECT count(*) FROM hook_execution x JOIN hook_evaluation e"
                            " ON x.id = e.id || '.' || x.ordinal AND x.leaf = e.leaf"
                            " AND json_extract(x.body, '$.id') = x.id"),
                     2);
}

static void rollups_count_chains_and_hooks_and_agree_with_the_rows(void **state)
{
    (void)state;
    struct err err = { 0 };

    /* Two batches: the second adds to the rows of the first. 100 evaluations, 100 tools. */
    assert_int_equal(write_some(the_sink, 1, 100, &err), SINK_OK);
    assert_int_equal(write_some(the_sink, 101, 100, &err), SINK_OK);
    assert_int_equal(number("SELECT sum(n) FROM evaluation_minute"), 100);
    assert_int_equal(number("SELECT sum(d_5ms) FROM evaluation_minute"), 100);
    assert_int_equal(number("SELECT max(duration_max_us) FROM evaluation_minute"), 2500);
    assert_int_equal(number("SELECT sum(duration_us) FROM evaluation_minute"), 250000);
    assert_int_equal(number("SELECT sum(n) FROM hook_minute WHERE hook_name = 'late'"
                            " AND decision = 'skipped' AND skip_reason = 'short_circuit'"),
                     100);
    assert_int_equal(number("SELECT sum(d_100us + d_1ms + d_2ms + d_more) FROM hook_minute"
                            " WHERE hook_name = 'late'"),
                     0);
    assert_int_equal(number("SELECT sum(d_2ms) FROM hook_minute WHERE hook_name = 'deny-rm'"
                            " AND tier = 'system'"),
                     100);
    assert_int_equal(number("SELECT count(*) FROM (SELECT minute, sum(n) n FROM evaluation_minute"
                            " GROUP BY minute) JOIN (SELECT time / 60000000 m, count(*) c"
                            " FROM hook_evaluation GROUP BY m) ON m = minute AND c <> n"),
                     0);
}

static void the_contracts_views_have_its_names_and_leave_out_passes(void **state)
{
    (void)state;
    struct err err = { 0 };

    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_OK);
    assert_told("SELECT \"timestamp\" || ' ' || \"ThreadId\" || ' ' || \"FinalDecision\" || ' '"
                " || \"HooksConfigured\" || ' ' || \"DurationMs\" FROM \"AgentHookEvaluation\"",
                "2025-11-30T14:30:01.000000Z thread-1 deny 3 2");
    assert_told("SELECT group_concat(\"HookName\" || \"Decision\" || \"Reason\" || \"DurationMs\")"
                " FROM \"AgentHookExecution\"",
                "deny-rmdenyno1");
    assert_told("SELECT \"EventType\" || \"ToolName\" || \"CallId\" || \"ToolInput\""
                " FROM \"AgentToolExecution\"",
                "startBashcall-1{\"command\":\"ls\"}");
}

static void a_chain_that_was_cancelled_or_ran_nothing_has_no_telemetry(void **state)
{
    (void)state;
    struct err err = { 0 };

    assert_int_equal(write_some(the_sink, 1, 1, &err), SINK_OK);
    change("UPDATE hook_evaluation SET final_decision = 'cancelled'");
    change("UPDATE hook_execution SET final_decision = 'cancelled'");
    assert_int_equal(number("SELECT count(*) FROM \"AgentHookEvaluation\""), 0);
    assert_int_equal(number("SELECT count(*) FROM \"AgentHookExecution\""), 0);
    change("UPDATE hook_evaluation SET final_decision = 'pass', hooks_run = 0");
    assert_int_equal(number("SELECT count(*) FROM \"AgentHookEvaluation\""), 0);
}

static void a_dropped_column_stops_the_sink_and_buries_nothing(void **state)
{
    (void)state;
    struct err err = { 0 };

    change("DROP VIEW \"AgentHookEvaluation\"");
    change("ALTER TABLE hook_evaluation DROP COLUMN user_id");
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_BROKEN);
    assert_int_equal(count(J), 0);
    change("ALTER TABLE hook_evaluation ADD COLUMN user_id TEXT");
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_OK);
}

static void a_refusal_of_the_values_rejects_and_a_lock_retries(void **state)
{
    (void)state;
    struct err err = { 0 };

    change("CREATE TRIGGER poison BEFORE INSERT ON hook_evaluation BEGIN"
           " SELECT RAISE(ABORT, 'poison'); END");
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_REJECT);
    assert_string_equal(err.text, "poison");
    change("DROP TRIGGER poison");

    CLEANUP(sqlite_closep) struct sqlite *other = open_store(SQLITE_TO_WRITE);

    assert_int_equal(sqlite_exec(other, "BEGIN IMMEDIATE", &err), SQL_DONE);
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_RETRY);
    assert_int_equal(sqlite_exec(other, "ROLLBACK", &err), SQL_DONE);
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_OK);
}

static void a_count_that_is_refused_stops_the_sink_and_buries_nothing(void **state)
{
    (void)state;
    struct err err = { 0 };

    change(
        "CREATE TRIGGER full BEFORE INSERT ON hook_minute BEGIN SELECT RAISE(ABORT, 'full'); END");
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_BROKEN);
    assert_string_equal(err.text, "full");
    assert_int_equal(count(J), 0);
    change("DROP TRIGGER full");
    assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_OK);
}

static void a_restored_older_store_is_told_in_words(void **state)
{
    (void)state;
    struct err err = { 0 };

    assert_int_equal(write_some(the_sink, 1, 10, &err), SINK_OK);
    change("UPDATE position SET next_seq = 5");
    assert_int_equal(write_some(the_sink, 11, 2, &err), SINK_DOWN);
    assert_non_null(strstr(err.text, "stands at 5"));
    assert_non_null(strstr(err.text, "restored"));
}

static void a_store_of_the_version_before_is_brought_up_to_date_and_goes_on(void **state)
{
    (void)state;
    struct sink_position at;
    struct err err = { 0 };

    sink_sqlite_ops.close(the_sink);
    remove_store();
    {
        CLEANUP(sqlite_closep) struct sqlite *db = open_store(SQLITE_TO_WRITE);

        assert_int_equal(sqlite_migrate_with(db, migrations_sqlite, 1, &err), SQL_DONE);
    }
    change("INSERT INTO position VALUES ('" J_TEXT "', 5)");
    the_sink = open_sink();
    assert_true(the_sink->ops->position(the_sink, J, &at, &err));
    assert_int_equal(at.next, 5);
    assert_int_equal(at.last, 0);
    assert_int_equal(write_some(the_sink, 5, 2, &err), SINK_OK);
    assert_true(the_sink->ops->position(the_sink, J, &at, &err));
    assert_int_equal(at.next, 7);
    assert_int_equal(at.last, 6);
}

static void a_record_of_a_newer_program_stops_the_sink(void **state)
{
    (void)state;
    const struct sink_record r = {
        .seq = 1,
        .type = RECORD_HOOK_EVALUATION,
        .json = SLICE("{\"type\":\"hook_evaluation\",\"schema\":99,\"id\":\"x\"}"),
    };
    const struct span span = { .journal = J, .from = 1, .to = 1, .records = &r, .n = 1 };
    struct err err = { 0 };

    assert_int_equal(the_sink->ops->write(the_sink, &span, &err), SINK_BROKEN);
    assert_non_null(strstr(err.text, "schema 99"));
}

/* One cut, as the runner does it; how many records it was told to have. */
static uint64_t cut_a_day(int64_t now_us, int64_t *ret_before_us, int *ret_steps)
{
    struct err err = { 0 };
    struct sink_cut cut;
    bool done = false;

    assert_int_equal(the_sink->ops->cut_due(the_sink, now_us, &cut, &err), SINK_OK);
    *ret_before_us = cut.before_us;
    for (*ret_steps = 0; cut.before_us > 0 && !done && *ret_steps < 50; (*ret_steps)++) {
        assert_int_equal(the_sink->ops->cut_step(the_sink, &cut, &done, &err), SINK_OK);
    }
    return cut.rows;
}

/* The roll-ups of days gone go, too, and no others. */
static void retention_removes_day_by_day_what_is_older_and_its_executions(void **state)
{
    const int64_t day_us = INT64_C(86400) * 1000000;
    json_t *settings = json_pack("{s:i}", "retention_days", 10);
    struct err err = { 0 };
    int64_t before_us;
    int steps;

    (void)state;
    assert_int_equal(write_some(the_sink, 1, 1300, &err), SINK_OK);

    int64_t first_us = number("SELECT min(time) FROM hook_evaluation");
    int64_t now_us = first_us + 15 * day_us;

    change("UPDATE hook_evaluation SET time = time + 86400000000 WHERE seq > 1001");
    change("UPDATE hook_evaluation SET time = time + 19 * 86400000000 WHERE seq > 1201");
    change("UPDATE evaluation_minute SET minute = minute + 20 * 1440");
    sink_sqlite_ops.close(the_sink);
    cfg.settings = settings;
    the_sink = open_sink();
    cfg.settings = NULL;
    json_decref(settings);

    assert_int_equal(cut_a_day(now_us, &before_us, &steps), 501 + 650);
    assert_int_equal(before_us, (first_us / day_us + 1) * day_us);
    assert_in_range(steps, 3, 6);
    assert_int_equal(number("SELECT count(*) FROM hook_evaluation"), 149);
    assert_int_equal(number("SELECT count(*) FROM hook_minute"), 0);
    assert_true(number("SELECT count(*) FROM evaluation_minute") > 0);

    assert_int_equal(cut_a_day(now_us, &before_us, &steps), 100);
    assert_int_equal(before_us, (first_us / day_us + 2) * day_us);
    assert_int_equal(number("SELECT count(*) FROM hook_evaluation"), 49);
    assert_int_equal(number("SELECT count(*) FROM hook_execution"), 2 * 49);
    assert_int_equal(number("SELECT count(*) FROM tool_execution"), 0);

    assert_int_equal(cut_a_day(now_us, &before_us, &steps), 0);
    assert_int_equal(before_us, 0);
}

static void a_file_that_is_gone_is_told_and_a_new_one_takes_all_again(void **state)
{
    (void)state;
    char other[sizeof(path) + 8];
    struct err err = { 0 };

    (void)snprintf(other, sizeof(other), "%s.moved", path);
    for (int renamed = 0; renamed < 2; renamed++) {
        assert_int_equal(write_some(the_sink, 1, 1, &err), SINK_OK);
        assert_int_equal(renamed ? rename(path, other) : unlink(path), 0);
        assert_int_equal(write_some(the_sink, 2, 1, &err), SINK_DOWN);
        assert_non_null(strstr(err.text, "was removed or replaced"));
        sink_sqlite_ops.close(the_sink);
        remove_store();
        (void)unlink(other);
        the_sink = open_sink();
        assert_int_equal(write_some(the_sink, 1, 2, &err), SINK_OK);
        assert_int_equal(count(J), 2);
        close_it(NULL);
        the_sink = open_sink();
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_it, close_it)

int main(void)
{
    static const struct sink_subject subject = {
        .name = "sinks/sqlite keeps the contract",
        .ops = &sink_sqlite_ops,
        .cfg = &cfg,
        .reset = remove_store,
        .count = count,
        .refuses_data = true,
    };
    const struct CMUnitTest tests[] = {
        TEST(a_record_has_its_row_and_each_hook_that_ran_has_one),
        TEST(rollups_count_chains_and_hooks_and_agree_with_the_rows),
        TEST(the_contracts_views_have_its_names_and_leave_out_passes),
        TEST(a_chain_that_was_cancelled_or_ran_nothing_has_no_telemetry),
        TEST(a_dropped_column_stops_the_sink_and_buries_nothing),
        TEST(a_refusal_of_the_values_rejects_and_a_lock_retries),
        TEST(a_count_that_is_refused_stops_the_sink_and_buries_nothing),
        TEST(a_restored_older_store_is_told_in_words),
        TEST(a_store_of_the_version_before_is_brought_up_to_date_and_goes_on),
        TEST(a_record_of_a_newer_program_stops_the_sink),
        TEST(a_file_that_is_gone_is_told_and_a_new_one_takes_all_again),
        TEST(retention_removes_day_by_day_what_is_older_and_its_executions),
    };

    if (fake_folder_begin(NULL) != 0) {
        return 1;
    }
    (void)snprintf(path, sizeof(path), "%s", fake_folder_file("t.db"));
    cfg.target = slice_from_cstr(path);
    cfg.state_dir = fake_folder_path();

    int failed = sink_contract_run(&subject) +
                 cmocka_run_group_tests_name("sinks/sqlite", tests, NULL, NULL);

    return failed + fake_folder_end(NULL);
}
