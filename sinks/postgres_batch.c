#include "sinks/postgres_batch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/config.h"
#include "collector/base/mem.h"
#include "collector/sql/postgres_schema.h"
#include "sinks/sql_result.h"

enum {
    DSN_BYTES = 64 * 1024,
    COPY_FIRST_BYTES = 128 * 1024, /* the first is sent early, so that the server has work */
    COPY_FULL_BYTES = 1024 * 1024, /* later ones are larger: each costs two round trips */
    COPY_MAX_BYTES = COPY_FULL_BYTES + 2 * 1024 * 1024, /* and one more row fits */
    SQL_LIMIT_BYTES = 4096,                             /* of a statement that is built here */
    LONGEST_DAYS = 36500, /* how far back a record is filed where nothing is ever cut */
};

/* ---- Partitions --------------------------------------------------------------- */

/* The day a record is filed under: its own, or the nearest that is kept or made ahead. */
static int64_t file_under(const struct postgres_batch *b, int64_t time_us)
{
    int64_t day = time_us / CLOCK_DAY_US;
    int64_t first = b->today - (b->retention_days > 0 ? b->retention_days : LONGEST_DAYS);

    if (day < first) {
        return first > 0 ? first : 0;
    }
    return day > b->today + 1 ? b->today + 1 : day;
}

static bool is_made(const struct postgres_batch *b, int64_t day)
{
    for (size_t i = b->n_days; i > 0; i--) { /* the latest first: it is the usual one */
        if (b->days[i - 1] == day) {
            return true;
        }
    }
    return false;
}

static enum sql_class make_day(struct postgres_batch *b, int64_t day, struct err *err)
{
    const struct postgres_value value = { .kind = POSTGRES_INTEGER, .number = day };
    enum sql_class class = postgres_query(
        b->db,
        "SELECT hooktrail_make_day(name, date '1970-01-01' + $1::int) FROM "
        "unnest(ARRAY['hook_evaluation', 'hook_execution', 'tool_execution', 'audit_record']) "
        "AS name",
        &value, 1, NULL, NULL, NULL, err);

    if (class == SQL_DONE) {
        if (b->n_days == POSTGRES_DAYS) {
            b->n_days = 0;
        }
        b->days[b->n_days++] = day;
    }
    return class;
}

/* What refuses a partition is no fault of the record that asks for it. */
static enum sink_result need_day(struct postgres_batch *b, int64_t day, struct err *err)
{
    enum sql_class class;

    if (is_made(b, day)) {
        return SINK_OK;
    }
    class = postgres_copy_settle(b->db, err); /* that one may be of the data */
    if (class != SQL_DONE) {
        return sql_result(class);
    }
    class = make_day(b, day, err);
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
}

/* ---- COPY ----------------------------------------------------------------------- */

/* "COPY t (day, a, b) FROM STDIN (FORMAT binary)", columns by name: a newer schema may have more.
 */
static void copy_sql(const struct table_shape *t, struct buf *sql)
{
    buf_addf(sql, "COPY %s (day", t->name);
    for (size_t i = 0; i < t->n_columns; i++) {
        buf_addf(sql, ", %s", t->columns[i]);
    }
    buf_add(sql, SLICE(") FROM STDIN (FORMAT binary)"));
}

/* Send what `rows` holds with the statement `sql`; the buffer is then empty. Whether it was
 * taken is known later: the server works while we make more. */
static enum sql_class copy(struct postgres_batch *b, const char *sql, struct buf *rows,
                           struct err *err)
{
    enum sql_class class;

    if (rows->len_bytes == 0) {
        return SQL_DONE;
    }
    postgres_put_trailer(rows);
    assert(buf_ok(rows));
    class = postgres_copy_begin(b->db, sql, err);
    if (class == SQL_DONE) {
        class = postgres_copy_data(b->db, buf_slice(rows), err);
    }
    if (class == SQL_DONE) {
        class = postgres_copy_end(b->db, err);
    }
    buf_clear(rows);
    return class;
}

static enum sql_class copy_table(struct postgres_batch *b, enum table table, struct err *err)
{
    CLEANUP(buf_done) struct buf sql;

    buf_init(&sql, SQL_LIMIT_BYTES);
    copy_sql(&table_shapes[table], &sql);
    return copy(b, buf_cstr(&sql), &b->copy[table], err);
}

