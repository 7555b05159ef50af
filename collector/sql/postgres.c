#include "collector/sql/postgres.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/sql/postgres_state.h"

/* From pg_type: the only types that we send. */
enum { OID_ANY = 0, OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, OID_TIMESTAMPTZ = 1184 };

enum { DAYS_1970_TO_2000 = 10957 };

/* Signature, flags, length of an extension (4 bytes each); a row of -1 columns ends it. */
#define COPY_HEADER SLICE("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0")
#define COPY_TRAILER SLICE("\377\377")

#define EPOCH_2000_US (DAYS_1970_TO_2000 * CLOCK_DAY_US)

void postgres_arm(struct postgres *p)
{
    p->deadline_ms = clock_mono_ms() + p->timeout_ms;
}

enum sql_class postgres_wait(struct postgres *p, short events, struct err *err)
{
    struct pollfd fd = { .fd = PQsocket(p->conn), .events = events };

    for (;;) {
        int left_ms = clock_left_ms(p->deadline_ms);
        int n = fd.fd < 0 ? -1 : poll(&fd, 1, left_ms);

        if (n > 0) {
            return SQL_DONE;
        }
        if (n < 0 && errno == EINTR && fd.fd >= 0) {
            continue;
        }
        if (n < 0) {
            return postgres_gone(p, err);
        }
        p->lost = true;
        (void)err_set(err, ERR_AGAIN, "postgres: no answer in %lld ms", (long long)p->timeout_ms);
        return SQL_LOST;
    }
}

/* Send what libpq has in its buffer, and take in what comes meanwhile. */
static enum sql_class flush(struct postgres *p, struct err *err)
{
    for (;;) {
        int left = PQflush(p->conn);

        if (left == 0) {
            return SQL_DONE;
        }
        if (left < 0) {
            return postgres_gone(p, err);
        }

        enum sql_class class = postgres_wait(p, POLLIN | POLLOUT, err);

        if (class != SQL_DONE) {
            return class;
        }
        if (PQconsumeInput(p->conn) == 0) {
            return postgres_gone(p, err);
        }
    }
}

/* The next result; NULL when the statement is over. */
static enum sql_class next_result(struct postgres *p, PGresult **ret, struct err *err)
{
    while (PQisBusy(p->conn)) {
        enum sql_class class = postgres_wait(p, POLLIN, err);

        if (class != SQL_DONE) {
            return class;
        }
        if (PQconsumeInput(p->conn) == 0) {
            return postgres_gone(p, err);
        }
    }
    *ret = PQgetResult(p->conn);
    return SQL_DONE;
}

/* What one result says; rows go to on_row as long as it wants any. */
struct taking {
    bool (*on_row)(void *ctx, const PGresult *row);
    void *ctx;
    uint64_t *changed;
};

static enum sql_class take_result(struct postgres *p, PGresult *result, struct taking *t,
                                  struct err *err)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_SINGLE_TUPLE && t->on_row && !t->on_row(t->ctx, result)) {
        t->on_row = NULL;
    }
    if (status == PGRES_SINGLE_TUPLE || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
        return SQL_DONE;
    }
    if (status == PGRES_COMMAND_OK) {
        if (t->changed) {
            *t->changed = strtoull(PQcmdTuples(result), NULL, 10);
        }
        return SQL_DONE;
    }
    return postgres_refused(p, result, err);
}

/* All results of what was sent. The first refusal counts; the rest is read all the same. */
static enum sql_class take_all(struct postgres *p, struct taking *t, struct err *err)
{
    enum sql_class outcome = SQL_DONE;

    for (;;) {
        PGresult *result = NULL;
        enum sql_class class = next_result(p, &result, err);

        if (class != SQL_DONE) {
            return class;
        }
        if (!result) {
            return outcome;
        }
        class = outcome == SQL_DONE ? take_result(p, result, t, err) : SQL_DONE;
        PQclear(result);
        if (class == SQL_LOST) {
            return class;
        }
        outcome = class != SQL_DONE ? class : outcome;
    }
}

/*
 * libpq takes no more rows: the server has refused those that it has, and libpq has read
 * so already, or the connection is gone.
 */
static enum sql_class copy_refused(struct postgres *p, struct err *err)
{
    struct taking t = { 0 };
    enum sql_class class;

    p->copying = POSTGRES_COPY_NONE;
    class = take_all(p, &t, err);
    return class == SQL_DONE ? postgres_gone(p, err) : class;
}

/* Pieces behind the last one are sent at once, so that libpq's buffer stays small. */
static enum sql_class send_bytes(struct postgres *p, struct slice bytes, struct err *err)
{
    enum { PIECE_BYTES = 256 * 1024 };

