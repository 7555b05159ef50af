/*
 * bench_postgres: the PostgreSQL driver, executions and roll-ups on, beside a bare COPY
 * BINARY of the same rows into the same tables.
 *
 *     bench_postgres STATE DSN [RUNS]
 *
 * The bare side sends rows that were made before the clock runs, straight from libpq:
 * no decoding, no derived rows, no roll-ups, no position. It is measured in two ways:
 * with the driver's transactions, and with all rows of a table in one COPY. The tables are
 * emptied before each run. Prints the medians of alternating runs, and exits with 1 when
 * the driver is below 0.85 of the bare COPY in the same transactions.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "sinks/postgres.h"
#include "sinks/postgres_rows.h"
#include "sinks/rows.h"
#include "tests/bench/events.h"

enum { RUNS = 5, BATCH = 8192, TABLE_BYTES = 1 << 30, US_PER_SECOND = 1000000 };

static const double TARGET = 0.85;

enum way { WAY_DRIVER, WAY_BARE, WAY_ONE_COPY, WAY_COUNT };

/* Rows as COPY's bytes, and where each batch ends in them. */
struct ready {
    struct buf copy[TABLE_COUNT];
    size_t *ends[TABLE_COUNT];
    size_t n_batches;
    size_t n_rows;
};

struct bench {
    const char *dsn;
    const struct events *events;
    struct ready ready;
    PGconn *admin;
    double seconds[WAY_COUNT][RUNS];
    double cpu[WAY_COUNT][RUNS];
};

static void fail(PGconn *conn, const char *what)
{
    (void)fprintf(stderr, "%s: %s", what, PQerrorMessage(conn));
    exit(3);
}

static PGconn *connect_to(const char *dsn)
{
    PGconn *conn = PQconnectdb(dsn);

    if (PQstatus(conn) != CONNECTION_OK) {
        fail(conn, "connect");
    }
    return conn;
}

static void run_sql(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_COPY_IN) {
        fail(conn, sql);
    }
    PQclear(result);
}

/* ---- Rows made ready --------------------------------------------------------------- */

static enum sink_result keep_row(void *ctx, const struct row *row, struct err *err)
{
    struct ready *r = ctx;
    int64_t time_us = 0;

    (void)err;
    for (size_t i = 0; i < table_shapes[row->table].n_columns; i++) {
        time_us = row->cells[i].kind == CELL_TIME ? row->cells[i].number : time_us;
    }
    postgres_rows_put(row, time_us / CLOCK_DAY_US, &r->copy[row->table]);
    r->n_rows++;
    return SINK_OK;
}

static void make_ready(struct ready *r, const struct events *e)
{
    struct rows rows;
    struct err err;

    r->n_batches = (e->n + BATCH - 1) / BATCH;
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        buf_init(&r->copy[t], TABLE_BYTES);
        r->ends[t] = xcalloc(r->n_batches, sizeof(*r->ends[t]));
    }
    rows_init(&rows, NULL, keep_row, r);
    for (size_t i = 0; i < e->n; i++) {
        if (rows_of(&rows, e->journal, &e->list[i], &err) != SINK_OK) {
            die(&err);
        }
        for (size_t t = 0; t < TABLE_COUNT; t++) {
            r->ends[t][i / BATCH] = r->copy[t].len_bytes;
        }
    }
    rows_done(&rows);
}

/* ---- The ways ------------------------------------------------------------------------ */

static void put(PGconn *conn, struct slice bytes)
{
    enum { PIECE_BYTES = 256 * 1024 };

    while (bytes.len > 0) {
        size_t n = bytes.len < PIECE_BYTES ? bytes.len : PIECE_BYTES;

        if (PQputCopyData(conn, bytes.ptr, (int)n) != 1) {
            fail(conn, "copy");
        }
        bytes.ptr += n;
        bytes.len -= n;
    }
}

static void bare_copy(PGconn *conn, enum table t, struct slice rows)
{
    CLEANUP(buf_done) struct buf sql;

    if (rows.len == 0) {
        return;
    }
    buf_init(&sql, 4096);
    postgres_rows_sql(t, &sql);
    run_sql(conn, buf_cstr(&sql));
    put(conn, SLICE("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0"));
    put(conn, rows);
    put(conn, SLICE("\377\377"));
    if (PQputCopyEnd(conn, NULL) != 1) {
        fail(conn, "copy");
    }

    PGresult *result = PQgetResult(conn);

    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail(conn, "copy");
    }
    PQclear(result);
    PQclear(PQgetResult(conn));
}

/* Batches first to last - 1 in one transaction. */
static void bare_transaction(const struct ready *r, PGconn *conn, size_t first, size_t last)
{
    run_sql(conn, "BEGIN");
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        size_t from = first > 0 ? r->ends[t][first - 1] : 0;

        bare_copy(conn, (enum table)t,
                  (struct slice){ r->copy[t].ptr + from, r->ends[t][last - 1] - from });
    }
    run_sql(conn, "COMMIT");
}

