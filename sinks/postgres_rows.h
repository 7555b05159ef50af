/*
 * postgres_rows: rows on their way into PostgreSQL's tables, by COPY.
 *
 * A COPY costs the server about a millisecond whatever is in it, so a transaction has one a
 * table. The first table that has enough to send opens its own, and its rows go while
 * the next are made: the server works beside us. The rows of the other tables wait, and
 * go when that one is over:
 *
 *     one table     ▒▒ made, sent, taken: piece by piece ▒▒│
 *     the others    made, and kept ···················│▒ sent ▒│▒ sent ▒│
 *
 * Any other statement meanwhile ends the open COPY; the next rows open one anew.
 * Thread: one.
 */
#pragma once

#include "collector/sql/postgres.h"
#include "sinks/rows.h"

struct postgres_rows {
    struct buf made[TABLE_COUNT]; /* not sent yet */
    uint64_t n_made[TABLE_COUNT]; /* rows in it */
    enum table open;              /* whose COPY is open, when the connection has one */
};

/* Ready for use; postgres_rows_done() releases it. */
void postgres_rows_init(struct postgres_rows *r);
void postgres_rows_done(struct postgres_rows *r);

/* Forget what was not sent. */
void postgres_rows_clear(struct postgres_rows *r);

/* A row, filed under `day`. SINK_REJECT: it is too large, or the server refuses earlier rows. */
enum sink_result postgres_rows_add(struct postgres_rows *r, struct postgres *db, int64_t day,
                                   const struct row *row, struct err *err) MUST_CHECK;

/* Send what there is of one table, or of all. Whether it was taken, the connection's settle says.
 */
enum sql_class postgres_rows_send(struct postgres_rows *r, struct postgres *db, enum table table,
                                  struct err *err) MUST_CHECK;
enum sql_class postgres_rows_send_all(struct postgres_rows *r, struct postgres *db, struct err *err)
    MUST_CHECK;

/* "COPY t (day, a, b) FROM STDIN (FORMAT binary)", and a row for it. */
void postgres_rows_sql(enum table table, struct buf *out);
void postgres_rows_put(const struct row *row, int64_t day, struct buf *out);
