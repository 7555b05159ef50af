/*
 * bench_pace: dispatches at a steady pace over a Unix socket, and how long each took.
 *
 *     bench_pace SOCKET BODY-FILE PER-SECOND SECONDS CONNECTIONS
 *
 * Each request is due at a moment of its own, whatever became of those before it. It is
 * sent then, or as soon as a connection is free, and its time counts from when it was
 * due: a late answer does not hide how long the next had to wait.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "tests/bench/client.h"

enum { MAX_CONNECTIONS = 64, STUCK_MS = 10 * 1000 };

struct pace {
    struct slice request;
    struct connection *all; /* n of them */
    struct pollfd polled[MAX_CONNECTIONS];
    size_t n;
    struct connection *idle[MAX_CONNECTIONS]; /* n_idle of them */
    size_t n_idle;
    int64_t begin_us;
    int64_t per_second;
    size_t sent;
    struct samples samples; /* as many as there are requests */
};

static int64_t due_us(const struct pace *p)
{
    return p->begin_us + (int64_t)p->sent * 1000000 / p->per_second;
}

static bool can_send(const struct pace *p)
{
    return p->sent < p->samples.max && p->n_idle > 0;
}

static void send_due(struct pace *p)
{
    while (can_send(p) && due_us(p) <= clock_mono_us()) {
        connection_send(p->idle[--p->n_idle], p->request, due_us(p));
        p->sent++;
    }
}

/* Until an answer comes, or the next request can be sent. */
static void wait_for_some(struct pace *p)
{
    struct timespec stuck = { .tv_sec = STUCK_MS / 1000 };
    int64_t left_us = can_send(p) ? due_us(p) - clock_mono_us() : 0;
    struct timespec left = { .tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000 };

    if (can_send(p) && left_us <= 0) {
        return;
    }
    if (ppoll(p->polled, p->n, can_send(p) ? &left : &stuck, NULL) == 0 && !can_send(p)) {
        (void)fprintf(stderr, "no answer within %d ms\n", STUCK_MS);
        exit(3);
    }
}

static void take_answers(struct pace *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->polled[i].revents != 0 && connection_receive(&p->all[i])) {
            samples_add(&p->samples, &p->all[i]);
            p->idle[p->n_idle++] = &p->all[i];
        }
        p->polled[i].revents = 0;
    }
}

static void run(struct pace *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->polled[i] = (struct pollfd){ .fd = p->all[i].fd, .events = POLLIN };
        p->idle[p->n_idle++] = &p->all[i];
    }
    p->begin_us = clock_mono_us();
    while (p->samples.n < p->samples.max) {
        send_due(p);
        wait_for_some(p);
        take_answers(p);
    }
    samples_report(&p->samples, clock_mono_us() - p->begin_us);
}

int main(int argc, char **argv)
{
    int64_t per_second = argc == 6 ? strtol(argv[3], NULL, 10) : 0;
    int64_t seconds = argc == 6 ? strtol(argv[4], NULL, 10) : 0;
    size_t n = argc == 6 ? strtoul(argv[5], NULL, 10) : 0;

    if (per_second < 1 || seconds < 1 || n < 1 || n > MAX_CONNECTIONS) {
        (void)fprintf(stderr,
                      "usage: bench_pace SOCKET BODY-FILE PER-SECOND SECONDS CONNECTIONS "
                      "(at most %d)\n",
                      MAX_CONNECTIONS);
        return 2;
    }

    CLEANUP(buf_done) struct buf request;
    struct pace p = { .n = n, .per_second = per_second };

    request_read(argv[2], &request);
    p.request = buf_slice(&request);
    p.all = connections_open(argv[1], n);
    samples_init(&p.samples, (size_t)(per_second * seconds));
    run(&p);
    free(p.all);
    return 0;
}
