/* Connecting to PostgreSQL. */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/config_dsn.h"
#include "collector/base/mem.h"
#include "collector/sql/postgres_state.h"

void postgres_close(struct postgres *p)
{
    if (p) {
        PQfinish(p->conn);
        free(p);
    }
}

void postgres_closep(struct postgres **p)
{
    postgres_close(*p);
    *p = NULL;
}

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

/* What is stored must be able to hold every character; SQL_ASCII takes bytes as they are. */
static bool may_hold_all(struct postgres *p, struct err *err)
{
    const char *encoding = PQparameterStatus(p->conn, "server_encoding");

    if (!encoding || strcmp(encoding, "UTF8") == 0 || strcmp(encoding, "SQL_ASCII") == 0) {
        return true;
    }
    return err_set(err, ERR_INVALID,
                   "postgres: the database's encoding is %s, which lacks characters of our "
                   "records: make it with ENCODING 'UTF8'",
                   encoding);
}

/*
 * What the server is to know of us; its own limits end what we no longer wait for. No
 * limit of a statement ends a COPY that waits for a client: probing does, or a ship that
 * vanished would hold its position's row for two hours.
 */
static bool set_up(struct postgres *p, enum postgres_mode mode, struct err *err)
{
    char sql[512];

    (void)snprintf(sql, sizeof(sql),
                   "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; "
                   "SET tcp_keepalives_count = 3; "
                   "SET statement_timeout = %lld; SET lock_timeout = %lld; "
                   "SET idle_in_transaction_session_timeout = %lld; "
                   "SET default_transaction_read_only = %s",
                   (long long)p->timeout_ms, (long long)p->timeout_ms / 2,
                   (long long)p->timeout_ms * 2, mode == POSTGRES_TO_READ ? "on" : "off");
    return PQsetnonblocking(p->conn, 1) == 0 && postgres_exec(p, sql, err) == SQL_DONE;
}

static void quiet(void *ctx, const PGresult *notice)
{
    (void)ctx;
    (void)notice;
}

/* A host is no part of a password that was torn apart, and a port is a number. */
static bool is_plausible(const PQconninfoOption *o)
{
    for (; o->keyword; o++) {
        bool host = strcmp(o->keyword, "host") == 0;
        bool port = strcmp(o->keyword, "port") == 0;

        if (o->val && host && strpbrk(o->val, "@ ")) {
            return false;
        }
        if (o->val && port && strspn(o->val, "0123456789,") != strlen(o->val)) {
            return false;
        }
    }
    return true;
}

/* libpq's own words would quote the part that it cannot read: perhaps the password. */
static bool not_parsed(const char *words, struct err *err)
{
    if (words && (strstr(words, "invalid connection option") ||
                  strstr(words, "invalid URI query parameter"))) {
        return err_set(err, ERR_INVALID, "postgres: dsn: has a keyword that libpq does not know");
    }
    return err_set(err, ERR_INVALID,
                   "postgres: dsn: is neither 'keyword=value …' nor a postgresql:// URI");
}

bool postgres_open(const char *dsn, enum postgres_mode mode, int64_t timeout_ms,
                   struct postgres **ret, struct err *err)
{
    /* A dsn as the value of `dbname` is expanded in place; what follows is ours. */
    const char *const keys[] = { "dbname",
                                 "application_name",
                                 "client_encoding",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 NULL };
    const char *const values[] = { dsn, "hooktrail", "UTF8", "10", "5", "3", NULL };
    char *words = NULL;

    if (!dsn_check(dsn, err)) {
        return err_wrap(err, "postgres: dsn");
    }

    PQconninfoOption *parsed = PQconninfoParse(dsn, &words);

    if (!parsed) {
        bool done = not_parsed(words, err);

        PQfreemem(words);
        return done;
    }
    if (!is_plausible(parsed)) {
        PQconninfoFree(parsed);
        return err_set(err, ERR_INVALID,
                       "postgres: dsn: host and port cannot be meant; in a URI, write @ : / of a "
                       "password as %%40 %%3A %%2F");
    }
    PQconninfoFree(parsed);

    CLEANUP(postgres_closep) struct postgres *p = xcalloc(1, sizeof(*p));

    p->timeout_ms = timeout_ms;
    p->conn = PQconnectStartParams(keys, values, 1);
    if (!p->conn || PQstatus(p->conn) == CONNECTION_BAD) {
        return not_connected(p, err);
    }
    (void)PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE); /* it brings the SQLSTATE of a refusal */
    (void)PQsetNoticeReceiver(p->conn, quiet, NULL);
    postgres_arm(p);
    if (!connect_in_time(p, err) || (mode == POSTGRES_TO_WRITE && !may_hold_all(p, err)) ||
        !set_up(p, mode, err)) {
        return false;
    }
    *ret = TAKE_PTR(p);
    return true;
}
