#include <stdlib.h>
#include <sys/socket.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/web/server.h"

enum { SWEEP_MS = 1000 };

/* ---- Connections ------------------------------------------------------------ */

/*
 * MHD's own timeout ends a connection that says nothing. One that says a byte now
 * and then is ended here, when others come: it has read for longer than idle_ms.
 */
static void sweep_slow(struct listener *l, int64_t now_ms)
{
    if (now_ms - l->swept_ms < SWEEP_MS) {
        return;
    }
    l->swept_ms = now_ms;
    for (const struct conn *c = l->conns; c; c = c->next) {
        if (c->reading && now_ms - c->since_ms > l->web->idle_ms) {
            (void)shutdown(c->fd, SHUT_RDWR);
        }
    }
}

static struct conn *conn_new(struct listener *l, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct conn *c = xcalloc(1, sizeof(*c));

    c->fd = info ? info->connect_fd : -1;
    c->let_in = !l->spec.is_unix || access_peer(c->fd, l->web->group, &c->uid);
    c->reading = true;
    c->since_ms = clock_mono_ms();

    (void)pthread_mutex_lock(&l->mutex);
    sweep_slow(l, c->since_ms);
    c->next = l->conns;
    c->at = &l->conns;
    if (c->next) {
        c->next->at = &c->next;
    }
    l->conns = c;
    l->n_conns++;
    c->over_limit = l->n_conns > l->web->max_connections;
    (void)pthread_mutex_unlock(&l->mutex);
    atomic_fetch_add_explicit(&l->web->connections, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->web->open, 1, memory_order_relaxed);
    return c;
}

static void conn_free(struct listener *l, struct conn *c)
{
    (void)pthread_mutex_lock(&l->mutex);
    *c->at = c->next;
    if (c->next) {
        c->next->at = c->at;
    }
    l->n_conns--;
    (void)pthread_mutex_unlock(&l->mutex);
    atomic_fetch_sub_explicit(&l->web->open, 1, memory_order_relaxed);
    free(c);
}

void serve_connection(void *cls, struct MHD_Connection *mhd, void **conn,
                      enum MHD_ConnectionNotificationCode what)
{
    switch (what) {
    case MHD_CONNECTION_NOTIFY_STARTED:
        *conn = conn_new(cls, mhd);
        break;
    case MHD_CONNECTION_NOTIFY_CLOSED:
        conn_free(cls, *conn);
        *conn = NULL;
        break;
    }
}

/* ---- Requests --------------------------------------------------------------- */

static enum MHD_Result queue(struct web_request *r, int status, struct MHD_Response *response)
{
    if (atomic_load_explicit(&r->listener->web->stopping, memory_order_relaxed) ||
        r->conn->over_limit) {
        (void)MHD_add_response_header(response, "Connection", "close");
    }
    return MHD_queue_response(r->mhd, (unsigned)status, response);
}

static enum MHD_Result begin(struct listener *l, struct MHD_Connection *mhd, const char *url,
                             const char *method, void **request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct web_request *r = request_new(l, info->socket_context, mhd);

    *request = r;
    atomic_fetch_add_explicit(&l->web->requests, 1, memory_order_relaxed);
    if (!admit(r, url, method) && admit_refuses_at_once(r)) {
        (void)MHD_add_response_header(r->refusal, "Connection", "close");
        return queue(r, r->refusal_status, r->refusal);
    }
    return MHD_YES;
}

/* Part of a body. What comes after a refusal is passed over, up to a limit. */
static enum MHD_Result take_body(struct web_request *r, const char *bytes, size_t *size)
{
    size_t n = *size;

    *size = 0;
    if (!r->refusal) {
        buf_add(&r->body, (struct slice){ .ptr = bytes, .len = n });
        if (!buf_ok(&r->body)) {
            (void)request_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE,
                                 "body: the limit of %s %s is %zu bytes", r->match.route->method,
                                 r->match.route->path, r->match.route->max_body_bytes);
            (void)MHD_add_response_header(r->refusal, "Connection", "close");
        }
    }
    if (r->refusal) {
        r->drained_bytes += n;
    }
    return r->drained_bytes > WEB_DRAIN_MAX_BYTES ? MHD_NO : MHD_YES;
}

