#include "sinks/postgres_batch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/config.h"
#include "collector/base/mem.h"
#include "collector/sql/postgres_schema.h"
#include "sinks/postgres_minutes.h"
#include "sinks/sql_result.h"

enum { DSN_BYTES = 64 * 1024 };

/* ---- Records ------------------------------------------------------------------------- */

/* What refuses a partition is no fault of the record that asks for it. */
static enum sink_result need_day(struct postgres_batch *b, int64_t day, struct err *err)
{
    enum sql_class class;

    if (postgres_days_has(&b->days, day)) {
        return SINK_OK;
    }
    class = postgres_copy_settle(b->db, err); /* that one may be of the data */
    if (class != SQL_DONE) {
        return sql_result(class);
    }
    class = postgres_days_make(&b->days, b->db, day, err);
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
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
    int64_t day = postgres_days_of(&b->days, time_of(row));
    enum sink_result result = need_day(b, day, err);

    return result == SINK_OK ? postgres_rows_add(&b->made, b->db, day, row, err) : result;
}

enum sink_result postgres_batch_add(struct postgres_batch *b, struct slice journal,
                                    const struct sink_record *r, struct err *err)
{
    return rows_of(&b->rows, journal, r, err);
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

    int64_t day = postgres_days_of(&b->days, head.time_us);
    const struct postgres_value values[] = {
        postgres_of_text(journal),
        postgres_of_integer((int64_t)r->seq),
        postgres_of_time(head.time_us),
        postgres_of_integer(day),
    };
    /* What is filed at an edge now was at another one when the edge was elsewhere. */
    bool is_own_day = day == head.time_us / CLOCK_DAY_US;
    enum sql_class class = postgres_rows_send(&b->made, b->db, table, err);

    (void)snprintf(
        sql, sizeof(sql), "SELECT count(*) FROM %s WHERE journal = $1 AND seq = $2 AND time = $3%s",
        table_shapes[table].name, is_own_day ? " AND day = date '1970-01-01' + $4::int" : "");
    if (class == SQL_DONE) {
        class = postgres_query(b->db, sql, values, is_own_day ? 4 : 3, postgres_keep_integer,
                               &found, NULL, err);
    }
    *ret_there = found > 0;
    return sql_result(class);
}

/* ---- A transaction ----------------------------------------------------------------- */

static void forget(struct postgres_batch *b)
{
    postgres_rows_clear(&b->made);
    rollup_clear(&b->rollup);
}

/* What is counted stands where its records do, and goes with them. */
static enum sql_class begin_day(struct postgres_batch *b, struct err *err)
{
    enum sql_class class = postgres_days_begin(&b->days, b->db, err);

    b->rollup.first_us = b->days.first_us;
    b->rollup.last_us = b->days.last_us;
    return class;
}

enum sink_result postgres_batch_begin(struct postgres_batch *b, struct err *err)
{
    forget(b);
    postgres_arm(b->db);
    if (begin_day(b, err) == SQL_LOST) {
        return SINK_DOWN;
    }
    return sql_result(postgres_exec(b->db, "BEGIN", err));
}

enum sink_result postgres_batch_send(struct postgres_batch *b, struct err *err)
{
    enum sql_class class = postgres_rows_send_all(&b->made, b->db, err);

    return sql_result(class == SQL_DONE ? postgres_copy_settle(b->db, err) : class);
}

enum sink_result postgres_batch_commit(struct postgres_batch *b, struct slice source,
                                       struct err *err)
{
    enum sink_result result = postgres_batch_send(b, err);
    enum sql_class class;

    if (result != SINK_OK) {
        return result;
    }
    class = postgres_minutes_add(b->db, source, &b->rollup, err);
    if (class == SQL_DATA) { /* of a count: no fault of the records, never bury them for it */
        return SINK_BROKEN;
    }
    return sql_result(class == SQL_DONE ? postgres_exec(b->db, "COMMIT", err) : class);
}

static bool roll_back(struct postgres *db)
{
    struct err ignored; /* why it is abandoned has been told */
    enum sql_class class = postgres_copy_settle(db, &ignored);

    return class != SQL_LOST && postgres_exec(db, "ROLLBACK", &ignored) == SQL_DONE;
}

enum sink_result postgres_batch_abandon(struct postgres_batch *b, enum sink_result why,
                                        struct err *err)
{
    bool day_is_gone = postgres_days_gone(&b->days, b->db);

    forget(b);
    postgres_days_forget(&b->days); /* a partition made in this transaction is gone with it */
    if (!b->db->lost && PQtransactionStatus(b->db->conn) != PQTRANS_IDLE && !roll_back(b->db)) {
        b->db->lost = true;
    }
    if (why == SINK_BROKEN && day_is_gone) {
        (void)err_wrap(err, "somebody dropped a day that we write to, it is made anew");
        why = SINK_RETRY;
    }
    return why == SINK_RETRY && b->db->lost ? SINK_DOWN : why;
}

/* ---- Opening ------------------------------------------------------------------------ */

static enum sql_class set_up(struct postgres_batch *b, struct err *err)
{
    enum sql_class class = postgres_migrate(b->db, err);

    if (class == SQL_DONE) {
        class = postgres_minutes_open(b->db, err);
    }
    return class == SQL_DONE ? begin_day(b, err) : class;
}

void postgres_batch_close(struct postgres_batch *b)
{
    if (!b) {
        return;
    }
    postgres_close(b->db);
    rows_done(&b->rows);
    rollup_done(&b->rollup);
    postgres_rows_done(&b->made);
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

    b->days.retention_days = retention_days;
    rollup_init(&b->rollup);
    rows_init(&b->rows, &b->rollup, add_row, b);
    postgres_rows_init(&b->made);
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
