#include "sinks/sqlite.h"

#include <assert.h>
#include <stdlib.h>

#include "collector/base/mem.h"
#include "collector/sql/schema.h"
#include "sinks/sql_result.h"
#include "sinks/sqlite_state.h"

enum { SQL_LIMIT_BYTES = 4096 }; /* of a statement that is built here */

struct sink_sqlite *sink_sqlite_from(struct sink *s)
{
    assert(s->ops == &sink_sqlite_ops);
    return CONTAINER_OF(s, struct sink_sqlite, base);
}

/* "INSERT INTO t (a, b) VALUES (?, ?)" with named columns: a newer schema may have more. */
static void insert_sql(const struct table_shape *t, struct buf *sql)
{
    buf_addf(sql, "INSERT INTO %s (", t->name);
    for (size_t i = 0; i < t->n_columns; i++) {
        buf_addf(sql, "%s%s", i > 0 ? ", " : "", t->columns[i]);
    }
    buf_add(sql, SLICE(") VALUES (?"));
    for (size_t i = 1; i < t->n_columns; i++) {
        buf_add(sql, SLICE(", ?"));
    }
    buf_add_char(sql, ')');
}

/* Counts are added to the row that is there; the parameters come in the order of the columns. */
static void minute_sql(bool of_hook, struct buf *sql)
{
    const char *names = of_hook ? "hook_name, tier, decision, skip_reason, cause" : "decision";

    buf_addf(sql, "INSERT INTO %s VALUES (?", of_hook ? "hook_minute" : "evaluation_minute");
    for (size_t i = 1; i < (size_t)(of_hook ? 13 : 9) + HISTOGRAM_BUCKETS; i++) {
        buf_add(sql, SLICE(", ?"));
    }
    buf_addf(sql,
             ") ON CONFLICT (minute, journal, contract, hook_event_type, tool_name, %s) DO UPDATE"
             " SET n = n + excluded.n, duration_us = duration_us + excluded.duration_us,"
             " duration_max_us = max(duration_max_us, excluded.duration_max_us)",
             names);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const char *c = histogram_columns[i];

        buf_addf(sql, ", %s = %s + excluded.%s", c, c, c);
    }
}

static enum sql_class prepare_built(struct sink_sqlite *q, struct buf *sql, sqlite3_stmt **ret,
                                    struct err *err)
{
    enum sql_class class = sqlite_prepare(q->db, buf_cstr(sql), ret, err);

    assert(buf_ok(sql));
    buf_clear(sql);
    return class;
}

static enum sql_class prepare_inserts(struct sink_sqlite *q, struct err *err)
{
    CLEANUP(buf_done) struct buf sql;
    enum sql_class class = SQL_DONE;

    buf_init(&sql, SQL_LIMIT_BYTES);
    for (size_t i = 0; class == SQL_DONE && i < TABLE_COUNT; i++) {
        insert_sql(&table_shapes[i], &sql);
        class = prepare_built(q, &sql, &q->insert[i], err);
    }
    for (size_t i = 0; class == SQL_DONE && i < 2; i++) {
        minute_sql(i == 1, &sql);
        class = prepare_built(q, &sql, &q->add_minute[i], err);
    }
    return class;
}

static enum sql_class prepare(struct sink_sqlite *q, struct err *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } list[] = {
        { &q->begin, "BEGIN IMMEDIATE" },
        { &q->commit, "COMMIT" },
        { &q->get_position,
          "SELECT next_seq, last_seq, last_leaf FROM position WHERE journal = ?" },
        { &q->move_position,
          "UPDATE position SET next_seq = ?3, last_seq = coalesce(?4, last_seq),"
          " last_leaf = coalesce(?5, last_leaf) WHERE journal = ?1 AND next_seq = ?2" },
        { &q->new_position,
          "INSERT INTO position (journal, next_seq, last_seq, last_leaf) VALUES (?1, ?3, ?4, ?5)"
          " ON CONFLICT (journal) DO NOTHING" },
    };
    enum sql_class class = SQL_DONE;

    for (size_t i = 0; class == SQL_DONE && i < sizeof(list) / sizeof(list[0]); i++) {
        class = sqlite_prepare(q->db, list[i].sql, list[i].stmt, err);
    }
    return class == SQL_DONE ? prepare_inserts(q, err) : class;
}

static enum sink_result insert_row(void *ctx, const struct row *row, struct err *err)
{
    struct sink_sqlite *q = ctx;
    sqlite3_stmt *stmt = q->insert[row->table];

