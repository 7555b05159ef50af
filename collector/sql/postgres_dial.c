/* Dialing PostgreSQL: until a connection stands, is refused, or the time is over. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/aside.h"
#include "collector/base/mem.h"
#include "collector/sql/postgres_state.h"

/* The SQLSTATE of a line in libpq's verbose words, "…FATAL:  28P01: …"; NULL: it has none. */
static const char *sqlstate_in(struct slice line)
{
    enum { STATE_CHARS = 5 };

    for (size_t i = 0; i + STATE_CHARS + 5 <= line.len; i++) {
        const char *at = line.ptr + i;

        if (strncmp(at, ":  ", 3) == 0 &&
            strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == STATE_CHARS &&
            strncmp(at + 3 + STATE_CHARS, ": ", 2) == 0) {
            return at + 3;
        }
    }
    return NULL;
}

/* Refusals by libpq itself, which have no SQLSTATE, and that trying again does not mend. */
static bool is_ours_to_mend(const char *words)
{
    static const char *const table[] = {
        "does not support SSL",
        "certificate verify failed",
        "does not match host name",
        "certificate file",
        "private key file",
        "no password supplied",
        "authentication method",
        "channel binding is required",
        " value: \"",
        "invalid port number",
        "invalid integer value",
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strstr(words, table[i])) {
            return true;
        }
    }
    return false;
}

/* Add a line, without its SQLSTATE, which is kept in *p. */
static void add_line(struct postgres *p, struct slice line, struct buf *out)
{
    const char *state = sqlstate_in(line);

    if (slice_starts_with(line, SLICE("LOCATION:")) || slice_starts_with(line, SLICE("\t"))) {
        return; /* a place in the server's source; advice that says nothing new */
    }
    if (out->len_bytes > 0 && line.len > 0) {
        buf_add(out, SLICE("; "));
    }
    if (state) {
        memcpy(p->sqlstate, state, sizeof(p->sqlstate) - 1);
        buf_add(out, (struct slice){ line.ptr, (size_t)(state - 1 - line.ptr) });
        line.len -= (size_t)(state + strlen(p->sqlstate) + 2 - line.ptr);
        line.ptr = state + strlen(p->sqlstate) + 2;
    }
    buf_add(out, line);
}

/* Why there is no connection: a line for each host that was tried. */
static bool not_connected(struct postgres *p, struct err *err)
{
    enum { WORDS_BYTES = 16 * 1024 };
    CLEANUP(buf_done) struct buf words;
    struct slice rest = slice_from_cstr(PQerrorMessage(p->conn));
    struct slice line;
    bool more = true;

    buf_init(&words, WORDS_BYTES);
    p->sqlstate[0] = '\0';
    while (more) {
        more = slice_cut(rest, '\n', &line, &rest);
        add_line(p, line, &words);
    }

    bool refused = p->sqlstate[0] ? postgres_class(p->sqlstate) == SQL_REFUSED
                                  : is_ours_to_mend(buf_cstr(&words));

    return err_set(err, refused ? ERR_INVALID : ERR_IO, "postgres: %s", buf_cstr(&words));
}

/* Drive the connection until it stands, or the time is over. */
static bool connect_in_time(struct postgres *p, struct err *err)
{
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (status != PGRES_POLLING_OK) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (status == PGRES_POLLING_FAILED) {
            return not_connected(p, err);
        }
        if (postgres_wait(p, events, err) != SQL_DONE) {
            return err_set(err, ERR_IO, "postgres: no connection to %s port %s in %lld ms",
                           PQhost(p->conn), PQport(p->conn), (long long)p->timeout_ms);
        }
        status = PQconnectPoll(p->conn);
    }
    return true;
}

static void quiet(void *ctx, const PGresult *notice)
{
    (void)ctx;
    (void)notice;
}

/* A connection in the making. libpq looks names up within its calls, however long that takes. */
struct dial {
    struct postgres *p; /* owned */
    char *dsn;          /* owned */
    bool connected;
    struct err err;
};

static void dial(void *ctx)
{
    /* A dsn as the value of `dbname` is expanded in place; what follows is ours. */
    static const char *const keys[] = { "dbname",
                                        "application_name",
                                        "client_encoding",
                                        "keepalives_idle",
                                        "keepalives_interval",
                                        "keepalives_count",
                                        NULL };
    struct dial *d = ctx;
    const char *const values[] = { d->dsn, "hooktrail", "UTF8", "10", "5", "3", NULL };

    d->p->conn = PQconnectStartParams(keys, values, 1);
    if (!d->p->conn || PQstatus(d->p->conn) == CONNECTION_BAD) {
        d->connected = not_connected(d->p, &d->err);
        return;
    }
    (void)PQsetErrorVerbosity(d->p->conn, PQERRORS_VERBOSE); /* the SQLSTATE of a refusal */
    (void)PQsetNoticeReceiver(d->p->conn, quiet, NULL);
    d->connected = connect_in_time(d->p, &d->err);
}

static void dial_free(void *ctx)
{
    struct dial *d = ctx;

    postgres_close(d->p);
    free(d->dsn);
    free(d);
}

static void dial_freep(struct dial **d)
{
    if (*d) {
        dial_free(*d);
        *d = NULL;
    }
}

bool postgres_dial(const char *dsn, const char *host, int64_t timeout_ms, struct postgres **ret,
                   struct err *err)
{
    enum { GRACE_MS = 50 }; /* who waits for a server itself says more of it */
    static const struct aside_ops ops = { dial, dial_free };
    CLEANUP(dial_freep) struct dial *d = xcalloc(1, sizeof(*d));

    d->dsn = xstrdup(dsn);
    d->p = xcalloc(1, sizeof(*d->p));
    d->p->timeout_ms = timeout_ms;
    postgres_arm(d->p);
    switch (aside_run(&ops, d, d->p->deadline_ms + GRACE_MS, err)) {
    case ASIDE_REFUSED:
        return err_wrap(err, "postgres");
    case ASIDE_LEFT:
        (void)TAKE_PTR(d);
        return err_set(err, ERR_IO, "postgres: no address of host '%s' in %lld ms", host,
                       (long long)timeout_ms);
    case ASIDE_DONE:
        break;
    }
    if (!d->connected) {
        *err = d->err;
        return false;
    }
    *ret = TAKE_PTR(d->p);
    return true;
}
