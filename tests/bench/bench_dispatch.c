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
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <microhttpd.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "tests/bench/client.h"

enum { MAX_CONNECTIONS = 1024, MAX_SAMPLES = 4000000 };

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

/* Until the seconds are over or the requests answered, whatever comes first. */
static void load(struct connection *all, size_t n, struct slice request, int64_t seconds,
                 struct samples *samples)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    int64_t begin_us = clock_mono_us();
    int64_t end_us = begin_us + seconds * 1000000;

    for (size_t i = 0; i < n; i++) {
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &all[i] };

        (void)epoll_ctl(ep, EPOLL_CTL_ADD, all[i].fd, &e);
        connection_send(&all[i], request, clock_mono_us());
    }
    while (clock_mono_us() < end_us && samples->n < samples->max) {
        struct epoll_event events[64];
        int got = epoll_wait(ep, events, 64, 1000);

        for (int i = 0; i < got; i++) {
            struct connection *c = events[i].data.ptr;

            if (connection_receive(c)) {
                samples_add(samples, c);
                connection_send(c, request, clock_mono_us());
            }
        }
    }
    samples_report(samples, clock_mono_us() - begin_us);
    (void)close(ep);
}

static int run_load(const char *socket_path, const char *body_path, size_t n, int64_t seconds,
                    size_t requests)
{
    CLEANUP(buf_done) struct buf request;
    struct samples samples;

    request_read(body_path, &request);
    samples_init(&samples, requests < MAX_SAMPLES ? requests : MAX_SAMPLES);

    struct connection *all = connections_open(socket_path, n);

    load(all, n, buf_slice(&request), seconds, &samples);
    free(all);
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
