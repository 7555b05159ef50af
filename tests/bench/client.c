#include "tests/bench/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"

int unix_socket(const char *path, bool listening)
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

struct connection *connections_open(const char *path, size_t n)
{
    struct connection *all = xcalloc(n, sizeof(*all));

    for (size_t i = 0; i < n; i++) {
        all[i].fd = unix_socket(path, false);
    }
    return all;
}

void request_read(const char *body_path, struct buf *ret)
{
    char body[REPLY_BYTES];
    FILE *f = fopen(body_path, "re");
    size_t len = f ? fread(body, 1, sizeof(body), f) : 0;

    if (len == 0) {
        perror(body_path);
        exit(3);
    }
    (void)fclose(f);
    buf_init(ret, 2 * sizeof(body));
    buf_addf(ret, "POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
             len);
    buf_add(ret, (struct slice){ .ptr = body, .len = len });
}

void connection_send(struct connection *c, struct slice request, int64_t since_us)
{
    c->since_us = since_us;
    c->len = 0;
    if (send(c->fd, request.ptr, request.len, MSG_NOSIGNAL) != (ssize_t)request.len) {
        perror("send");
        exit(3);
    }
}

bool connection_receive(struct connection *c)
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

void samples_init(struct samples *s, size_t max)
{
    *s = (struct samples){ .us = xcalloc(max, sizeof(*s->us)), .max = max };
}

void samples_add(struct samples *s, const struct connection *c)
{
    if (s->n < s->max) {
        s->us[s->n++] = (uint32_t)(clock_mono_us() - c->since_us);
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void samples_report(struct samples *s, int64_t elapsed_us)
{
    if (s->n == 0) {
        (void)fputs("nothing was answered\n", stderr);
        exit(3);
    }
    qsort(s->us, s->n, sizeof(*s->us), by_value);
    (void)printf("%.0f requests/s, p50 %u us, p99 %u us\n", (double)s->n * 1e6 / (double)elapsed_us,
                 s->us[s->n / 2], s->us[s->n * 99 / 100]);
    free(s->us);
    *s = (struct samples){ 0 };
}
