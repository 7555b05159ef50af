/*
 * server: what the parts of web share. Nothing outside this folder includes it.
 *
 * The life of a request (R: refs):
 *
 *     READING ─▶ HANDLING ─┬─▶ REPLIED    answered inside handle(), or before it came back
 *       R=1        R=2     └─▶ SUSPENDED ─┬─▶ REPLIED    web_reply() resumes the connection
 *                                         └─▶ ABANDONED  web_stop() would wait no longer
 *
 * libmicrohttpd's side holds one reference, the handler's the other. A state is
 * left by compare-and-swap, so exactly one thread resumes a connection; after
 * that nobody but the listener thread may touch it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <microhttpd.h>

#include "collector/web/access.h"
#include "collector/web/listen.h"
#include "collector/web/route.h"
#include "collector/web/token.h"
#include "collector/web/web.h"

enum {
    WEB_HEADERS_MAX_BYTES = 16 * 1024, /* request line and headers; MHD's pool holds twice that */
    WEB_HEADERS_MAX = 100,
    WEB_PATH_MAX_BYTES = 8 * 1024,
    WEB_ARGS_MAX = 32,
    WEB_DRAIN_MAX_BYTES =
        256 * 1024,              /* of a refused body that is read so that its sender hears why */
    WEB_ARENA_BYTES = 64 * 1024, /* parameters and arguments of one request */
    WEB_REPLY_HEADERS = 4,
};

enum { LISTENER_DAEMONS = 2 }; /* at most */

struct listener {
    struct web *web;
    struct listen_spec spec;
    int port;
    int fd;                                       /* listens */
    struct MHD_Daemon *daemons[LISTENER_DAEMONS]; /* a thread each */
    size_t n_daemons;                             /* 0: not started */
    pthread_t accepting;

    pthread_mutex_t mutex; /* over everything below */
    pthread_cond_t quiet;  /* `active` has become 0 */
    struct conn *conns;
    size_t n_conns;
    size_t active; /* requests that a handler has seen and whose answer is not sent */
    int64_t swept_ms;
};

struct web {
    struct listener *listeners;
    size_t n_listeners;
    const struct web_route *routes; /* borrowed from the options */
    size_t n_routes;
    const char *const *hosts; /* owned copies */
    const char *hosts_key;    /* borrowed from the options */
    gid_t group;              /* ACCESS_NO_GROUP: none */
    struct token_cache *tokens;
    unsigned max_connections;
    int64_t idle_ms;
    atomic_bool stopping;
    _Atomic uint64_t requests;
    _Atomic uint64_t refused;
    _Atomic uint64_t connections;
    _Atomic uint64_t open; /* of them, now */
};

/* One connection; lives as long as MHD's. */
struct conn {
    struct conn *next;
    struct conn **at; /* the pointer that points here */
    int fd;           /* MHD's */
    bool let_in;
    bool over_limit;
    uid_t uid;                   /* of a Unix peer */
    bool reading;                /* a request, or the wait for one */
    int64_t since_ms;            /* reading since */
    struct web_request *pending; /* suspended, or about to be */
};

enum request_state {
    REQUEST_READING,
    REQUEST_HANDLING,
    REQUEST_SUSPENDED,
    REQUEST_REPLIED,
    REQUEST_ABANDONED
};

struct web_header {
    char *name; /* owned, with value behind its NUL */
    char *value;
};

struct web_request {
    struct listener *listener;
    struct conn *conn;
    struct MHD_Connection *mhd;
    struct route_match match;
    struct arena arena;
    struct buf body;
    struct route_param *args; /* in the arena */
    size_t n_args;
    unsigned scopes;
    char actor[TOKEN_NAME_MAX + 16];
    int fd;
    bool handled;
    size_t drained_bytes;

    struct MHD_Response *refusal; /* decided before the handler; listener thread only */
    int refusal_status;

    struct web_header headers[WEB_REPLY_HEADERS]; /* for the coming answer */
    size_t n_headers;

    _Atomic int refs;
    _Atomic int state;             /* enum request_state */
    struct MHD_Response *response; /* valid once the state is REPLIED */
    int status;
};

/* accept.c: give the daemons what connects to l->fd, until the stop, which closes it. */
bool accept_start(struct listener *l, struct err *err) MUST_CHECK;
void accept_stop(struct listener *l);

/* request.c: a new request with one reference, and dropping one. */
struct web_request *request_new(struct listener *l, struct conn *c, struct MHD_Connection *mhd);
void request_unref(struct web_request *r);

/* request.c: decide, before the handler, that the answer is this problem. Counts it. False. */
bool request_refuse(struct web_request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* admit.c: check the headers of a request: false after a refusal. */
bool admit(struct web_request *r, const char *path, const char *method);

/* admit.c: true when the client hears of a refusal at once, its body unread. */
bool admit_refuses_at_once(struct web_request *r);

/* serve.c: what MHD calls. `cls` is the listener. */
enum MHD_Result serve_access(void *cls, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_size, void **request);
void serve_completed(void *cls, struct MHD_Connection *mhd, void **request,
                     enum MHD_RequestTerminationCode why);
void serve_connection(void *cls, struct MHD_Connection *mhd, void **conn,
                      enum MHD_ConnectionNotificationCode what);

/* serve.c: the steps of web_stop(). */
bool serve_wait_quiet(struct listener *l, int64_t wait_ms);
void serve_tell_gone(struct listener *l);
void serve_abandon(struct listener *l);