static void put_cell(struct buf *out, const struct cell *c)
{
    switch (c->kind) {
    case CELL_NULL:
        postgres_put_null(out);
        break;
    case CELL_TEXT:
    case CELL_BYTES:
        postgres_put_bytes(out, c->text);
        break;
    case CELL_INTEGER:
        postgres_put_integer(out, c->number);
        break;
    case CELL_TIME:
        postgres_put_time(out, c->number);
        break;
    }
}

static int64_t time_of(const struct row *row)
{
    for (size_t i = 0; i < table_shapes[row->table].n_columns; i++) {
        if (row->cells[i].kind == CELL_TIME) {
            return row->cells[i].number;
        }
    }
    assert(false && "a table without a time");
    return 0;
}

static enum sink_result add_row(void *ctx, const struct row *row, struct err *err)
{
    struct postgres_batch *b = ctx;
    struct buf *out = &b->copy[row->table];
    int64_t day = file_under(b, time_of(row));
    size_t n_columns = table_shapes[row->table].n_columns;
    enum sink_result result = need_day(b, day, err);

    if (result != SINK_OK) {
        return result;
    }
    if (out->len_bytes == 0) {
        postgres_put_header(out);
    }
    postgres_put_row(out, n_columns + 1);
    postgres_put_date(out, day);
    for (size_t i = 0; i < n_columns; i++) {
        put_cell(out, &row->cells[i]);
    }
    if (!buf_ok(out)) {
        (void)err_set(err, ERR_TOO_BIG, "a row of %s is too large", table_shapes[row->table].name);
        return SINK_REJECT;
    }
    if (out->len_bytes < b->full_bytes) {
        return SINK_OK;
    }
    b->full_bytes = b->full_bytes < COPY_FULL_BYTES ? 2 * b->full_bytes : COPY_FULL_BYTES;
    return sql_result(copy_table(b, row->table, err));
}

enum sink_result postgres_batch_add(struct postgres_batch *b, struct slice journal,
                                    const struct sink_record *r, struct err *err)
{
    return rows_of(&b->rows, journal, r, err);
}

static bool keep_number(void *ctx, const PGresult *row)
{
    *(int64_t *)ctx = postgres_integer(row, 0);
    return false;
}

static enum table table_of(enum record_type type)
{
    return type == RECORD_HOOK_EVALUATION  ? TABLE_EVALUATION
           : type == RECORD_TOOL_EXECUTION ? TABLE_TOOL
                                           : TABLE_AUDIT;
}

enum sink_result postgres_batch_has(struct postgres_batch *b, struct slice journal,
                                    const struct sink_record *r, bool *ret_there, struct err *err)
{
    enum table table = table_of(r->type);
    struct record_head head;
    struct slice word;
    int64_t found = 0;
    char sql[160];

    *ret_there = false;
    arena_clear(&b->rows.arena);
    if (!rows_head(r, &b->rows.arena, &head, &word, err)) {
        return rows_not_decoded(r, err);
    }

    int64_t day = file_under(b, head.time_us);
    const struct postgres_value values[] = {
        { .kind = POSTGRES_TEXT, .text = journal },
        { .kind = POSTGRES_INTEGER, .number = (int64_t)r->seq },
        { .kind = POSTGRES_TIME, .number = head.time_us },
        { .kind = POSTGRES_INTEGER, .number = day },
    };
    /* What is filed at an edge now was at another one when the edge was elsewhere. */
    bool is_own_day = day == head.time_us / CLOCK_DAY_US;
    enum sql_class class = copy_table(b, table, err);

    (void)snprintf(
        sql, sizeof(sql), "SELECT count(*) FROM %s WHERE journal = $1 AND seq = $2 AND time = $3%s",
        table_shapes[table].name, is_own_day ? " AND day = date '1970-01-01' + $4::int" : "");
    if (class == SQL_DONE) {
        class =
            postgres_query(b->db, sql, values, is_own_day ? 4 : 3, keep_number, &found, NULL, err);
    }
    *ret_there = found > 0;
    return sql_result(class);
}

enum sink_result postgres_batch_list(struct postgres_batch *b, const struct postgres_range *range,
                                     bool (*on_row)(void *ctx, const PGresult *row), void *ctx,
                                     struct err *err)
{
    const struct postgres_value values[] = {
        { .kind = POSTGRES_TEXT, .text = range->journal },
        { .kind = POSTGRES_TIME, .number = range->from_us },
        { .kind = POSTGRES_TIME, .number = range->to_us },
        { .kind = POSTGRES_INTEGER, .number = (int64_t)range->from_seq },
        { .kind = POSTGRES_INTEGER, .number = (int64_t)range->to_seq },
    };
    char sql[200];

