#include "collector/sql/schema.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

static const char *path(void)
{
    return fake_folder_file("t.db");
}

static struct sqlite *open_as(enum sqlite_mode mode)
{
    struct sqlite *s = NULL;
    struct err err;

    assert_true(sqlite_open(path(), mode, 200, &s, &err));
    return s;
}

static int64_t number(struct sqlite *s, const char *sql)
{
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;
    struct err err;
    bool row = false;

    assert_int_equal(sqlite_prepare(s, sql, &stmt, &err), SQL_DONE);
    assert_int_equal(sqlite_step(s, stmt, &row, &err), SQL_DONE);
    assert_true(row);
    return sqlite3_column_int64(stmt, 0);
}

static void a_new_store_gets_every_migration_and_a_second_time_none(void **state)
{
    (void)state;
    CLEANUP(sqlite_closep) struct sqlite *s = open_as(SQLITE_TO_WRITE);
    struct err err;

    assert_int_equal(sqlite_migrate(s, &err), SQL_DONE);
    assert_int_equal(sqlite_migrate(s, &err), SQL_DONE);
    assert_int_equal(number(s, "SELECT count(*) FROM schema_version"), migrations_sqlite_count);
    assert_true(sqlite_check_schema(s, &err));
}

static void the_embedded_list_is_in_order_and_without_holes(void **state)
{
    (void)state;
    for (size_t i = 0; i < migrations_sqlite_count; i++) {
        assert_int_equal(migrations_sqlite[i].version, i + 1);
    }
}

