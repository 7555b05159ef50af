#include "collector/web/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/base/fs.h"

enum { BACKLOG = 511 }; /* a burst of agents; the kernel cuts it to its own limit */

static bool parse_tcp(const char *text, struct listen_spec *ret, struct err *err)
{
    const char *colon = strrchr(text, ':');
    struct slice host = { .ptr = text, .len = colon ? (size_t)(colon - text) : 0 };
    uint64_t port;

    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
        host = (struct slice){ .ptr = host.ptr + 1, .len = host.len - 2 };
    }
    if (host.len == 0 || host.len >= sizeof(ret->host)) {
        return err_set(err, ERR_INVALID, "listen 'tcp:%s': must be tcp:HOST:PORT", text);
    }
    if (!slice_to_u64(slice_from_cstr(colon + 1), &port) || port > UINT16_MAX) {
        return err_set(err, ERR_INVALID, "listen 'tcp:%s': the port must be 0 to 65535", text);
    }
    *ret = (struct listen_spec){ 0 };
    memcpy(ret->host, host.ptr, host.len);
    (void)snprintf(ret->port, sizeof(ret->port), "%u", (unsigned)port);
    return true;
}

bool listen_parse(const char *text, struct listen_spec *ret, struct err *err)
{
    const size_t path_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

    if (strncmp(text, "tcp:", 4) == 0) {
        return parse_tcp(text + 4, ret, err);
    }
    if (strncmp(text, "unix:", 5) != 0 || text[5] == '\0') {
        return err_set(err, ERR_INVALID, "listen '%s': must be unix:PATH or tcp:HOST:PORT", text);
    }
    if (strlen(text + 5) > path_max) {
        return err_set(err, ERR_INVALID, "listen '%s': a socket's path has at most %zu bytes", text,
                       path_max);
    }
    *ret = (struct listen_spec){ .is_unix = true };
    (void)snprintf(ret->host, sizeof(ret->host), "%s", text + 5);
    return true;
}

static struct sockaddr_un unix_address(const char *path)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };

    /* listen_parse() has seen to the length; the last byte stays a NUL. */
    memcpy(sa.sun_path, path, strnlen(path, sizeof(sa.sun_path) - 1));
    return sa;
}

/* Remove a socket that nobody answers on; anything else stays and is an error. */
static bool clear_stale(const char *path, struct err *err)
{
    struct stat st;
    struct sockaddr_un sa = unix_address(path);
    CLEANUP(fs_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (lstat(path, &st) < 0) {
        return errno == ENOENT ? true : err_errno(err, errno, "socket %s", path);
    }
    if (!S_ISSOCK(st.st_mode)) {
        return err_set(err, ERR_INVALID, "%s exists and is no socket", path);
    }
    if (fd < 0) {
        return err_errno(err, errno, "socket");
    }
    if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 || errno == EAGAIN) {
        return err_set(err, ERR_AGAIN, "%s: another server listens there", path);
    }
    if (errno != ECONNREFUSED) {
        return err_errno(err, errno, "socket %s", path);
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        return err_errno(err, errno, "remove %s", path);
    }
    return true;
}

static bool open_unix(const char *path, gid_t group, int *ret_fd, struct err *err)
{
    struct sockaddr_un sa = unix_address(path);
    CLEANUP(fs_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return err_errno(err, errno, "socket");
    }
    if (!clear_stale(path, err)) {
        return false;
    }
    /* Linux gives the file the mode of the socket as it is when it is bound. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
        return err_errno(err, errno, "bind %s", path);
    }
    if (group != (gid_t)-1 && (lchown(path, (uid_t)-1, group) < 0 || chmod(path, 0660) < 0)) {
        return err_errno(err, errno, "give %s to its group", path);
    }
    if (listen(fd, BACKLOG) < 0) {
        return err_errno(err, errno, "listen %s", path);
    }
    *ret_fd = TAKE_FD(fd);
    return true;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)sa;

        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }

    const struct sockaddr_in6 *in6 = (const void *)sa;

    return sa->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static bool bind_tcp(const struct addrinfo *at, const char *name, int *ret_fd, struct err *err)
{
    const int on = 1;
    CLEANUP(fs_closep)
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);

    if (fd < 0) {
        return err_errno(err, errno, "socket");
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        return err_errno(err, errno, "listen on tcp:%s", name);
    }
    *ret_fd = TAKE_FD(fd);
    return true;
}

static bool open_tcp(const struct listen_spec *spec, bool anywhere, int *ret_fd, struct err *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *at = NULL;
    char name[sizeof(spec->host) + sizeof(spec->port) + 1];
    int rc = getaddrinfo(spec->host, spec->port, &hints, &at);
    bool ok;

    (void)snprintf(name, sizeof(name), "%s:%s", spec->host, spec->port);
    if (rc != 0) {
        return err_set(err, ERR_INVALID, "listen on tcp:%s: %s", name, gai_strerror(rc));
    }
    if (!anywhere && !is_loopback(at->ai_addr)) {
        ok = err_set(err, ERR_INVALID,
                     "listen on tcp:%s: an address that is not loopback needs tls_cert and tls_key",
                     name);
    } else {
        ok = bind_tcp(at, name, ret_fd, err);
    }
    freeaddrinfo(at);
    return ok;
}

bool listen_open(const struct listen_spec *spec, gid_t group, bool anywhere, int *ret_fd,
                 struct err *err)
{
    return spec->is_unix ? open_unix(spec->host, group, ret_fd, err)
                         : open_tcp(spec, anywhere, ret_fd, err);
}

int listen_port(int fd)
{
    struct sockaddr_storage ss = { 0 };
    socklen_t len = sizeof(ss);

    if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0) {
        return 0;
    }
    if (ss.ss_family == AF_INET) {
        return ntohs(((const struct sockaddr_in *)(const void *)&ss)->sin_port);
    }
    return ss.ss_family == AF_INET6
               ? ntohs(((const struct sockaddr_in6 *)(const void *)&ss)->sin6_port)
               : 0;
}