    for (size_t i = 0; i < table_shapes[row->table].n_columns; i++) {
        const struct cell *c = &row->cells[i];
        int at = (int)i + 1;

        switch (c->kind) {
        case CELL_NULL:
            sqlite_bind_i64_or_null(stmt, at, false, 0);
            break;
        case CELL_TEXT:
            sqlite_bind_slice(stmt, at, c->text);
            break;
        case CELL_INTEGER:
        case CELL_TIME:
            sqlite_bind_i64(stmt, at, c->number);
            break;
        case CELL_BYTES:
            sqlite_bind_blob(stmt, at, c->text.ptr, c->text.len);
            break;
        }
    }
    return sql_result(sqlite_run(q->db, stmt, err));
}

static const char *path_of(const struct sink_config *cfg)
{
    const char *path = json_string_value(json_object_get(cfg->settings, "path"));

    return path ? path : cfg->target.ptr;
}

static bool open_store(struct sink_sqlite *q, const struct sink_config *cfg, struct err *err)
{
    const char *path = path_of(cfg);

    if (!path) {
        return err_set(err, ERR_INVALID, "sqlite: needs a path");
    }
    if (!sqlite_open(path, SQLITE_TO_WRITE, cfg->timeout_ms, &q->db, err)) {
        return false;
    }
    if (sqlite_migrate(q->db, err) != SQL_DONE || prepare(q, err) != SQL_DONE) {
        return err_wrap(err, "%s", path);
    }
    return true;
}

static void sqlite_sink_close(struct sink *s)
{
    if (!s) {
        return;
    }

    struct sink_sqlite *q = sink_sqlite_from(s);

    sqlite_finalizep(&q->begin);
    sqlite_finalizep(&q->commit);
    sqlite_finalizep(&q->get_position);
    sqlite_finalizep(&q->move_position);
    sqlite_finalizep(&q->new_position);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        sqlite_finalizep(&q->insert[i]);
    }
    sqlite_finalizep(&q->add_minute[0]);
    sqlite_finalizep(&q->add_minute[1]);
    sqlite_close(q->db);
    rows_done(&q->rows);
    rollup_done(&q->rollup);
    free(q);
}

static bool sqlite_sink_open(const struct sink_config *cfg, struct sink **ret_sink, struct err *err)
{
    struct sink_sqlite *q = xcalloc(1, sizeof(*q));

    q->base.ops = &sink_sqlite_ops;
    q->retention_days = json_integer_value(json_object_get(cfg->settings, "retention_days"));
    rollup_init(&q->rollup);
    rows_init(&q->rows, &q->rollup, insert_row, q);
    if (!open_store(q, cfg, err)) {
        sqlite_sink_close(&q->base);
        return false;
    }
    *ret_sink = &q->base;
    return true;
}

static enum sql_class read_position(struct sink_sqlite *q, struct slice journal,
                                    struct sink_position *ret, struct err *err)
{
    sqlite3_stmt *stmt = q->get_position;
    bool row = false;

    sqlite_bind_slice(stmt, 1, journal);

    enum sql_class class = sqlite_step(q->db, stmt, &row, err);

    *ret = (struct sink_position){ .next = 1 };
    if (row) {
        *ret = sql_position(sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
                            sqlite_column_slice(stmt, 2));
    }
    (void)sqlite3_reset(stmt);
    return class;
}

static bool sqlite_sink_position(struct sink *s, struct slice journal, struct sink_position *ret,
                                 struct err *err)
{
    struct sink_sqlite *q = sink_sqlite_from(s);

    sqlite_arm(q->db);
    return read_position(q, journal, ret, err) == SQL_DONE;
}

/* One try to move; *ret_moved false: the position is not at span->from. */
static enum sql_class try_move(struct sink_sqlite *q, sqlite3_stmt *stmt, const struct span *span,
                               bool *ret_moved, struct err *err)
{
    const struct sink_record *last = span_last(span);

    sqlite_bind_slice(stmt, 1, span->journal);
    if (stmt == q->move_position) {
        sqlite_bind_i64(stmt, 2, (int64_t)span->from);
    }
    sqlite_bind_i64(stmt, 3, (int64_t)span->to + 1);
    sqlite_bind_i64_or_null(stmt, 4, last, last ? (int64_t)last->seq : 0);
    sqlite_bind_blob(stmt, 5, last ? last->leaf.bytes : NULL, last ? sizeof(last->leaf.bytes) : 0);

    enum sql_class class = sqlite_run(q->db, stmt, err);

    *ret_moved = class == SQL_DONE && sqlite3_changes(q->db->db) == 1;
    return class;
}

static enum sink_result elsewhere(struct sink_sqlite *q, const struct span *span, struct err *err)
{
    struct sink_position at;
    enum sql_class class = read_position(q, span->journal, &at, err);

    if (class != SQL_DONE) {
        return sql_result(class);
    }
    return sql_result_elsewhere(span, at.next, err);
}

