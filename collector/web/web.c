#include "collector/web/web.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/web/server.h"

enum {
    DEFAULT_CONNECTIONS = 512,
    DEFAULT_IDLE_MS = 30000,
    SPARE_CONNECTIONS = 16,      /* over the limit, to be told so */
    POOL_BYTES = 32 * 1024,      /* of MHD for a connection: headers, and a read's buffer */
    PEM_MAX_BYTES = 1024 * 1024, /* a chain of certificates */
    STACK_BYTES = 256 * 1024,    /* of a listener thread; handlers run on it */
    ABANDON_MS = 1000,           /* for 503s to go out */
};

/* Arguments and path are decoded by us, after they have been taken apart. */
static size_t no_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

/*
 * MHD keeps a node of each argument in the connection's pool, and where that is
 * full the request hangs. So of more than one too many (which is refused by its
 * number) the rest is joined to the last one, in MHD's own buffer; of a line that
 * is refused by its length, to the first.
 */
static void *join_arguments(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    union {
        const char *given;
        char *own;
    } at = { .given = strchr(uri, '?') };
    const size_t most = strlen(uri) > WEB_HEADERS_MAX_BYTES ? 0 : WEB_ARGS_MAX;
    size_t n = 1;

    (void)cls;
    (void)mhd;
    for (; at.own && *at.own != '\0'; at.own++) {
        if (*at.own == '&' && n++ > most) {
            *at.own = '+';
        }
    }
    return NULL; /* no request yet */
}

static bool read_pem(const char *path, struct buf *out, struct err *err)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    buf_init(out, PEM_MAX_BYTES);
    if (fd < 0) {
        return err_errno(err, errno, "open %s", path);
    }
    return fs_read_all(fd, out, err) ? true : err_wrap(err, "%s", path);
}

struct tls {
    struct buf cert;
    struct buf key;
};

static void tls_done(struct tls *tls)
{
    buf_done(&tls->cert);
    if (tls->key.ptr) {
        explicit_bzero(tls->key.ptr, tls->key.cap_bytes);
    }
    buf_done(&tls->key);
}

static bool tls_load(const struct web_options *o, struct tls *tls, struct err *err)
{
    if (!o->tls_cert != !o->tls_key) {
        return err_set(err, ERR_INVALID, "tls_cert and tls_key belong together");
    }
    if (!o->tls_cert) {
        return true;
    }
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return err_set(err, ERR_INVALID, "tls_cert: this libmicrohttpd has no TLS");
    }
    return read_pem(o->tls_cert, &tls->cert, err) && read_pem(o->tls_key, &tls->key, err);
}

/*
 * Two threads a listener, each with connections of its own, where there are cores for
 * them: one alone is busy long before the rest of a collector is.
 */
static size_t threads(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? LISTENER_DAEMONS : 1;
}

static bool start_daemon(struct listener *l, struct tls *tls, struct err *err)
{
    bool use_tls = tls->cert.len_bytes > 0 && !l->spec.is_unix;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     MHD_USE_NO_LISTEN_SOCKET | (use_tls ? MHD_USE_TLS : 0U);
    unsigned idle_s = (unsigned)((l->web->idle_ms + 999) / 1000);
    struct MHD_OptionItem pem[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, NULL },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, NULL },
        { MHD_OPTION_END, 0, NULL },
    };

    if (use_tls) {
        (void)buf_cstr(&tls->cert);
        (void)buf_cstr(&tls->key);
        pem[0].ptr_value = tls->cert.ptr;
        pem[1].ptr_value = tls->key.ptr;
    } else {
        pem[0].option = MHD_OPTION_END;
    }

    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, serve_access, l, MHD_OPTION_NOTIFY_COMPLETED, serve_completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, serve_connection, l, MHD_OPTION_UNESCAPE_CALLBACK,
        no_unescape, NULL, MHD_OPTION_CONNECTION_LIMIT, l->web->max_connections + SPARE_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)POOL_BYTES, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        /* Our own checks are the stricter ones, and their answers name the fault. */
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_URI_LOG_CALLBACK, join_arguments, NULL,
        MHD_OPTION_ARRAY, pem, MHD_OPTION_END);

    if (!daemon) {
        return err_set(err, ERR_IO, "listen on %s: the HTTP server does not start%s", l->spec.host,
                       use_tls ? "; are tls_cert and tls_key a pair?" : "");
    }
    l->daemons[l->n_daemons++] = daemon;
    return true;
}

static void stop_daemons(struct listener *l)
{
    for (size_t i = 0; i < l->n_daemons; i++) {
        MHD_stop_daemon(l->daemons[i]);
    }
    l->n_daemons = 0;
}

static bool start_listener(struct listener *l, const char *text, struct tls *tls, struct err *err)
{
    CLEANUP(fs_closep) int fd = -1;
    bool ok = listen_parse(text, &l->spec, err) &&
              listen_open(&l->spec, l->web->group, tls->cert.len_bytes > 0, &fd, err);

    while (ok && l->n_daemons < threads()) {
        ok = start_daemon(l, tls, err);
    }
    l->port = listen_port(fd);
    l->fd = fd;
    if (!ok || !accept_start(l, err)) {
        stop_daemons(l);
        return false;
    }
    (void)TAKE_FD(fd);
    return true;
}