/* Mark r as given to its handler; a stopping server gives none. */
static bool enter(struct web_request *r)
{
    struct listener *l = r->listener;
    bool ok;

    (void)pthread_mutex_lock(&l->mutex);
    ok = !atomic_load(&l->web->stopping);
    if (ok) {
        r->handled = true;
        r->conn->reading = false;
        r->conn->pending = r;
        l->active++;
    }
    (void)pthread_mutex_unlock(&l->mutex);
    return ok;
}

static enum MHD_Result finish(struct web_request *r)
{
    struct listener *l = r->listener;

    (void)pthread_mutex_lock(&l->mutex);
    r->conn->pending = NULL;
    (void)pthread_mutex_unlock(&l->mutex);
    if (atomic_load(&r->state) == REQUEST_REPLIED) {
        return queue(r, r->status, r->response);
    }
    (void)request_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the server stops");
    return queue(r, r->refusal_status, r->refusal);
}

static enum MHD_Result handle(struct web_request *r)
{
    int was = REQUEST_HANDLING;

    if (!enter(r)) {
        (void)request_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the server stops");
        return queue(r, r->refusal_status, r->refusal);
    }
    atomic_store(&r->refs, 2);
    atomic_store(&r->state, REQUEST_HANDLING);
    r->match.route->handle(r->match.route->ctx, r);
    if (atomic_load(&r->state) == REQUEST_REPLIED) {
        return finish(r);
    }
    /* Suspended before the others can know it, so that no resume comes too early. */
    MHD_suspend_connection(r->mhd);
    if (!atomic_compare_exchange_strong(&r->state, &was, REQUEST_SUSPENDED)) {
        MHD_resume_connection(r->mhd);
    }
    return MHD_YES;
}

enum MHD_Result serve_access(void *cls, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_size, void **request)
{
    struct web_request *r = *request;

    (void)version;
    if (!r) {
        return begin(cls, mhd, url, method, request);
    }
    if (*upload_size > 0) {
        return take_body(r, upload, upload_size);
    }
    if (r->handled) {
        return finish(r); /* resumed */
    }
    if (r->refusal) {
        return queue(r, r->refusal_status, r->refusal);
    }
    return handle(r);
}

void serve_completed(void *cls, struct MHD_Connection *mhd, void **request,
                     enum MHD_RequestTerminationCode why)
{
    struct listener *l = cls;
    struct web_request *r = *request;

    (void)mhd;
    (void)why;
    if (!r) {
        return;
    }
    *request = NULL;
    (void)pthread_mutex_lock(&l->mutex);
    r->conn->reading = true;
    r->conn->since_ms = clock_mono_ms();
    r->conn->pending = NULL;
    if (r->handled) {
        l->active--;
        if (l->active == 0) {
            (void)pthread_cond_broadcast(&l->quiet);
        }
    }
    (void)pthread_mutex_unlock(&l->mutex);
    request_unref(r);
}

/* ---- The end ---------------------------------------------------------------- */

bool serve_wait_quiet(struct listener *l, int64_t wait_ms)
{
    int64_t until_us = clock_mono_us() + wait_ms * 1000;
    const struct timespec until = { .tv_sec = until_us / 1000000,
                                    .tv_nsec = until_us % 1000000 * 1000 };
    bool quiet;
    int rc = 0;

    (void)pthread_mutex_lock(&l->mutex);
    while (l->active > 0 && rc == 0) {
        rc = pthread_cond_clockwait(&l->quiet, &l->mutex, CLOCK_MONOTONIC, &until);
    }
    quiet = l->active == 0;
    (void)pthread_mutex_unlock(&l->mutex);
    return quiet;
}

void serve_tell_gone(struct listener *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    for (const struct conn *c = l->conns; c; c = c->next) {
        if (c->pending) {
            /* The reading half alone: whoever polls sees POLLRDHUP, the answer still goes out. */
            (void)shutdown(c->fd, SHUT_RD);
        }
    }
    (void)pthread_mutex_unlock(&l->mutex);
}

void serve_abandon(struct listener *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    for (const struct conn *c = l->conns; c; c = c->next) {
        int was = REQUEST_SUSPENDED;

        if (c->pending &&
            atomic_compare_exchange_strong(&c->pending->state, &was, REQUEST_ABANDONED)) {
            MHD_resume_connection(c->pending->mhd);
        }
    }
    (void)pthread_mutex_unlock(&l->mutex);
}
