#include "sinks/postgres_rows.h"

#include "sinks/sql_result.h"

enum {
    OPEN_BYTES = 32 * 1024,       /* the first rows go early, so that the server has work */
    PIECE_BYTES = 64 * 1024,      /* of the open COPY */
    KEPT_BYTES = 8 * 1024 * 1024, /* of a table that waits */
    MAX_BYTES = KEPT_BYTES + 2 * 1024 * 1024, /* and one more row fits */
    SQL_LIMIT_BYTES = 4096,
};

void postgres_rows_init(struct postgres_rows *r)
{
    *r = (struct postgres_rows){ 0 };
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        buf_init(&r->made[i], MAX_BYTES);
    }
}

void postgres_rows_done(struct postgres_rows *r)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        buf_done(&r->made[i]);
    }
}

static void clear(struct postgres_rows *r, enum table table)
{
    buf_clear(&r->made[table]);
    r->n_made[table] = 0;
}

void postgres_rows_clear(struct postgres_rows *r)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        clear(r, (enum table)i);
    }
}

/* Columns by name: a newer schema may have more. */
void postgres_rows_sql(enum table table, struct buf *out)
{
    const struct table_shape *t = &table_shapes[table];

    buf_addf(out, "COPY %s (day", t->name);
    for (size_t i = 0; i < t->n_columns; i++) {
        buf_addf(out, ", %s", t->columns[i]);
    }
    buf_add(out, SLICE(") FROM STDIN (FORMAT binary)"));
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

void postgres_rows_put(const struct row *row, int64_t day, struct buf *out)
{
    size_t n_columns = table_shapes[row->table].n_columns;

    postgres_put_row(out, n_columns + 1);
    postgres_put_date(out, day);
    for (size_t i = 0; i < n_columns; i++) {
        put_cell(out, &row->cells[i]);
    }
}

static bool is_open(const struct postgres_rows *r, const struct postgres *db, enum table table)
{
    return db->copying == POSTGRES_COPY_OPEN && r->open == table;
}

static enum sql_class open_copy(struct postgres_rows *r, struct postgres *db, enum table table,
                                struct err *err)
{
    CLEANUP(buf_done) struct buf sql;

    buf_init(&sql, SQL_LIMIT_BYTES);
    postgres_rows_sql(table, &sql);
    r->open = table;
    return postgres_copy_begin(db, buf_cstr(&sql), err);
}

/* The rows made so far; the COPY stays open. */
static enum sql_class send_piece(struct postgres_rows *r, struct postgres *db, enum table table,
                                 struct err *err)
{
    enum sql_class class = SQL_DONE;

    if (!is_open(r, db, table)) {
        class = open_copy(r, db, table, err);
    }
    if (class == SQL_DONE) {
        class = postgres_copy_data(db, buf_slice(&r->made[table]), r->n_made[table], err);
    }
    clear(r, table);
    return class;
}

enum sql_class postgres_rows_send(struct postgres_rows *r, struct postgres *db, enum table table,
                                  struct err *err)
{
    enum sql_class class = SQL_DONE;

    if (r->made[table].len_bytes > 0) {
        class = send_piece(r, db, table, err);
    }
    return class == SQL_DONE && is_open(r, db, table) ? postgres_copy_end(db, err) : class;
}

enum sql_class postgres_rows_send_all(struct postgres_rows *r, struct postgres *db, struct err *err)
{
    enum sql_class class = postgres_rows_send(r, db, r->open, err);

    for (size_t i = 0; class == SQL_DONE && i < TABLE_COUNT; i++) {
        class = postgres_rows_send(r, db, (enum table)i, err);
    }
    return class;
}

/* What is to be sent now, if anything. */
static enum sql_class send_some(struct postgres_rows *r, struct postgres *db, enum table table,
                                struct err *err)
{
    size_t n_bytes = r->made[table].len_bytes;

    if (is_open(r, db, table) ? n_bytes >= PIECE_BYTES
                              : db->copying != POSTGRES_COPY_OPEN && n_bytes >= OPEN_BYTES) {
        return send_piece(r, db, table, err);
    }
    return n_bytes >= KEPT_BYTES ? postgres_rows_send(r, db, table, err) : SQL_DONE;
}

enum sink_result postgres_rows_add(struct postgres_rows *r, struct postgres *db, int64_t day,
                                   const struct row *row, struct err *err)
{
    struct buf *out = &r->made[row->table];

    postgres_rows_put(row, day, out);
    if (!buf_ok(out)) {
        (void)err_set(err, ERR_TOO_BIG, "a row of %s is too large", table_shapes[row->table].name);
        return SINK_REJECT;
    }
    r->n_made[row->table]++;
    return sql_result(send_some(r, db, row->table, err));
}