    /* By time, not by day: it has an index, and stays what it is where a day is an edge. */
    (void)snprintf(sql, sizeof(sql),
                   "SELECT seq FROM %s WHERE journal = $1 AND time BETWEEN $2 AND $3 "
                   "AND seq BETWEEN $4 AND $5 ORDER BY seq",
                   table_shapes[table_of(range->type)].name);
    return sql_result(postgres_query(b->db, sql, values, 5, on_row, ctx, NULL, err));
}

/* ---- Roll-ups -------------------------------------------------------------------- */

#define MINUTE_KEY "minute, journal, contract, hook_event_type, tool_name, "
#define HOOK_KEY "hook_name, tier, decision, skip_reason, cause"

static const struct {
    const char *table;
    const char *key;
    const char *copy;
} minute_tables[2] = {
    { "evaluation_minute", MINUTE_KEY "decision",
      "COPY evaluation_minute_in FROM STDIN (FORMAT binary)" },
    { "hook_minute", MINUTE_KEY HOOK_KEY, "COPY hook_minute_in FROM STDIN (FORMAT binary)" },
};

static void put_minute(struct buf *out, struct slice source, const struct rollup_row *r)
{
    const struct rollup_key *k = &r->key;

    if (out->len_bytes == 0) {
        postgres_put_header(out);
    }
    postgres_put_row(out, (k->of_hook ? 13 : 9) + (size_t)HISTOGRAM_BUCKETS);
    postgres_put_integer(out, k->minute);
    postgres_put_bytes(out, source);
    postgres_put_bytes(out, k->contract);
    postgres_put_bytes(out, k->hook_event_type);
    postgres_put_bytes(out, k->tool_name);
    if (k->of_hook) {
        postgres_put_bytes(out, k->hook_name);
        postgres_put_bytes(out, k->tier);
    }
    postgres_put_bytes(out, k->decision);
    if (k->of_hook) {
        postgres_put_bytes(out, k->skip_reason);
        postgres_put_bytes(out, k->cause);
    }
    postgres_put_integer(out, r->n);
    postgres_put_integer(out, r->duration_us);
    postgres_put_integer(out, r->duration_max_us);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        postgres_put_integer(out, r->buckets[i]);
    }
}

/* Counts are added to the rows that are there, in the order of the key: no two writers deadlock. */
static void merge_sql(size_t i, struct buf *sql)
{
    buf_addf(sql,
             "INSERT INTO %s AS t SELECT * FROM %s_in ORDER BY %s ON CONFLICT (%s) DO UPDATE SET "
             "n = t.n + excluded.n, duration_us = t.duration_us + excluded.duration_us, "
             "duration_max_us = greatest(t.duration_max_us, excluded.duration_max_us)",
             minute_tables[i].table, minute_tables[i].table, minute_tables[i].key,
             minute_tables[i].key);
    for (size_t h = 0; h < HISTOGRAM_BUCKETS; h++) {
        const char *c = histogram_columns[h];

        buf_addf(sql, ", %s = t.%s + excluded.%s", c, c, c);
    }
}

static enum sql_class merge(struct postgres_batch *b, size_t i, struct slice source,
                            struct err *err)
{
    CLEANUP(buf_done) struct buf rows;
    CLEANUP(buf_done) struct buf sql;
    enum sql_class class = SQL_DONE;

    buf_init(&rows, COPY_MAX_BYTES);
    buf_init(&sql, SQL_LIMIT_BYTES);
    for (size_t n = 0; class == SQL_DONE && n < b->rollup.n_rows; n++) {
        if (b->rollup.rows[n].key.of_hook == (i == 1)) {
            put_minute(&rows, source, &b->rollup.rows[n]);
        }
        if (rows.len_bytes >= COPY_FULL_BYTES) {
            class = copy(b, minute_tables[i].copy, &rows, err);
        }
    }
    if (class == SQL_DONE) {
        class = copy(b, minute_tables[i].copy, &rows, err);
    }
    merge_sql(i, &sql);
    return class == SQL_DONE ? postgres_exec(b->db, buf_cstr(&sql), err) : class;
}

/* A count that is refused is no fault of the records: never bury them for it. */
static enum sink_result merge_rollup(struct postgres_batch *b, struct slice source, struct err *err)
{
    enum sql_class class = SQL_DONE;

