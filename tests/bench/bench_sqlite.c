/*
 * bench_sqlite: shipping into SQLite, roll-ups on, beside a bare prepared insert of
 * the same rows into the same tables.
 *
 * Both write the same batches in the same transactions to a new file with the same
 * pragmas. The bare side gets its rows ready-made: no decoding, no derived rows, no
 * roll-ups, no position. Five alternating runs; prints the medians and their ratio.
 * Exit 1 below the target of 0.8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/sql/schema.h"
#include "sinks/rows.h"
#include "sinks/sqlite.h"
#include "tests/unit/sinks/sink_contract.h"

enum { RECORDS = 40 * 1024, BATCH = 4096, RUNS = 5, ROWS_PER_RECORD = 3 };
static const double TARGET = 0.8;
#define J SLICE("0190a000-0000-7000-8000-000000000001")

/* Rows that were made before the clock runs. */
struct ready {
    struct arena arena;
    struct row *rows;
    size_t n;
    size_t ends[RECORDS / BATCH]; /* rows up to the end of each batch */
};

static void die(const struct err *err)
{
    (void)fprintf(stderr, "%s\n", err->text);
    exit(3);
}

static enum sink_result keep_row(void *ctx, const struct row *row, struct err *err)
{
    struct ready *r = ctx;
    struct row *kept = &r->rows[r->n++];

    *kept = *row;
    for (size_t i = 0; i < table_shapes[row->table].n_columns; i++) {
        bool has_text = row->cells[i].kind == CELL_TEXT || row->cells[i].kind == CELL_BYTES;

        if (has_text && !arena_dup(&r->arena, row->cells[i].text, &kept->cells[i].text)) {
            (void)err_set(err, ERR_TOO_BIG, "arena");
            return SINK_RETRY;
        }
    }
    return SINK_OK;
}

static void make_ready(struct ready *r, const struct sink_record *list)
{
    struct rows rows;
    struct err err;

    arena_init(&r->arena, (size_t)1 << 30);
    r->rows = xcalloc((size_t)RECORDS * ROWS_PER_RECORD, sizeof(*r->rows));
    rows_init(&rows, NULL, keep_row, r);
    for (size_t i = 0; i < RECORDS; i++) {
        if (rows_of(&rows, J, &list[i], &err) != SINK_OK) {
            die(&err);
        }
        r->ends[i / BATCH] = r->n;
    }
    rows_done(&rows);
}

static void remove_store(const char *path)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    char name[128];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

static void must(enum sql_class class, const struct err *err)
{
    if (class != SQL_DONE) {
        die(err);
    }
}

static void bind(sqlite3_stmt *stmt, const struct row *row)
{
    for (size_t i = 0; i < table_shapes[row->table].n_columns; i++) {
        const struct cell *c = &row->cells[i];
        int at = (int)i + 1;

        if (c->kind == CELL_BYTES) {
            sqlite_bind_blob(stmt, at, c->text.ptr, c->text.len);
        } else if (c->kind == CELL_TEXT) {
            sqlite_bind_slice(stmt, at, c->text);
        } else {
            sqlite_bind_i64_or_null(stmt, at, c->kind != CELL_NULL, c->number);
        }
    }
}

static void prepare(struct sqlite *db, sqlite3_stmt *insert[TABLE_COUNT])
{
    struct err err;

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        CLEANUP(buf_done) struct buf sql;

        buf_init(&sql, 4096);
        buf_addf(&sql, "INSERT INTO %s VALUES (?", table_shapes[t].name);
        for (size_t i = 1; i < table_shapes[t].n_columns; i++) {
            buf_add(&sql, SLICE(", ?"));
        }
        buf_add_char(&sql, ')');
        must(sqlite_prepare(db, buf_cstr(&sql), &insert[t], &err), &err);
    }
}

static double bare(const char *path, const struct ready *r)
{
    CLEANUP(sqlite_closep) struct sqlite *db = NULL;
    sqlite3_stmt *insert[TABLE_COUNT];
    struct err err;
    size_t row = 0;

    remove_store(path);
    if (!sqlite_open(path, SQLITE_TO_WRITE, 60000, &db, &err)) {
        die(&err);
    }
    must(sqlite_migrate(db, &err), &err);
    prepare(db, insert);

    int64_t start_us = clock_mono_us();

    for (size_t batch = 0; batch < RECORDS / BATCH; batch++) {
        must(sqlite_exec(db, "BEGIN IMMEDIATE", &err), &err);
        for (; row < r->ends[batch]; row++) {
            bind(insert[r->rows[row].table], &r->rows[row]);
            must(sqlite_run(db, insert[r->rows[row].table], &err), &err);
        }
        must(sqlite_exec(db, "COMMIT", &err), &err);
    }

    double seconds = (double)(clock_mono_us() - start_us) / 1e6;

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        sqlite_finalizep(&insert[t]);
    }
    return seconds;
}

static double shipped(const char *path, const struct sink_record *list)
{
    const struct sink_config cfg = { .target = slice_from_cstr(path), .timeout_ms = 60000 };
    struct sink *s = NULL;
    struct err err;

    remove_store(path);
    if (!sink_sqlite_ops.open(&cfg, &s, &err)) {
        die(&err);
    }

    int64_t start_us = clock_mono_us();

    for (size_t at = 0; at < RECORDS; at += BATCH) {
        const struct span span = {
            .journal = J, .from = at + 1, .to = at + BATCH, .records = list + at, .n = BATCH
        };

        if (s->ops->write(s, &span, &err) != SINK_OK) {
            die(&err);
        }
    }

    double seconds = (double)(clock_mono_us() - start_us) / 1e6;

    s->ops->close(s);
    return seconds;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double list[RUNS])
{
    qsort(list, RUNS, sizeof(*list), by_size);
    return list[RUNS / 2];
}

int main(int argc, char **argv)
{
    CLEANUP(sink_samples_freep) struct sink_samples *s = sink_samples_new(1, RECORDS);
    char path[128];
    double with[RUNS];
    double without[RUNS];
    struct ready ready = { 0 };

    (void)snprintf(path, sizeof(path), "%s/bench-%d.db", argc > 1 ? argv[1] : "/tmp", getpid());
    make_ready(&ready, sink_samples_list(s));
    for (size_t i = 0; i < RUNS; i++) {
        without[i] = bare(path, &ready);
        with[i] = shipped(path, sink_samples_list(s));
    }
    remove_store(path);
    arena_clear(&ready.arena);

    double rows = (double)ready.n;
    double ratio = median(without) / median(with);

    free(ready.rows);
    (void)printf("sqlite: bare insert %.0f rows/s, shipped with roll-ups %.0f rows/s: %.2f x "
                 "(target %.2f)\n",
                 rows / median(without), rows / median(with), ratio, TARGET);
    return ratio >= TARGET ? 0 : 1;
}