static void bare(const struct bench *b, PGconn *conn, size_t batches)
{
    for (size_t i = 0; i < b->ready.n_batches; i += batches) {
        size_t last = i + batches < b->ready.n_batches ? i + batches : b->ready.n_batches;

        bare_transaction(&b->ready, conn, i, last);
    }
}

static void shipped(const struct bench *b, struct sink *s)
{
    const struct events *e = b->events;
    struct err err;

    for (size_t at = 0; at < e->n; at += BATCH) {
        size_t n = e->n - at < BATCH ? e->n - at : BATCH;
        const struct span span = {
            .journal = e->journal,
            .from = at > 0 ? e->list[at - 1].seq + 1 : 1,
            .to = e->list[at + n - 1].seq,
            .records = e->list + at,
            .n = n,
        };

        if (s->ops->write(s, &span, &err) != SINK_OK) {
            die(&err);
        }
    }
}

/* ---- Measuring ------------------------------------------------------------------------- */

/* The schema too is the driver's. */
static struct sink *open_driver(const struct bench *b)
{
    const struct sink_config cfg = { .target = slice_from_cstr(b->dsn), .timeout_ms = 60000 };
    struct sink *s = NULL;
    struct err err;

    if (!sink_postgres_ops.open(&cfg, &s, &err)) {
        die(&err);
    }
    return s;
}

/* Connecting is not what is measured. */
static void run(struct bench *b, enum way way, size_t i)
{
    run_sql(b->admin, "TRUNCATE position, hook_evaluation, hook_execution, tool_execution, "
                      "audit_record, evaluation_minute, hook_minute");
    run_sql(b->admin, "CHECKPOINT");

    PGconn *conn = connect_to(b->dsn);
    struct sink *s = open_driver(b);
    int64_t cpu = cpu_us();
    int64_t start_us = clock_mono_us();

    switch (way) {
    case WAY_DRIVER:
        shipped(b, s);
        break;
    case WAY_BARE:
        bare(b, conn, 1);
        break;
    case WAY_ONE_COPY:
        bare(b, conn, b->ready.n_batches);
        break;
    case WAY_COUNT:
        break;
    }
    b->seconds[way][i] = (double)(clock_mono_us() - start_us) / US_PER_SECOND;
    b->cpu[way][i] = (double)(cpu_us() - cpu) / US_PER_SECOND;
    s->ops->close(s);
    PQfinish(conn);
}

static double report(struct bench *b, size_t runs)
{
    static const char *const names[WAY_COUNT] = { "driver", "bare COPY, same transactions",
                                                  "bare COPY, one a table" };
    double seconds[WAY_COUNT];

    for (size_t w = 0; w < WAY_COUNT; w++) {
        seconds[w] = median(b->seconds[w], runs);
        (void)printf("postgres: %s: %.0f rows/s, %.0f records/s, client's CPU %.1f s a million "
                     "records\n",
                     names[w], (double)b->ready.n_rows / seconds[w],
                     (double)b->events->n / seconds[w],
                     median(b->cpu[w], runs) * 1e6 / (double)b->events->n);
    }
    (void)printf("postgres: driver / bare COPY: %.2f x in the same transactions (target %.2f), "
                 "%.2f x with one COPY a table\n",
                 seconds[WAY_BARE] / seconds[WAY_DRIVER], TARGET,
                 seconds[WAY_ONE_COPY] / seconds[WAY_DRIVER]);
    return seconds[WAY_BARE] / seconds[WAY_DRIVER];
}

int main(int argc, char **argv)
{
    size_t runs = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : RUNS;

    if (argc < 3 || runs < 1 || runs > RUNS) {
        (void)fprintf(stderr, "usage: bench_postgres STATE DSN [RUNS, up to %d]\n", RUNS);
        return 2;
    }

    CLEANUP(events_freep) struct events *events = events_read(argv[1]);
    struct bench b = { .dsn = argv[2], .events = events, .admin = connect_to(argv[2]) };

    sink_postgres_ops.close(open_driver(&b)); /* makes the tables */
    make_ready(&b.ready, events);
    for (size_t i = 0; i <= runs; i++) { /* the first round warms the server, and is forgotten */
        for (size_t w = 0; w < WAY_COUNT; w++) {
            run(&b, (enum way)w, i > 0 ? i - 1 : 0);
        }
    }
    PQfinish(b.admin);

    double ratio = report(&b, runs);

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        buf_done(&b.ready.copy[t]);
        free(b.ready.ends[t]);
    }
    return ratio >= TARGET ? 0 : 1;
}
