/*
 * web: HTTP in, over TCP, TLS and Unix sockets (libmicrohttpd).
 *
 * One or two epoll threads a listener parse a request, check who asks and how much,
 * and hand it to a handler; the handler answers at once or keeps the request
 * and answers later from any thread (the connection is suspended meanwhile).
 *
 *     listener thread: parse ─▶ peer/token, Host, Origin, limits ─▶ handler
 *                                                     web_reply() ◀─┘ now or later
 *
 * Every refusal is problem+json (RFC 9457) that names the limit or the scope.
 * libmicrohttpd lets nobody see what it answers itself, in HTML (a Content-Length
 * that is no number, a line that is no header, a head of more than 32 KiB), nor
 * that a header's line was folded or went on behind a NUL: the value is what it
 * makes of it.
 * Design: Access.
 */
#pragma once

#include <stdint.h>

#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/base/slice.h"

struct web;         /* a server with its listeners; opaque */
struct web_request; /* one request; opaque */

/* What a token may do. A Unix peer that is let in may do everything. */
enum web_scope {
    WEB_SCOPE_NONE = 0, /* open to all: /healthz, /readyz */
    WEB_SCOPE_DISPATCH = 1 << 0,
    WEB_SCOPE_INGEST = 1 << 1,
    WEB_SCOPE_QUERY = 1 << 2,
    WEB_SCOPE_EXPORT = 1 << 3,
    WEB_SCOPE_ADMIN = 1 << 4,
};

struct web_route {
    const char *method; /* GET (and HEAD with it), POST */
    const char
        *path; /* a segment ":name" matches any one segment, e.g. /v1/threads/:thread/trace */
    unsigned scope;
    size_t max_body_bytes; /* 0: no body allowed */
    const char *args;      /* the query's, parted by blanks; others are refused. NULL: none */

    /*
     * Called on the listener thread once the body is there; must not block. Answers
     * with web_reply() now, or later from any thread, exactly once.
     */
    void (*handle)(void *ctx, struct web_request *r);
    void *ctx;
};

struct web_options {
    const char *const *listen; /* "unix:PATH", "tcp:HOST:PORT"; NULL-terminated */
    const struct web_route *routes;
    size_t n_routes;
    const char *tokens_path;  /* STATE/tokens.json; NULL: TCP refuses everything with a scope */
    const char *socket_group; /* group let in on Unix sockets; NULL: only our uid and root */
    const char *tls_cert;     /* PEM files; NULL: plain TCP, loopback addresses only */
    const char *tls_key;
    const char *const *hosts; /* further Host names that are ours; NULL-terminated; NULL: none */
    const char *hosts_key;    /* the configuration's key of them, for a refusal to name */
    unsigned max_connections; /* a listener; over it: refused */
    int64_t idle_ms;          /* a connection that says nothing is closed */
};

/* Start all listeners. A stale Unix socket of a dead server is replaced. */
bool web_start(const struct web_options *o, struct web **ret, struct err *err) MUST_CHECK;

/*
 * Take no more connections, and wait at most wait_ms for the answers that are
 * due. Then tell the late ones that their client has gone (POLLRDHUP on web_fd),
 * wait WEB_STOP_MS more, answer 503 in their place, and close. A handler may
 * still call web_reply() afterwards. Accepts NULL.
 */
enum { WEB_STOP_MS = 2000 }; /* a hook that is ended may take 500 ms for it */
void web_stop(struct web *w, int64_t wait_ms);

/* The TCP port of listener i (for "tcp:127.0.0.1:0"); 0 for a Unix socket. */
int web_port(const struct web *w, size_t i);

/* ---- A request. Slices live until its reply. -------------------------------- */

/* The whole body. */
struct slice web_body(const struct web_request *r);
/* The segment that matched ":name", percent-decoded; empty: no such. */
struct slice web_param(const struct web_request *r, const char *name);
/* A query argument, decoded; empty: absent. */
struct slice web_query(const struct web_request *r, const char *name);
/* Who asks, for admin records and logs: "uid 1000" or "token NAME". */
const char *web_actor(const struct web_request *r);
/* The client's socket, to be polled for POLLRDHUP until the reply; never read or written. */
int web_fd(const struct web_request *r);

/* Add a header to the coming answer; at most 4, both strings copied, a value without line breaks.
 */
void web_header(struct web_request *r, const char *name, const char *value);

/* Answer. `body` is copied. `content_type` NULL: application/json. Thread: any. Ends r. */
void web_reply(struct web_request *r, int status, const char *content_type, struct slice body);

/* Answer with problem+json: {"type":"about:blank","title","status","detail"}. Ends r. */
void web_problem(struct web_request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- Numbers --------------------------------------------------------------- */

struct web_stats {
    uint64_t requests;
    uint64_t refused; /* token, scope, Host, Origin, limits */
    uint64_t connections;
    uint64_t open; /* connections that are open now */
};
/* Counted since web_start(). Thread: any. */
void web_stats(const struct web *w, struct web_stats *ret);
