/*
 * The PostgreSQL driver and store against a real server, whose dsn is the only
 * argument: tests/integration/test_drivers.py starts one and runs this.
 */
#include <stdio.h>
#include <string.h>

#include "collector/sql/postgres.h"
#include "sinks/postgres.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/unit.h"

static const char *dsn;

static struct postgres *open_db(void)
{
    struct postgres *db = NULL;
    struct err err = { 0 };

    if (!postgres_open(dsn, POSTGRES_TO_WRITE, 10000, &db, &err)) {
        fail_msg("%s", err.text);
    }
    return db;
}

static void reset(void)
{
    CLEANUP(postgres_closep) struct postgres *db = open_db();
    struct err err = { 0 };

    if (postgres_exec(db, "DROP SCHEMA public CASCADE; CREATE SCHEMA public", &err) != SQL_DONE) {
        fail_msg("%s", err.text);
    }
}

static bool keep_number(void *ctx, const PGresult *row)
{
    *(int64_t *)ctx = postgres_integer(row, 0);
    return false;
}

static uint64_t count(struct slice journal)
{
    CLEANUP(postgres_closep) struct postgres *db = open_db();
    const struct postgres_value value = { .kind = POSTGRES_TEXT, .text = journal };
    struct err err = { 0 };
    int64_t n = 0;

    if (postgres_query(db,
                       "SELECT ((SELECT count(*) FROM hook_evaluation WHERE journal = $1)"
                       " + (SELECT count(*) FROM tool_execution WHERE journal = $1)"
                       " + (SELECT count(*) FROM audit_record WHERE journal = $1))::int8",
                       &value, 1, keep_number, &n, NULL, &err) != SQL_DONE) {
        fail_msg("%s", err.text);
    }
    return (uint64_t)n;
}

int main(int argc, char **argv)
{
    struct sink_config cfg = { .timeout_ms = 10000, .name = "postgres", .state_dir = "/tmp" };
    const struct sink_subject subject = {
        .name = "sinks/postgres",
        .ops = &sink_postgres_ops,
        .cfg = &cfg,
        .reset = reset,
        .count = count,
        .refuses_data = true,
    };

    if (argc != 2) {
        (void)fputs("usage: live_sink_postgres DSN\n", stderr);
        return 2;
    }
    dsn = argv[1];
    cfg.target = slice_from_cstr(dsn);
    return sink_contract_run(&subject);
}