    assert(p->copying == POSTGRES_COPY_OPEN);
    while (bytes.len > 0) {
        size_t n = bytes.len < PIECE_BYTES ? bytes.len : PIECE_BYTES;
        enum sql_class class = flush(p, err);
        int sent;

        if (class != SQL_DONE) {
            return class;
        }
        if (PQconsumeInput(p->conn) == 0) { /* a refusal comes while we send */
            return postgres_gone(p, err);
        }
        sent = PQputCopyData(p->conn, bytes.ptr, (int)n);
        if (sent < 0) {
            return copy_refused(p, err);
        }
        if (sent > 0) {
            bytes.ptr += n;
            bytes.len -= n;
        }
    }
    return SQL_DONE;
}

enum sql_class postgres_copy_data(struct postgres *p, struct slice rows, uint64_t n_rows,
                                  struct err *err)
{
    p->n_copied += n_rows;
    return send_bytes(p, rows, err);
}

enum sql_class postgres_copy_end(struct postgres *p, struct err *err)
{
    enum sql_class class = send_bytes(p, COPY_TRAILER, err);
    int sent = class == SQL_DONE ? PQputCopyEnd(p->conn, NULL) : 1;

    while (class == SQL_DONE && sent == 0) {
        class = postgres_wait(p, POLLOUT, err);
        sent = PQputCopyEnd(p->conn, NULL);
    }
    if (class != SQL_DONE || sent < 0) {
        return class != SQL_DONE ? class : copy_refused(p, err);
    }
    p->copying = POSTGRES_COPY_ENDED;
    return PQflush(p->conn) >= 0 ? SQL_DONE : postgres_gone(p, err);
}

/* A trigger of somebody else may drop rows without a word. */
static enum sql_class took_all(const struct postgres *p, uint64_t n_taken, struct err *err)
{
    if (n_taken == p->n_copied) {
        return SQL_DONE;
    }
    (void)err_set(err, ERR_INVALID, "postgres: table %s took %llu of %llu rows: a trigger of it?",
                  p->copy_into, (unsigned long long)n_taken, (unsigned long long)p->n_copied);
    return SQL_REFUSED;
}

enum sql_class postgres_copy_settle(struct postgres *p, struct err *err)
{
    uint64_t n_taken = 0;
    struct taking t = { .changed = &n_taken };
    enum sql_class class = SQL_DONE;

    if (p->copying == POSTGRES_COPY_OPEN) {
        class = postgres_copy_end(p, err);
    }
    if (class != SQL_DONE || p->copying == POSTGRES_COPY_NONE) {
        return class;
    }
    p->copying = POSTGRES_COPY_NONE;
    class = flush(p, err);
    if (class == SQL_DONE) {
        class = take_all(p, &t, err);
    }
    return class == SQL_DONE ? took_all(p, n_taken, err) : class;
}

static enum sql_class ready(struct postgres *p, struct err *err)
{
    p->sqlstate[0] = '\0';
    if (p->lost) {
        (void)err_set(err, ERR_IO, "postgres: the connection is in doubt");
        return SQL_LOST;
    }
    return postgres_copy_settle(p, err);
}

enum sql_class postgres_exec(struct postgres *p, const char *sql, struct err *err)
{
    enum sql_class class = ready(p, err);
    struct taking t = { 0 };

    if (class != SQL_DONE) {
        return class;
    }
    if (PQsendQuery(p->conn, sql) == 0) {
        return postgres_gone(p, err);
    }
    class = flush(p, err);
    return class == SQL_DONE ? take_all(p, &t, err) : class;
}

/* Eight bytes, most significant first. */
static void put_be64(char *at, uint64_t n)
{
    for (int i = 7; i >= 0; i--) {
        at[i] = (char)(n & 0xff);
        n >>= 8;
    }
}

/* Parameters as libpq wants them: four arrays. */
struct parameters {
    Oid types[POSTGRES_MAX_VALUES];
    const char *values[POSTGRES_MAX_VALUES];
    int lengths[POSTGRES_MAX_VALUES];
    int formats[POSTGRES_MAX_VALUES];
    char numbers[POSTGRES_MAX_VALUES][8];
};

static void fill_bytes(struct parameters *to, size_t i, struct slice bytes)
{
    to->values[i] = bytes.ptr ? bytes.ptr : "";
    to->lengths[i] = (int)bytes.len;
}

static void fill_number(struct parameters *to, size_t i, int64_t number)
{
    put_be64(to->numbers[i], (uint64_t)number);
    to->values[i] = to->numbers[i];
    to->lengths[i] = sizeof(to->numbers[i]);
}

static void fill(struct parameters *to, const struct postgres_value *values, size_t n)
{
    static const Oid types[] = {
        [POSTGRES_NULL] = OID_ANY,         [POSTGRES_TEXT] = OID_TEXT,
        [POSTGRES_BYTES] = OID_BYTEA,      [POSTGRES_INTEGER] = OID_INT8,
        [POSTGRES_TIME] = OID_TIMESTAMPTZ,
    };

    assert(n <= POSTGRES_MAX_VALUES);
    for (size_t i = 0; i < n; i++) {
        const struct postgres_value *v = &values[i];

        to->types[i] = types[v->kind];
        to->formats[i] = 1;
        switch (v->kind) {
        case POSTGRES_NULL:
            to->values[i] = NULL;
            break;
        case POSTGRES_TEXT:
        case POSTGRES_BYTES:
            fill_bytes(to, i, v->text);
            break;
        case POSTGRES_INTEGER:
            fill_number(to, i, v->number);
            break;
        case POSTGRES_TIME:
            fill_number(to, i, v->number - EPOCH_2000_US);
            break;
        }
    }
}