/* Copies of a NULL-terminated list, in one allocation. */
static const char *const *copy_list(const char *const *list)
{
    size_t n = 0;
    size_t bytes = 0;

    for (; list && list[n]; n++) {
        bytes += strlen(list[n]) + 1;
    }

    char **copy = xcalloc(1, (n + 1) * sizeof(*copy) + bytes);
    char *at = (char *)(copy + n + 1);

    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(list[i]) + 1;

        copy[i] = memcpy(at, list[i], size);
        at += size;
    }
    return (const char *const *)copy;
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list[n]) {
        n++;
    }
    return n;
}

static struct web *web_new(const struct web_options *o)
{
    struct web *w = xcalloc(1, sizeof(*w));

    w->routes = o->routes;
    w->n_routes = o->n_routes;
    w->hosts = copy_list(o->hosts);
    w->hosts_key = o->hosts_key ? o->hosts_key : "hosts";
    w->group = (gid_t)ACCESS_NO_GROUP;
    w->tokens = o->tokens_path ? token_cache_new(o->tokens_path) : NULL;
    w->max_connections = o->max_connections > 0 ? o->max_connections : DEFAULT_CONNECTIONS;
    w->idle_ms = o->idle_ms > 0 ? o->idle_ms : DEFAULT_IDLE_MS;
    w->n_listeners = count(o->listen);
    w->listeners = xcalloc(w->n_listeners + 1, sizeof(*w->listeners));
    for (size_t i = 0; i < w->n_listeners; i++) {
        w->listeners[i].web = w;
        (void)pthread_mutex_init(&w->listeners[i].mutex, NULL);
        (void)pthread_cond_init(&w->listeners[i].quiet, NULL);
    }
    return w;
}

bool web_start(const struct web_options *o, struct web **ret, struct err *err)
{
    CLEANUP(tls_done) struct tls tls = { 0 };
    struct web *w = web_new(o);
    bool ok = tls_load(o, &tls, err) &&
              (!o->socket_group || access_group(o->socket_group, &w->group, err));

    for (size_t i = 0; ok && i < w->n_listeners; i++) {
        ok = start_listener(&w->listeners[i], o->listen[i], &tls, err);
    }
    if (!ok) {
        web_stop(w, 0);
        return false;
    }
    *ret = w;
    return true;
}

/* Take no more connections. The socket's file goes, so that the next server finds none. */
static void quiesce(struct listener *l)
{
    if (l->spec.is_unix) {
        (void)unlink(l->spec.host);
    }
    accept_stop(l);
}

/* All listeners within one wait. */
static bool wait_quiet(struct web *w, int64_t wait_ms)
{
    int64_t until_ms = clock_mono_ms() + wait_ms;
    bool quiet = true;

    for (size_t i = 0; i < w->n_listeners; i++) {
        quiet = serve_wait_quiet(&w->listeners[i], clock_left_ms(until_ms)) && quiet;
    }
    return quiet;
}

static void each_running(struct web *w, void (*step)(struct listener *l))
{
    for (size_t i = 0; i < w->n_listeners; i++) {
        if (w->listeners[i].n_daemons > 0) {
            step(&w->listeners[i]);
        }
    }
}

static void web_free(struct web *w)
{
    for (size_t i = 0; i < w->n_listeners; i++) {
        (void)pthread_cond_destroy(&w->listeners[i].quiet);
        (void)pthread_mutex_destroy(&w->listeners[i].mutex);
    }
    token_cache_free(w->tokens);
    free(w->listeners);
    /* The list is one block, const for its readers. */
    union {
        const char *const *list;
        void *block;
    } hosts = { .list = w->hosts };

    free(hosts.block);
    free(w);
}

void web_stop(struct web *w, int64_t wait_ms)
{
    if (!w) {
        return;
    }
    atomic_store(&w->stopping, true);
    each_running(w, quiesce);
    if (!wait_quiet(w, wait_ms)) {
        each_running(w, serve_tell_gone);
        if (!wait_quiet(w, WEB_STOP_MS)) {
            each_running(w, serve_abandon);
            (void)wait_quiet(w, ABANDON_MS);
        }
    }
    each_running(w, stop_daemons);
    web_free(w);
}

int web_port(const struct web *w, size_t i)
{
    return i < w->n_listeners ? w->listeners[i].port : 0;
}

void web_stats(const struct web *w, struct web_stats *ret)
{
    *ret = (struct web_stats){
        .requests = atomic_load_explicit(&w->requests, memory_order_relaxed),
        .refused = atomic_load_explicit(&w->refused, memory_order_relaxed),
        .connections = atomic_load_explicit(&w->connections, memory_order_relaxed),
        .open = atomic_load_explicit(&w->open, memory_order_relaxed),
    };
}
