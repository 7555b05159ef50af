/*
 * bench_dispatch: requests a second over a Unix socket, with keep-alive.
 *
 *     bench_dispatch load SOCKET BODY-FILE CONNECTIONS SECONDS [REQUESTS]
 *     bench_dispatch echo SOCKET              a bare libmicrohttpd that answers the body
 *     bench_dispatch spawn SOCKET PROGRAM…    the same, once PROGRAM has run: a bare
 *                                             posix_spawn and wait, a thread a connection
 *
 * `load` keeps each connection busy with one request at a time, from one thread.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <microhttpd.h>

#include "collector/base/buf.h"
#include "collector/base/clock.h"
#include "collector/base/mem.h"

enum { MAX_CONNECTIONS = 1024, REPLY_BYTES = 65536, MAX_SAMPLES = 4000000 };

static int unix_socket(const char *path, bool listening)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc;

    memcpy(sa.sun_path, path, strnlen(path, sizeof(sa.sun_path) - 1));
    if (listening) {
        (void)unlink(path);
        rc = bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 511);
    } else {
        rc = connect(fd, (const struct sockaddr *)&sa, sizeof(sa));
    }
    if (rc != 0) {
        perror(path);
        exit(3);
    }
    return fd;
}

/* ---- The bare servers --------------------------------------------------------- */

/* NULL: nothing is run. */
static void run_bare(char **program)
{
    pid_t pid;
    int status = 0;

    if (program && (posix_spawn(&pid, program[0], NULL, NULL, program, environ) != 0 ||
                    waitpid(pid, &status, 0) != pid || status != 0)) {
        perror(program[0]);
        exit(3);
    }
}

/* Take the body; once it is whole, run what cls names, and answer the body. */
static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *size, void **request)
{
    struct buf *body = *request;

    (void)url, (void)method, (void)version;
    if (!body) {
        body = xcalloc(1, sizeof(*body));
        buf_init(body, 1 << 20);
        *request = body;
        return MHD_YES;
    }
    if (*size > 0) {
        buf_add(body, (struct slice){ .ptr = upload, .len = *size });
        *size = 0;
        return MHD_YES;
    }
    run_bare(cls);

    struct MHD_Response *r =
        MHD_create_response_from_buffer(body->len_bytes, body->ptr, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result rc = MHD_queue_response(c, 200, r);

    MHD_destroy_response(r);
    return rc;
}

static void completed(void *cls, struct MHD_Connection *c, void **request,
                      enum MHD_RequestTerminationCode why)
{
    struct buf *body = *request;

    (void)cls, (void)c, (void)why;
    if (body) {
        buf_done(body);
        free(body);
    }
}

/* Until a line, or the end, comes on stdin. */
static int run_server(const char *path, char **program)
{
    unsigned flags = program ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD
                             : MHD_USE_EPOLL_INTERNAL_THREAD;
    struct MHD_Daemon *d = MHD_start_daemon(
        flags, 0, NULL, NULL, answer, program, MHD_OPTION_LISTEN_SOCKET, unix_socket(path, true),
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);

    if (!d) {
        (void)fprintf(stderr, "%s: the server does not start\n", path);
        return 3;
    }
    (void)getchar();
    MHD_stop_daemon(d);
    return 0;
}

/* ---- The load ----------------------------------------------------------------- */

struct connection {
    int fd;
    int64_t sent_us;
    size_t len;
    char reply[REPLY_BYTES];
};

static uint32_t *samples;
static size_t n_samples;

static void send_request(struct connection *c, struct slice request)
{
    c->sent_us = clock_mono_us();
    c->len = 0;
    if (send(c->fd, request.ptr, request.len, MSG_NOSIGNAL) != (ssize_t)request.len) {
        perror("send");
        exit(3);
    }
}

/* Read what has come; true when the answer is whole. */
static bool receive(struct connection *c)
{
    ssize_t n = recv(c->fd, c->reply + c->len, sizeof(c->reply) - 1 - c->len, 0);

    if (n <= 0) {
        (void)fprintf(stderr, "closed: %s\n", n < 0 ? strerror(errno) : "end");
        exit(3);
    }
    c->len += (size_t)n;
    c->reply[c->len] = '\0';

    const char *body = strstr(c->reply, "\r\n\r\n");
    const char *length = strstr(c->reply, "Content-Length: ");

    if (!body || !length) {
        return false;
    }
    if (strncmp(c->reply, "HTTP/1.1 200", 12) != 0) {
        (void)fprintf(stderr, "%s\n", c->reply);
        exit(1);
    }
    return c->len >= (size_t)(body + 4 - c->reply) + strtoul(length + 16, NULL, 10);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void report(int64_t elapsed_us)
{
    qsort(samples, n_samples, sizeof(*samples), by_value);
    (void)printf("%.0f requests/s, p50 %u us, p99 %u us\n",
                 (double)n_samples * 1e6 / (double)elapsed_us, samples[n_samples / 2],
                 samples[n_samples * 99 / 100]);
}

/* Until the seconds are over or the requests answered, whatever comes first. */
static void load(struct connection *all, size_t n, struct slice request, int64_t seconds,
                 size_t requests)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    int64_t begin_us = clock_mono_us();
    int64_t end_us = begin_us + seconds * 1000000;

    for (size_t i = 0; i < n; i++) {
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &all[i] };

        (void)epoll_ctl(ep, EPOLL_CTL_ADD, all[i].fd, &e);
        send_request(&all[i], request);
    }
    while (clock_mono_us() < end_us && n_samples < requests) {
        struct epoll_event events[64];
        int got = epoll_wait(ep, events, 64, 1000);

        for (int i = 0; i < got; i++) {
            struct connection *c = events[i].data.ptr;

            if (receive(c)) {
                samples[n_samples++] = (uint32_t)(clock_mono_us() - c->sent_us);
                send_request(c, request);
            }
        }
    }
    report(clock_mono_us() - begin_us);
    (void)close(ep);
}

static int run_load(const char *socket_path, const char *body_path, size_t n, int64_t seconds,
                    size_t requests)
{
    static char body[REPLY_BYTES];
    FILE *f = fopen(body_path, "re");
    size_t len = f ? fread(body, 1, sizeof(body), f) : 0;
    struct buf request;
    struct connection *all = xcalloc(n, sizeof(*all));

    samples = xcalloc(MAX_SAMPLES + 64, sizeof(*samples));
    buf_init(&request, 2 * REPLY_BYTES);
    buf_addf(&request,
             "POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", len);
    buf_add(&request, (struct slice){ .ptr = body, .len = len });
    for (size_t i = 0; i < n; i++) {
        all[i].fd = unix_socket(socket_path, false);
    }
    load(all, n, buf_slice(&request), seconds, requests < MAX_SAMPLES ? requests : MAX_SAMPLES);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "echo") == 0) {
        return run_server(argv[2], NULL);
    }
    if (argc >= 4 && strcmp(argv[1], "spawn") == 0) {
        return run_server(argv[2], argv + 3);
    }
    if (argc >= 6 && strcmp(argv[1], "load") == 0) {
        size_t n = strtoul(argv[4], NULL, 10);

        return run_load(argv[2], argv[3], n < MAX_CONNECTIONS ? n : MAX_CONNECTIONS,
                        strtol(argv[5], NULL, 10),
                        argc > 6 ? strtoul(argv[6], NULL, 10) : MAX_SAMPLES);
    }
    (void)fprintf(stderr, "usage: bench_dispatch echo SOCKET | spawn SOCKET PROGRAM... | "
                          "load SOCKET BODY-FILE CONNECTIONS SECONDS [REQUESTS]\n");
    return 2;
}
