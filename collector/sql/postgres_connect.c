/* Connecting to PostgreSQL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/config_dsn.h"
#include "collector/base/mem.h"
#include "collector/sql/postgres_state.h"

enum { HOST_BYTES = 256 };

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

/* What the dsn calls the host, or the hosts; "" where libpq has it from elsewhere. */
static void note_host(const PQconninfoOption *o, char ret[HOST_BYTES])
{
    ret[0] = '\0';

    for (; o->keyword; o++) {
        if (strcmp(o->keyword, "host") == 0 && o->val) {
            (void)snprintf(ret, HOST_BYTES, "%s", o->val);
        }
    }
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

/* The dsn is one that may be tried. *ret_host: whom it names, as told when nobody is found. */
static bool may_try(const char *dsn, char ret_host[HOST_BYTES], struct err *err)
{
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

    bool plausible = is_plausible(parsed);

    note_host(parsed, ret_host);
    PQconninfoFree(parsed);
    return plausible ? true
                     : err_set(err, ERR_INVALID,
                               "postgres: dsn: host and port cannot be meant; in a URI, write "
                               "@ : / of a password as %%40 %%3A %%2F");
}

bool postgres_open(const char *dsn, enum postgres_mode mode, int64_t timeout_ms,
                   struct postgres **ret, struct err *err)
{
    CLEANUP(postgres_closep) struct postgres *p = NULL;
    char host[HOST_BYTES];

    if (!may_try(dsn, host, err) || !postgres_dial(dsn, host, timeout_ms, &p, err) ||
        (mode == POSTGRES_TO_WRITE && !may_hold_all(p, err)) || !set_up(p, mode, err)) {
        return false;
    }
    *ret = TAKE_PTR(p);
    return true;
}