/* First of all: a span that is not the next one ends here, before any row. */
static enum sink_result move_position(struct sink_sqlite *q, const struct span *span,
                                      struct err *err)
{
    bool moved = false;
    enum sql_class class = try_move(q, q->move_position, span, &moved, err);

    if (class == SQL_DONE && !moved && span->from == 1) {
        class = try_move(q, q->new_position, span, &moved, err);
    }
    if (class != SQL_DONE) {
        return sql_result(class);
    }
    return moved ? SINK_OK : elsewhere(q, span, err);
}

/* Unlike a column elsewhere, an empty text is a value here: it is part of the key. */
static void bind_key_text(sqlite3_stmt *stmt, int *at, struct slice text)
{
    (void)sqlite3_bind_text64(stmt, (*at)++, text.len > 0 ? text.ptr : "", text.len, SQLITE_STATIC,
                              SQLITE_UTF8);
}

static enum sql_class add_minute(struct sink_sqlite *q, struct slice journal,
                                 const struct rollup_row *r, struct err *err)
{
    sqlite3_stmt *stmt = q->add_minute[r->key.of_hook];
    int at = 1;

    sqlite_bind_i64(stmt, at++, r->key.minute);
    bind_key_text(stmt, &at, journal);
    bind_key_text(stmt, &at, r->key.contract);
    bind_key_text(stmt, &at, r->key.hook_event_type);
    bind_key_text(stmt, &at, r->key.tool_name);
    if (r->key.of_hook) {
        bind_key_text(stmt, &at, r->key.hook_name);
        bind_key_text(stmt, &at, r->key.tier);
    }
    bind_key_text(stmt, &at, r->key.decision);
    if (r->key.of_hook) {
        bind_key_text(stmt, &at, r->key.skip_reason);
        bind_key_text(stmt, &at, r->key.cause);
    }
    sqlite_bind_i64(stmt, at++, r->n);
    sqlite_bind_i64(stmt, at++, r->duration_us);
    sqlite_bind_i64(stmt, at++, r->duration_max_us);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sqlite_bind_i64(stmt, at++, r->buckets[i]);
    }
    return sqlite_run(q->db, stmt, err);
}

static enum sink_result add_rollup(struct sink_sqlite *q, const struct span *span, struct err *err)
{
    enum sql_class class = SQL_DONE;

    for (size_t i = 0; class == SQL_DONE && i < q->rollup.n_rows; i++) {
        class = add_minute(q, span->journal, &q->rollup.rows[i], err);
    }
    /* A count that is refused is no fault of the span's data: never bury it. */
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
}

/* A record that a person sends again may be there: then that is what was wanted. */
static bool is_there(struct sink_sqlite *q)
{
    return sqlite3_extended_errcode(q->db->db) == SQLITE_CONSTRAINT_PRIMARYKEY;
}

static enum sink_result write_rows(struct sink_sqlite *q, const struct span *span, struct err *err)
{
    enum sink_result result = span->late ? SINK_OK : move_position(q, span, err);

    rollup_clear(&q->rollup);
    for (size_t i = 0; result == SINK_OK && i < span->n; i++) {
        result = rows_of(&q->rows, span->journal, &span->records[i], err);
    }
    return result == SINK_OK ? add_rollup(q, span, err) : result;
}

/*
 * A file that was removed or renamed under us takes rows still, and nobody would
 * ever read them. A new one is begun by opening, and the journals fill it again.
 */
static bool is_file_there(struct sink_sqlite *q, struct err *err)
{
    int moved = 0;

    if (sqlite3_file_control(q->db->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
        moved != 0) {
        return err_set(err, ERR_IO, "%s: was removed or replaced while it was open",
                       sqlite3_db_filename(q->db->db, "main"));
    }
    return true;
}

static enum sink_result sqlite_sink_write(struct sink *s, const struct span *span, struct err *err)
{
    struct sink_sqlite *q = sink_sqlite_from(s);

    sqlite_arm(q->db);
    if (!is_file_there(q, err)) {
        return SINK_DOWN;
    }

    enum sink_result result = sql_result(sqlite_run(q->db, q->begin, err));

    if (result != SINK_OK) {
        return result;
    }
    result = write_rows(q, span, err);
    if (result == SINK_OK) {
        result = sql_result(sqlite_run(q->db, q->commit, err));
    }
    if (result == SINK_BROKEN && span->late && span->n == 1 && is_there(q)) {
        result = SINK_OK;
    }
    sqlite_rollback(q->db);
    return result;
}

const struct sink_ops sink_sqlite_ops = {
    .name = "sqlite",
    .open = sqlite_sink_open,
    .position = sqlite_sink_position,
    .write = sqlite_sink_write,
    .cut_due = sink_sqlite_cut_due,
    .cut_step = sink_sqlite_cut_step,
    .close = sqlite_sink_close,
};