static void a_reader_takes_its_own_version_and_the_one_before(void **state)
{
    enum { KNOWN = 7 };
    static const struct {
        int64_t there;
        enum err_code code;
        const char *says;
    } cases[] = {
        { -1, ERR_INVALID, "another program's" },
        { 0, ERR_NOT_FOUND, "the store is empty" },
        { 1, ERR_INVALID, "version 1, this program reads 6 and 7: hooktrail ship brings" },
        { 5, ERR_INVALID, "version 5, this program reads 6 and 7: hooktrail ship brings" },
        { 6, ERR_NONE, "" },
        { 7, ERR_NONE, "" },
        { 8, ERR_INVALID, "version 8, this program knows up to 7: use the newer" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = { 0 };

        assert_int_equal(migration_may_read(cases[i].there, KNOWN, &err),
                         cases[i].code == ERR_NONE);
        assert_int_equal(err.code, cases[i].code);
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

static void a_newer_schema_is_refused_in_words(void **state)
{
    (void)state;
    CLEANUP(sqlite_closep) struct sqlite *s = open_as(SQLITE_TO_WRITE);
    struct err err;

    assert_int_equal(sqlite_migrate(s, &err), SQL_DONE);
    assert_int_equal(sqlite_exec(s, "INSERT INTO schema_version VALUES (99, 'later', '')", &err),
                     SQL_DONE);

    assert_int_equal(sqlite_migrate(s, &err), SQL_REFUSED);
    assert_non_null(strstr(err.text, "version 99"));
    assert_non_null(strstr(err.text, "newer hooktrail"));
    assert_false(sqlite_check_schema(s, &err));
    assert_int_equal(err.code, ERR_INVALID);
}

static void a_failed_migration_leaves_the_version_before_it_whole(void **state)
{
    (void)state;
    static const struct migration list[] = {
        { 1, "one",
          "CREATE TABLE schema_version (version INTEGER, name TEXT, applied_at TEXT);"
          "CREATE TABLE hook_evaluation (x);" },
        { 2, "two", "CREATE TABLE a (x); CREATE TABLE a (x);" },
    };
    CLEANUP(sqlite_closep) struct sqlite *s = open_as(SQLITE_TO_WRITE);
    struct err err;

    assert_int_equal(sqlite_migrate_with(s, list, 1, &err), SQL_DONE);
    assert_int_equal(sqlite_migrate_with(s, list, 2, &err), SQL_REFUSED);
    assert_non_null(strstr(err.text, "migration 2 (two)"));
    assert_int_equal(number(s, "SELECT max(version) FROM schema_version"), 1);
    assert_int_equal(number(s, "SELECT count(*) FROM sqlite_schema WHERE name = 'a'"), 0);
}

/* Many have a table of that name, and may have our columns in it. */
static void another_programs_database_is_left_alone(void **state)
{
    static const char *const theirs[] = {
        "CREATE TABLE theirs (x)",
        "CREATE TABLE schema_version (installed_rank INTEGER, version TEXT)",
        "CREATE TABLE schema_version (version INTEGER, name TEXT)",
        "CREATE TABLE hook_evaluation (x)",
        "CREATE TABLE schema_version (version INTEGER); CREATE TABLE hook_evaluation (x)",
    };
    CLEANUP(sqlite_closep) struct sqlite *s = open_as(SQLITE_TO_WRITE);
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(theirs); i++) {
        assert_int_equal(sqlite_exec(s, theirs[i], &err), SQL_DONE);

        int64_t before = number(s, "SELECT count(*) FROM sqlite_schema");

        assert_int_equal(sqlite_migrate(s, &err), SQL_REFUSED);
        assert_non_null(strstr(err.text, "another program's"));
        assert_int_equal(number(s, "SELECT count(*) FROM sqlite_schema"), before);
        assert_false(sqlite_check_schema(s, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.text, "another program's"));
        assert_int_equal(sqlite_exec(s,
                                     "DROP TABLE IF EXISTS theirs; DROP TABLE IF EXISTS "
                                     "schema_version; DROP TABLE IF EXISTS hook_evaluation",
                                     &err),
                         SQL_DONE);
    }
}

static void a_reader_makes_nothing_and_says_that_there_is_no_store(void **state)
{
    (void)state;
    struct sqlite *s = NULL;
    struct err err;

    assert_false(sqlite_open(path(), SQLITE_TO_READ, 200, &s, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(access(path(), F_OK), -1);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    (void)state;
    FILE *f = fopen(path(), "we");
    struct sqlite *s = NULL;
    struct err err;

    assert_non_null(f);
    (void)fputs("this is a text, long enough to be looked at as a header, and it is none; "
                "SQLite reads a hundred bytes.",
                f);
    (void)fclose(f);
    assert_false(sqlite_open(path(), SQLITE_TO_WRITE, 200, &s, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, "t.db"));
}

static void a_reader_cannot_write(void **state)
{
    (void)state;
    CLEANUP(sqlite_closep) struct sqlite *w = open_as(SQLITE_TO_WRITE);
    struct err err;

    assert_int_equal(sqlite_migrate(w, &err), SQL_DONE);

    CLEANUP(sqlite_closep) struct sqlite *r = open_as(SQLITE_TO_READ);

    assert_int_equal(sqlite_exec(r, "DELETE FROM position", &err), SQL_REFUSED);
}

static void a_lock_that_stays_ends_in_again_within_the_time(void **state)
{
    (void)state;
    CLEANUP(sqlite_closep) struct sqlite *one = open_as(SQLITE_TO_WRITE);
    CLEANUP(sqlite_closep) struct sqlite *two = open_as(SQLITE_TO_WRITE);
    struct err err;

    assert_int_equal(sqlite_exec(one, "BEGIN IMMEDIATE", &err), SQL_DONE);
    sqlite_arm(two);
    assert_int_equal(sqlite_exec(two, "BEGIN IMMEDIATE", &err), SQL_AGAIN);
    assert_int_equal(err.code, ERR_AGAIN);
}

static void a_query_without_end_is_ended(void **state)
{
    (void)state;
    CLEANUP(sqlite_closep) struct sqlite *s = open_as(SQLITE_TO_WRITE);
    struct err err;

    sqlite_arm(s);
    assert_int_equal(sqlite_exec(s,
                                 "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
                                 " SELECT max(x) FROM n",
                                 &err),
                     SQL_AGAIN);
    assert_string_equal(err.text, "took longer than 200 ms");
}

static void what_sqlite_refuses_falls_into_the_right_class(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        enum sql_class want;
    } cases[] = {
        { "INSERT INTO t VALUES (1, 1)", SQL_DONE },
        { "INSERT INTO t VALUES (1, 1)", SQL_REFUSED },     /* there already */
        { "INSERT INTO t VALUES (2, NULL)", SQL_DATA },     /* not null */
        { "INSERT INTO t VALUES (3, 'text')", SQL_DATA },   /* the type */
        { "INSERT INTO t VALUES (4, 1000)", SQL_DATA },     /* the check */
        { "INSERT INTO t (gone) VALUES (1)", SQL_REFUSED }, /* a column that is not there */
        { "INSERT INTO none VALUES (1)", SQL_REFUSED },
    };
    CLEANUP(sqlite_closep) struct sqlite *s = open_as(SQLITE_TO_WRITE);
    struct err err;

    assert_int_equal(
        sqlite_exec(s,
                    "CREATE TABLE t (a INTEGER NOT NULL, b INTEGER NOT NULL CHECK (b < 100),"
                    " PRIMARY KEY (a)) STRICT, WITHOUT ROWID",
                    &err),
        SQL_DONE);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(sqlite_exec(s, cases[i].sql, &err), cases[i].want);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_store_gets_every_migration_and_a_second_time_none),
        TEST(the_embedded_list_is_in_order_and_without_holes),
        TEST(a_reader_takes_its_own_version_and_the_one_before),
        TEST(a_newer_schema_is_refused_in_words),
        TEST(a_failed_migration_leaves_the_version_before_it_whole),
        TEST(another_programs_database_is_left_alone),
        TEST(a_reader_makes_nothing_and_says_that_there_is_no_store),
        TEST(a_file_that_is_no_database_is_refused),
        TEST(a_reader_cannot_write),
        TEST(a_lock_that_stays_ends_in_again_within_the_time),
        TEST(a_query_without_end_is_ended),
        TEST(what_sqlite_refuses_falls_into_the_right_class),
    };

    return cmocka_run_group_tests_name("sql/schema", tests, NULL, NULL);
}
