/*
 * Retention: what is older than retention_days goes, day by day, oldest first, a few
 * hundred records a step, so that delivery and readers hardly notice. Roll-ups of
 * that time go with it. The time index finds the oldest without a search.
 */
#include "collector/base/clock.h"
#include "sinks/sql_result.h"
#include "sinks/sqlite_state.h"

#define CUT_STEP "500" /* records of each table: some milliseconds */

/* Executions have no time index: they go by the key of their evaluation. */
static const char *const steps[] = {
    "DELETE FROM hook_execution WHERE (journal, seq) IN (SELECT journal, seq FROM hook_evaluation"
    " WHERE time < ?1 ORDER BY time LIMIT " CUT_STEP ")",
    "DELETE FROM hook_evaluation WHERE rowid IN (SELECT rowid FROM hook_evaluation"
    " WHERE time < ?1 ORDER BY time LIMIT " CUT_STEP ")",
    "DELETE FROM tool_execution WHERE rowid IN (SELECT rowid FROM tool_execution"
    " WHERE time < ?1 ORDER BY time LIMIT " CUT_STEP ")",
    "DELETE FROM audit_record WHERE rowid IN (SELECT rowid FROM audit_record"
    " WHERE time < ?1 ORDER BY time LIMIT " CUT_STEP ")",
    "DELETE FROM evaluation_minute WHERE minute < ?1 / 60000000",
    "DELETE FROM hook_minute WHERE minute < ?1 / 60000000",
};
static const char oldest_sql[] =
    "SELECT min(time) FROM (SELECT min(time) AS time FROM hook_evaluation WHERE time < ?1"
    " UNION ALL SELECT min(time) FROM tool_execution WHERE time < ?1"
    " UNION ALL SELECT min(time) FROM audit_record WHERE time < ?1)";
static const char count_sql[] = "SELECT (SELECT count(*) FROM hook_evaluation WHERE time < ?1)"
                                " + (SELECT count(*) FROM tool_execution WHERE time < ?1)"
                                " + (SELECT count(*) FROM audit_record WHERE time < ?1)";

/* One number about what is before a time; a NULL leaves *ret as it is. */
static enum sql_class ask(struct sink_sqlite *q, const char *sql, int64_t before_us, int64_t *ret,
                          struct err *err)
{
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;
    enum sql_class class = sqlite_prepare(q->db, sql, &stmt, err);
    bool row = false;

    if (class == SQL_DONE) {
        sqlite_bind_i64(stmt, 1, before_us);
        class = sqlite_step(q->db, stmt, &row, err);
    }
    if (row && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        *ret = sqlite3_column_int64(stmt, 0);
    }
    return class;
}

enum sink_result sink_sqlite_cut_due(struct sink *s, int64_t now_us, struct sink_cut *ret,
                                     struct err *err)
{
    struct sink_sqlite *q = sink_sqlite_from(s);
    int64_t kept_us = (now_us / CLOCK_DAY_US - q->retention_days) * CLOCK_DAY_US;
    int64_t oldest_us = INT64_MAX;
    int64_t rows = 0;

    *ret = (struct sink_cut){ 0 };
    if (q->retention_days <= 0) {
        return SINK_OK;
    }
    sqlite_arm(q->db);

    enum sql_class class = ask(q, oldest_sql, kept_us, &oldest_us, err);

    if (class != SQL_DONE || oldest_us == INT64_MAX) {
        return sql_result(class);
    }
    ret->before_us = (oldest_us / CLOCK_DAY_US + 1) * CLOCK_DAY_US;
    class = ask(q, count_sql, ret->before_us, &rows, err);
    ret->rows = (uint64_t)rows;
    return sql_result(class);
}

static enum sql_class run_step(struct sink_sqlite *q, const char *sql, int64_t before_us,
                               uint64_t *removed, struct err *err)
{
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;
    enum sql_class class = sqlite_prepare(q->db, sql, &stmt, err);

    if (class == SQL_DONE) {
        sqlite_bind_i64(stmt, 1, before_us);
        class = sqlite_run(q->db, stmt, err);
    }
    if (class == SQL_DONE) {
        *removed += (uint64_t)sqlite3_changes64(q->db->db);
    }
    return class;
}

enum sink_result sink_sqlite_cut_step(struct sink *s, const struct sink_cut *cut, bool *ret_done,
                                      struct err *err)
{
    struct sink_sqlite *q = sink_sqlite_from(s);
    uint64_t removed = 0;

    sqlite_arm(q->db);

    enum sql_class class = sqlite_run(q->db, q->begin, err);

    for (size_t i = 0; class == SQL_DONE && i < sizeof(steps) / sizeof(steps[0]); i++) {
        class = run_step(q, steps[i], cut->before_us, &removed, err);
    }
    if (class == SQL_DONE) {
        class = sqlite_run(q->db, q->commit, err);
    }
    sqlite_rollback(q->db);
    *ret_done = class == SQL_DONE && removed == 0;
    return sql_result(class);
}
