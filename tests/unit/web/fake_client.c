#include "tests/unit/web/fake_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { ANSWER_MS = 10000 };

void client_tcp(struct client *c, int port)
{
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(c->fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
}

void client_unix(struct client *c, const char *path)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };

    memcpy(sa.sun_path, path, strlen(path));
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(c->fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
}

void client_close(struct client *c)
{
    (void)close(c->fd);
    c->fd = -1;
}

bool client_send(struct client *c, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);

        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Append what comes next to the reply; false at the end of the stream. */
static bool more(struct client *c, size_t *len)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };

    assert_int_equal(poll(&p, 1, ANSWER_MS), 1);

    ssize_t n = recv(c->fd, c->reply + *len, sizeof(c->reply) - 1 - *len, 0);

    if (n <= 0) {
        return false;
    }
    *len += (size_t)n;
    c->reply[*len] = '\0';
    return true;
}

int client_receive(struct client *c)
{
    size_t len = 0;
    const char *body;
    const char *length;

    c->reply[0] = '\0';
    c->status = 0;
    for (;;) {
        body = strstr(c->reply, "\r\n\r\n");
        if (body) {
            break;
        }
        if (!more(c, &len)) {
            return 0;
        }
    }
    length = strcasestr(c->reply, "\r\nContent-Length: ");
    c->status = (int)strtol(c->reply + strlen("HTTP/1.1 "), NULL, 10);

    size_t whole = (size_t)(body + 4 - c->reply);

    whole += length && length < body ? strtoul(length + 18, NULL, 10) : 0;
    while (len < whole && more(c, &len)) {
    }
    return c->status;
}

bool client_sees_close(struct client *c, int ms)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    char byte;

    return poll(&p, 1, ms) == 1 && recv(c->fd, &byte, 1, 0) <= 0;
}

int client_ask(struct client *c, const char *request)
{
    (void)client_send(c, request, strlen(request));
    return client_receive(c);
}