enum sql_class postgres_query(struct postgres *p, const char *sql,
                              const struct postgres_value *values, size_t n,
                              bool (*on_row)(void *ctx, const PGresult *row), void *ctx,
                              uint64_t *ret_changed, struct err *err)
{
    struct taking t = { .on_row = on_row, .ctx = ctx };
    struct parameters to;
    enum sql_class class = ready(p, err);

    t.changed = ret_changed;
    if (class != SQL_DONE) {
        return class;
    }
    fill(&to, values, n);
    if (PQsendQueryParams(p->conn, sql, (int)n, to.types, to.values, to.lengths, to.formats, 1) ==
            0 ||
        PQsetSingleRowMode(p->conn) == 0) {
        return postgres_gone(p, err);
    }
    class = flush(p, err);
    return class == SQL_DONE ? take_all(p, &t, err) : class;
}

struct slice postgres_text(const PGresult *row, int field)
{
    return (struct slice){ .ptr = PQgetvalue(row, 0, field),
                           .len = (size_t)PQgetlength(row, 0, field) };
}

int64_t postgres_integer(const PGresult *row, int field)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(row, 0, field);
    int len = PQgetlength(row, 0, field);
    uint64_t n = len > 0 && (bytes[0] & 0x80) ? UINT64_MAX : 0; /* int4 keeps its sign */

    for (int i = 0; i < len; i++) {
        n = n << 8 | bytes[i];
    }
    return (int64_t)n;
}

bool postgres_keep_integer(void *ctx, const PGresult *row)
{
    *(int64_t *)ctx = postgres_integer(row, 0);
    return false;
}

int64_t postgres_time(const PGresult *row, int field)
{
    return postgres_integer(row, field) + EPOCH_2000_US;
}

enum sql_class postgres_copy_begin(struct postgres *p, const char *sql, struct err *err)
{
    PGresult *result = NULL;
    enum sql_class class = ready(p, err);

    if (class != SQL_DONE) {
        return class;
    }
    if (PQsendQuery(p->conn, sql) == 0) {
        return postgres_gone(p, err);
    }
    class = flush(p, err);
    if (class == SQL_DONE) {
        class = next_result(p, &result, err);
    }
    if (class != SQL_DONE) {
        return class;
    }
    if (PQresultStatus(result) != PGRES_COPY_IN) {
        struct taking t = { 0 };
        struct err ignored; /* the refusal itself is what is told */

        class = postgres_refused(p, result, err);
        PQclear(result);
        return take_all(p, &t, &ignored) == SQL_LOST ? SQL_LOST : class;
    }
    PQclear(result);
    p->copying = POSTGRES_COPY_OPEN;
    p->n_copied = 0;
    (void)sscanf(sql, "COPY %63s", p->copy_into);
    return send_bytes(p, COPY_HEADER, err);
}

enum sql_class postgres_copy_rows(struct postgres *p, const char *sql, struct slice rows,
                                  uint64_t n_rows, struct err *err)
{
    enum sql_class class;

    if (rows.len == 0) {
        return SQL_DONE;
    }
    class = postgres_copy_begin(p, sql, err);
    if (class == SQL_DONE) {
        class = postgres_copy_data(p, rows, n_rows, err);
    }
    return class == SQL_DONE ? postgres_copy_end(p, err) : class;
}

static void put_be(struct buf *b, uint64_t value, size_t n)
{
    char bytes[8];

    put_be64(bytes, value);
    buf_add(b, (struct slice){ .ptr = bytes + 8 - n, .len = n });
}

void postgres_put_row(struct buf *b, size_t n_columns)
{
    put_be(b, n_columns, 2);
}

void postgres_put_null(struct buf *b)
{
    put_be(b, UINT64_MAX, 4);
}

void postgres_put_bytes(struct buf *b, struct slice bytes)
{
    put_be(b, bytes.len, 4);
    buf_add(b, bytes);
}

void postgres_put_integer(struct buf *b, int64_t n)
{
    put_be(b, 8, 4);
    put_be(b, (uint64_t)n, 8);
}

void postgres_put_time(struct buf *b, int64_t us)
{
    postgres_put_integer(b, us - EPOCH_2000_US);
}

void postgres_put_date(struct buf *b, int64_t days)
{
    put_be(b, 4, 4);
    put_be(b, (uint64_t)(days - DAYS_1970_TO_2000), 4);
}
