#include "sinks/postgres_minutes.h"

enum {
    SQL_LIMIT_BYTES = 8192,
    FULL_BYTES = 1024 * 1024,            /* of counts that are sent at once */
    MAX_BYTES = FULL_BYTES + 256 * 1024, /* and one more row fits: its texts stand in a record */
};

/* Counts of both kinds as they arrive; a chain's have no hook. */
static const char make_table[] =
    "CREATE TEMP TABLE minute_in (of_hook bigint NOT NULL, LIKE hook_minute) ON COMMIT DELETE ROWS";
static const char copy_in[] = "COPY minute_in FROM STDIN (FORMAT binary)";

#define CHAIN_KEY "minute, journal, contract, hook_event_type, tool_name, decision"
#define HOOK_KEY CHAIN_KEY ", hook_name, tier, skip_reason, cause"

enum sql_class postgres_minutes_open(struct postgres *db, struct err *err)
{
    return postgres_exec(db, make_table, err);
}

/* In the order of hook_minute's columns. */
static void put_counts(struct buf *out, struct slice source, const struct rollup_row *r)
{
    const struct rollup_key *k = &r->key;

    postgres_put_row(out, 14 + (size_t)HISTOGRAM_BUCKETS);
    postgres_put_integer(out, k->of_hook);
    postgres_put_integer(out, k->minute);
    postgres_put_bytes(out, source);
    postgres_put_bytes(out, k->contract);
    postgres_put_bytes(out, k->hook_event_type);
    postgres_put_bytes(out, k->tool_name);
    postgres_put_bytes(out, k->hook_name);
    postgres_put_bytes(out, k->tier);
    postgres_put_bytes(out, k->decision);
    postgres_put_bytes(out, k->skip_reason);
    postgres_put_bytes(out, k->cause);
    postgres_put_integer(out, r->n);
    postgres_put_integer(out, r->duration_us);
    postgres_put_integer(out, r->duration_max_us);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        postgres_put_integer(out, r->buckets[i]);
    }
}

static enum sql_class send(struct postgres *db, struct slice source, const struct rollup *counts,
                           struct err *err)
{
    CLEANUP(buf_done) struct buf rows;
    enum sql_class class = SQL_DONE;
    uint64_t n = 0;

    buf_init(&rows, MAX_BYTES);
    for (size_t i = 0; class == SQL_DONE && i < counts->n_rows; i++) {
        put_counts(&rows, source, &counts->rows[i]);
        n++;
        if (rows.len_bytes >= FULL_BYTES) {
            class = postgres_copy_rows(db, copy_in, buf_slice(&rows), n, err);
            buf_clear(&rows);
            n = 0;
        }
    }
    return class == SQL_DONE ? postgres_copy_rows(db, copy_in, buf_slice(&rows), n, err) : class;
}

/* In the order of the key: no two writers deadlock. */
static void merge_sql(struct buf *sql, const char *table, const char *key, int of_hook)
{
    CLEANUP(buf_done) struct buf counts;

    buf_init(&counts, SQL_LIMIT_BYTES);
    buf_add(&counts, SLICE("n, duration_us, duration_max_us"));
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        buf_addf(&counts, ", %s", histogram_columns[i]);
    }
    buf_addf(sql,
             "INSERT INTO %s AS t (%s, %s) SELECT %s, %s FROM minute_in WHERE of_hook = %d "
             "ORDER BY %s ON CONFLICT (%s) DO UPDATE SET "
             "n = t.n + excluded.n, duration_us = t.duration_us + excluded.duration_us, "
             "duration_max_us = greatest(t.duration_max_us, excluded.duration_max_us)",
             table, key, buf_cstr(&counts), key, buf_cstr(&counts), of_hook, key, key);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const char *c = histogram_columns[i];

        buf_addf(sql, ", %s = t.%s + excluded.%s", c, c, c);
    }
    buf_add(sql, SLICE(";"));
}

static enum sql_class merge(struct postgres *db, struct err *err)
{
    CLEANUP(buf_done) struct buf sql;

    buf_init(&sql, SQL_LIMIT_BYTES);
    merge_sql(&sql, "evaluation_minute", CHAIN_KEY, 0);
    merge_sql(&sql, "hook_minute", HOOK_KEY, 1);
    return postgres_exec(db, buf_cstr(&sql), err);
}

enum sql_class postgres_minutes_add(struct postgres *db, struct slice source,
                                    const struct rollup *counts, struct err *err)
{
    enum sql_class class = SQL_DONE;

    if (counts->n_rows > 0) {
        class = send(db, source, counts, err);
        class = class == SQL_DONE ? merge(db, err) : class;
    }
    return class;
}
