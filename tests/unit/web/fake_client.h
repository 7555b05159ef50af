/* A client on raw sockets: it sends bytes as they are, so that it can misbehave. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct client {
    int fd;
    char reply[64 * 1024]; /* the last answer: head and body, NUL-terminated */
    int status;            /* 0: the server closed without an answer */
};

/* Connect to a loopback port, or to a Unix socket. */
void client_tcp(struct client *c, int port);
void client_unix(struct client *c, const char *path);
void client_close(struct client *c);

/* Send bytes; false when the server has closed. */
bool client_send(struct client *c, const char *bytes, size_t n);

/* Read one answer with Content-Length; its status. HEAD answers have no body. */
int client_receive(struct client *c);

/* True when the server closes within ms, saying nothing more. */
bool client_sees_close(struct client *c, int ms);

/* Send a whole request text and read the answer. */
int client_ask(struct client *c, const char *request);
