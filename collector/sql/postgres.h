/*
 * postgres: one connection to PostgreSQL (libpq), with a limit on every wait.
 *
 * libpq is used without blocking, and where it blocks all the same, to look a name up,
 * on a thread of its own (collector/base/aside.h): each call sends, and polls the socket until it
 * has its answer or the time is over, so a server that vanishes without a word
 * holds nobody. After a time-out the connection is in doubt and answers SQL_LOST
 * to everything; its owner closes it and opens another.
 *
 * Values travel in binary: a text is its bytes, an integer eight bytes big-endian,
 * a time microseconds since 2000-01-01 UTC.
 *
 * Time: postgres_arm() starts the clock for the calls that follow.
 * Thread: a connection belongs to one at a time.
 */
#pragma once

#include <libpq-fe.h>
#include <stdint.h>

#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/base/slice.h"
#include "collector/sql/class.h"

enum postgres_mode { POSTGRES_TO_READ, POSTGRES_TO_WRITE };

/* A COPY: none, taking rows, or ended and its answer still to be taken. */
enum postgres_copying { POSTGRES_COPY_NONE, POSTGRES_COPY_OPEN, POSTGRES_COPY_ENDED };

struct postgres {
    PGconn *conn; /* owned */
    int64_t timeout_ms;
    int64_t deadline_ms; /* monotonic */
    bool lost;           /* in doubt: to be closed */
    enum postgres_copying copying;
    char copy_into[64]; /* the table of the COPY */
    uint64_t n_copied;  /* rows sent in it */
    char sqlstate[6];   /* of the last refusal; "" without one */
};

/*
 * Connect; waits at most timeout_ms. To read: every transaction is read-only.
 * Errors: ERR_INVALID: the dsn is wrong, or we are not let in; ERR_IO: not reachable.
 * No message holds a password.
 */
bool postgres_open(const char *dsn, enum postgres_mode mode, int64_t timeout_ms,
                   struct postgres **ret, struct err *err) MUST_CHECK;
void postgres_close(struct postgres *p);   /* accepts NULL */
void postgres_closep(struct postgres **p); /* for CLEANUP */

/* The calls from here on end within timeout_ms. */
void postgres_arm(struct postgres *p);

/* Run statements without parameters, and without rows that anybody wants. */
enum sql_class postgres_exec(struct postgres *p, const char *sql, struct err *err) MUST_CHECK;

/* A parameter of a statement. */
struct postgres_value {
    enum postgres_kind {
        POSTGRES_NULL, /* of the type that the statement wants there */
        POSTGRES_TEXT,
        POSTGRES_BYTES,
        POSTGRES_INTEGER,
        POSTGRES_TIME,
    } kind;
    struct slice text; /* or bytes */
    int64_t number;    /* POSTGRES_TIME: microseconds since 1970 UTC */
};

enum { POSTGRES_MAX_VALUES = 64 };

static inline struct postgres_value postgres_of_null(void)
{
    return (struct postgres_value){ .kind = POSTGRES_NULL };
}

static inline struct postgres_value postgres_of_text(struct slice text)
{
    return (struct postgres_value){ .kind = POSTGRES_TEXT, .text = text };
}

static inline struct postgres_value postgres_of_bytes(struct slice bytes)
{
    return (struct postgres_value){ .kind = POSTGRES_BYTES, .text = bytes };
}

static inline struct postgres_value postgres_of_integer(int64_t n)
{
    return (struct postgres_value){ .kind = POSTGRES_INTEGER, .number = n };
}

static inline struct postgres_value postgres_of_time(int64_t us)
{
    return (struct postgres_value){ .kind = POSTGRES_TIME, .number = us };
}

/*
 * Run one statement with $1, $2, …; on_row is called for each row as it arrives,
 * and may return false to leave the rest. *ret_changed (may be NULL): rows it changed.
 */
enum sql_class postgres_query(struct postgres *p, const char *sql,
                              const struct postgres_value *values, size_t n,
                              bool (*on_row)(void *ctx, const PGresult *row), void *ctx,
                              uint64_t *ret_changed, struct err *err) MUST_CHECK;

/* An on_row for one number: the first column goes to the 64-bit integer at ctx. */
bool postgres_keep_integer(void *ctx, const PGresult *row);

/* A column of a row; `field` counts from 0. A NULL is an empty slice, and 0. */
struct slice postgres_text(const PGresult *row, int field);
int64_t postgres_integer(const PGresult *row, int field);
int64_t postgres_time(const PGresult *row, int field);

/*
 * COPY … FROM STDIN (FORMAT binary): begin, any number of pieces of whole rows, end. The
 * format's header and trailer are sent by begin and end. The server works on the rows while
 * the caller makes the next ones, and the end does not wait for it. What became of them
 * is what settle answers (SQL_DONE when there is no COPY), or else the next call of
 * any kind, which in case of a refusal does nothing more. Both end a COPY that is open.
 * SQL_REFUSED, too: the table took fewer rows than there were.
 */
enum sql_class postgres_copy_begin(struct postgres *p, const char *sql, struct err *err) MUST_CHECK;
enum sql_class postgres_copy_data(struct postgres *p, struct slice rows, uint64_t n_rows,
                                  struct err *err) MUST_CHECK;
enum sql_class postgres_copy_end(struct postgres *p, struct err *err) MUST_CHECK;
enum sql_class postgres_copy_settle(struct postgres *p, struct err *err) MUST_CHECK;

/* A whole COPY of rows that are there: begin, data, end. Without rows: nothing. */
enum sql_class postgres_copy_rows(struct postgres *p, const char *sql, struct slice rows,
                                  uint64_t n_rows, struct err *err) MUST_CHECK;

/* A row in COPY's binary format (PostgreSQL manual, "COPY", File Formats). */
void postgres_put_row(struct buf *b, size_t n_columns);
void postgres_put_null(struct buf *b);
void postgres_put_bytes(struct buf *b, struct slice bytes);
void postgres_put_integer(struct buf *b, int64_t n);
void postgres_put_time(struct buf *b, int64_t us);
void postgres_put_date(struct buf *b, int64_t days); /* since 1970 */
