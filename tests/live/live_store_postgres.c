/*
 * The PostgreSQL store against a real server, whose dsn is the only argument:
 * the same questions, and the same answers, as of SQLite.
 */
#include <stdio.h>

#include "collector/sql/postgres.h"
#include "queries/store.h"
#include "sinks/postgres.h"
#include "tests/unit/queries/store_contract.h"
#include "tests/unit/unit.h"

static const char *dsn;

static void run(const char *sql)
{
    CLEANUP(postgres_closep) struct postgres *db = NULL;
    struct err err = { 0 };

    if (!postgres_open(dsn, POSTGRES_TO_WRITE, 10000, &db, &err) ||
        postgres_exec(db, sql, &err) != SQL_DONE) {
        fail_msg("%s: %s", sql, err.text);
    }
}

/* As ship does it. */
static void load(void *ctx, const struct fake_records *r)
{
    const struct sink_config cfg = {
        .target = slice_from_cstr(dsn), .timeout_ms = 10000, .name = "postgres", .state_dir = "/tmp"
    };
    const struct span span = {
        .journal = SLICE("journal-1"), .from = 1, .to = r->n, .records = r->items, .n = r->n
    };
    struct sink *sink = NULL;
    struct err err;

    (void)ctx;
    run("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    if (!sink_postgres_ops.open(&cfg, &sink, &err) ||
        sink_postgres_ops.write(sink, &span, &err) != SINK_OK) {
        fail_msg("%s", err.text);
    }
    sink_postgres_ops.close(sink);
}

static bool open_it(enum err_code *ret)
{
    const struct store_config cfg = { .target = dsn, .timeout_ms = 10000 };
    struct store *s = NULL;
    struct err err = { 0 };
    bool ok = store_postgres_ops.open(&cfg, &s, &err);

    if (ok) {
        s->ops->close(s);
    }
    *ret = err.code;
    return ok;
}

static void a_database_without_a_schema_is_not_found(void **state)
{
    enum err_code code;

    (void)state;
    run("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    assert_false(open_it(&code));
    assert_int_equal(code, ERR_NOT_FOUND);
}

static void a_schema_that_is_newer_than_we_are_is_refused(void **state)
{
    struct fake_records none = { 0 };
    enum err_code code;

    (void)state;
    fake_records_gap(&none, (struct gap){ .known = true, .lost = 1, .cause = SLICE("quota") });
    load(NULL, &none);
    fake_records_done(&none);
    run("INSERT INTO schema_version (version, name) VALUES (99, 'later')");
    assert_false(open_it(&code));
    assert_int_equal(code, ERR_IO);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_without_a_schema_is_not_found),
        cmocka_unit_test(a_schema_that_is_newer_than_we_are_is_refused),
    };
    struct store_under_test postgres = { .name = "queries/store_postgres",
                                         .ops = &store_postgres_ops,
                                         .load = load };

    if (argc != 2) {
        (void)fputs("usage: live_store_postgres DSN\n", stderr);
        return 2;
    }
    dsn = argv[1];
    postgres.config = (struct store_config){ .target = dsn, .timeout_ms = 10000 };
    return store_contract_run(&postgres) +
           cmocka_run_group_tests_name("queries/store_postgres: opening", tests, NULL, NULL);
}
