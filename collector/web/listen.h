/*
 * listen: the sockets that a server listens on, from "unix:PATH" and "tcp:HOST:PORT".
 *
 * A Unix socket is made with its final mode (0600, with a group 0660), so there
 * is no moment in which others could connect. One that a dead server left is
 * replaced; one that a living server answers on is an error.
 */
#pragma once

#include <sys/types.h>

#include "collector/base/err.h"
#include "collector/base/slice.h"

struct listen_spec {
    bool is_unix;
    char host[256]; /* TCP: as written, without brackets; Unix: the path */
    char port[8];
};

/* Read a listener's text. Errors: ERR_INVALID says what is allowed. */
bool listen_parse(const char *text, struct listen_spec *ret, struct err *err) MUST_CHECK;

/*
 * Bind and listen; the socket does not block. `group` (-1: none) is let in on a Unix
 * socket. Without `anywhere` a TCP address must be a loopback one.
 * Errors: ERR_INVALID for the latter, ERR_AGAIN when a server is there, ERR_IO.
 */
bool listen_open(const struct listen_spec *spec, gid_t group, bool anywhere, int *ret_fd,
                 struct err *err) MUST_CHECK;

/* The TCP port that fd is bound to; 0 for a Unix socket. */
int listen_port(int fd);
