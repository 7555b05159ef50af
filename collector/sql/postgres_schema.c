#include "collector/sql/postgres_schema.h"

static enum sql_class ask_number(struct postgres *p, const char *sql, int64_t *ret, struct err *err)
{
    *ret = 0;
    return postgres_query(p, sql, NULL, 0, postgres_keep_integer, ret, NULL, err);
}

/* 0: no table of versions; 1: it is ours (others have one of that name, too). */
static const char whose_sql[] =
    "SELECT CASE WHEN to_regclass('schema_version') IS NULL THEN 0 "
    "WHEN to_regclass('hook_evaluation') IS NOT NULL AND count(*) = 2 THEN 1 ELSE -1 END "
    "FROM pg_attribute WHERE attrelid = to_regclass('schema_version') AND NOT attisdropped "
    "AND (attname, atttypid) IN (('version', 'int4'::regtype), ('name', 'text'::regtype))";

/* 0: no schema of ours there. -1: another program's. */
static enum sql_class current_version(struct postgres *p, int64_t *ret, struct err *err)
{
    enum sql_class class = ask_number(p, whose_sql, ret, err);

    if (class != SQL_DONE || *ret <= 0) {
        return class;
    }
    return ask_number(p, "SELECT coalesce(max(version), 0)::int8 FROM schema_version", ret, err);
}

static enum sql_class apply(struct postgres *p, const struct migration *m, struct err *err)
{
    const struct postgres_value values[] = {
        postgres_of_integer(m->version),
        postgres_of_text(slice_from_cstr(m->name)),
    };
    enum sql_class class = postgres_exec(p, m->sql, err);

    if (class == SQL_DONE) {
        class = postgres_query(p, "INSERT INTO schema_version (version, name) VALUES ($1, $2)",
                               values, 2, NULL, NULL, NULL, err);
    }
    if (class != SQL_DONE) {
        (void)err_wrap(err, "migration %d (%s)", m->version, m->name);
    }
    return class;
}

/* Under the lock: of several that start at once, the others find it done. */
static enum sql_class apply_missing(struct postgres *p, struct err *err)
{
    int64_t there = 0;
    enum sql_class class =
        postgres_exec(p, "SELECT pg_advisory_xact_lock(hashtext('hooktrail_migrate'))", err);

    if (class == SQL_DONE) {
        class = current_version(p, &there, err);
    }
    if (class == SQL_DONE && !migration_may_update(there, migrations_postgres_count, err)) {
        return SQL_REFUSED;
    }
    for (size_t i = (size_t)there; class == SQL_DONE && i < migrations_postgres_count; i++) {
        class = apply(p, &migrations_postgres[i], err);
    }
    return class;
}

enum sql_class postgres_migrate(struct postgres *p, struct err *err)
{
    enum sql_class class = postgres_exec(p, "BEGIN", err);
    struct err ignored; /* the first refusal is what is told */

    if (class != SQL_DONE) {
        return class;
    }
    class = apply_missing(p, err);
    if (class == SQL_DONE) {
        return postgres_exec(p, "COMMIT", err);
    }
    return postgres_exec(p, "ROLLBACK", &ignored) == SQL_LOST ? SQL_LOST : class;
}

bool postgres_check_schema(struct postgres *p, struct err *err)
{
    int64_t there = 0;

    if (current_version(p, &there, err) != SQL_DONE) {
        return false;
    }
    return migration_may_read(there, migrations_postgres_count, err);
}