    if (b->rollup.n_rows == 0) {
        return SINK_OK;
    }
    for (size_t i = 0; class == SQL_DONE && i < 2; i++) {
        class = merge(b, i, source, err);
    }
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
}

/* ---- A transaction ----------------------------------------------------------------- */

static void forget(struct postgres_batch *b)
{
    b->full_bytes = COPY_FIRST_BYTES;
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        buf_clear(&b->copy[i]);
    }
    rollup_clear(&b->rollup);
}

enum sink_result postgres_batch_begin(struct postgres_batch *b, struct err *err)
{
    int64_t today = clock_now_us() / CLOCK_DAY_US;

    if (today != b->today) { /* a day may have been dropped meanwhile */
        b->today = today;
        b->n_days = 0;
    }
    forget(b);
    postgres_arm(b->db);
    return sql_result(postgres_exec(b->db, "BEGIN", err));
}

enum sink_result postgres_batch_commit(struct postgres_batch *b, struct slice source,
                                       struct err *err)
{
    enum sink_result result;

    for (size_t i = 0; i < TABLE_COUNT; i++) {
        result = sql_result(copy_table(b, (enum table)i, err));
        if (result != SINK_OK) {
            return result;
        }
    }
    result = sql_result(postgres_copy_settle(b->db, err));
    if (result == SINK_OK) {
        result = merge_rollup(b, source, err);
    }
    return result == SINK_OK ? sql_result(postgres_exec(b->db, "COMMIT", err)) : result;
}

static bool roll_back(struct postgres *db)
{
    struct err ignored; /* why it is abandoned has been told */
    enum sql_class class = postgres_copy_settle(db, &ignored);

    return class != SQL_LOST && postgres_exec(db, "ROLLBACK", &ignored) == SQL_DONE;
}

void postgres_batch_abandon(struct postgres_batch *b)
{
    forget(b);
    b->n_days = 0; /* a partition made in this transaction is gone with it */
    if (!b->db->lost && PQtransactionStatus(b->db->conn) != PQTRANS_IDLE && !roll_back(b->db)) {
        b->db->lost = true;
    }
}

/* ---- Opening ------------------------------------------------------------------------ */

static enum sql_class set_up(struct postgres_batch *b, struct err *err)
{
    enum sql_class class = postgres_migrate(b->db, err);

    if (class == SQL_DONE) {
        class = postgres_exec(
            b->db,
            "CREATE TEMP TABLE evaluation_minute_in (LIKE evaluation_minute) ON COMMIT DELETE ROWS;"
            "CREATE TEMP TABLE hook_minute_in (LIKE hook_minute) ON COMMIT DELETE ROWS",
            err);
    }
    for (int64_t ahead = 0; class == SQL_DONE && ahead <= 1; ahead++) {
        class = make_day(b, b->today + ahead, err);
    }
    return class;
}

void postgres_batch_close(struct postgres_batch *b)
{
    if (!b) {
        return;
    }
    postgres_close(b->db);
    rows_done(&b->rows);
    rollup_done(&b->rollup);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        buf_done(&b->copy[i]);
    }
    free(b);
}

static bool connect_to(struct postgres_batch *b, const char *dsn, int64_t timeout_ms,
                       struct err *err)
{
    CLEANUP(arena_clear) struct arena a;
    const char *meant;

    arena_init(&a, DSN_BYTES);
    if (!config_secret(dsn, &a, &meant, err)) {
        return err_wrap(err, "sinks.postgres.dsn");
    }
    return postgres_open(meant, POSTGRES_TO_WRITE, timeout_ms, &b->db, err);
}

bool postgres_batch_open(const char *dsn, int64_t timeout_ms, int64_t retention_days,
                         struct postgres_batch **ret, struct err *err)
{
    struct postgres_batch *b = xcalloc(1, sizeof(*b));

    b->retention_days = retention_days;
    b->today = clock_now_us() / CLOCK_DAY_US;
    rollup_init(&b->rollup);
    rows_init(&b->rows, &b->rollup, add_row, b);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        buf_init(&b->copy[i], COPY_MAX_BYTES);
    }
    if (!connect_to(b, dsn, timeout_ms, err)) {
        postgres_batch_close(b);
        return false;
    }
    postgres_arm(b->db);
    if (set_up(b, err) != SQL_DONE) {
        postgres_batch_close(b);
        return false;
    }
    *ret = b;
    return true;
}
