#include "collector/sql/schema.h"

#include "collector/base/clock.h"

/* One number from a query that gives one row. */
static enum sql_class ask_number(struct sqlite *s, const char *sql, int64_t *ret, struct err *err)
{
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;
    bool row = false;
    enum sql_class class = sqlite_prepare(s, sql, &stmt, err);

    if (class == SQL_DONE) {
        class = sqlite_step(s, stmt, &row, err);
    }
    *ret = row ? sqlite3_column_int64(stmt, 0) : 0;
    return class;
}

/* 0: nothing at all; 1: the table of versions is ours (others have one of that name, too). */
static const char whose_sql[] =
    "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM sqlite_schema) THEN 0"
    " WHEN EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'hook_evaluation')"
    " AND (SELECT count(*) FROM pragma_table_info('schema_version')"
    " WHERE name IN ('version', 'name')) = 2 THEN 1 ELSE -1 END";

/* 0: an empty database. -1: another program's. */
static enum sql_class current_version(struct sqlite *s, int64_t *ret, struct err *err)
{
    enum sql_class class = ask_number(s, whose_sql, ret, err);

    if (class != SQL_DONE || *ret <= 0) {
        return class;
    }
    return ask_number(s, "SELECT max(version) FROM schema_version", ret, err);
}

static enum sql_class note_version(struct sqlite *s, const struct migration *m, struct err *err)
{
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;
    char now[CLOCK_TEXT_SIZE];
    enum sql_class class = sqlite_prepare(
        s, "INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, ?)", &stmt, err);

    if (class != SQL_DONE) {
        return class;
    }
    clock_format(clock_now_us(), now);
    sqlite_bind_i64(stmt, 1, m->version);
    sqlite_bind_word(stmt, 2, m->name);
    sqlite_bind_word(stmt, 3, now);
    return sqlite_run(s, stmt, err);
}

static enum sql_class apply(struct sqlite *s, const struct migration *m, struct err *err)
{
    enum sql_class class = sqlite_exec(s, m->sql, err);

    if (class == SQL_DONE) {
        class = note_version(s, m, err);
    }
    if (class != SQL_DONE) {
        (void)err_wrap(err, "migration %d (%s)", m->version, m->name);
    }
    return class;
}

static enum sql_class apply_missing(struct sqlite *s, const struct migration *list, size_t n,
                                    struct err *err)
{
    int64_t there = 0;
    enum sql_class class = current_version(s, &there, err);

    if (class != SQL_DONE) {
        return class;
    }
    if (!migration_may_update(there, n, err)) {
        return SQL_REFUSED;
    }
    for (size_t i = (size_t)there; i < n && class == SQL_DONE; i++) {
        class = apply(s, &list[i], err);
    }
    return class;
}

enum sql_class sqlite_migrate_with(struct sqlite *s, const struct migration *list, size_t n,
                                   struct err *err)
{
    /* The lock comes first, so that of several that start at once one migrates. */
    enum sql_class class = sqlite_exec(s, "BEGIN IMMEDIATE", err);

    if (class != SQL_DONE) {
        return class;
    }
    class = apply_missing(s, list, n, err);
    if (class == SQL_DONE) {
        class = sqlite_exec(s, "COMMIT", err);
    }
    if (class != SQL_DONE) {
        sqlite_rollback(s);
    }
    return class;
}

enum sql_class sqlite_migrate(struct sqlite *s, struct err *err)
{
    return sqlite_migrate_with(s, migrations_sqlite, migrations_sqlite_count, err);
}

bool sqlite_check_schema(struct sqlite *s, struct err *err)
{
    int64_t there = 0;

    if (current_version(s, &there, err) != SQL_DONE) {
        return false;
    }
    return migration_may_read(there, migrations_sqlite_count, err);
}
