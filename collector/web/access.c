#include "collector/web/access.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GROUPS_MAX = 256 }; /* of one process; of one that has more, the primary one alone counts */

/* The groups of the process when it connected; no name service is asked. */
static bool peer_in_group(int fd, gid_t primary, gid_t group)
{
    gid_t groups[GROUPS_MAX];
    socklen_t len = sizeof(groups);

    if (primary == group) {
        return true;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0) {
        return false;
    }
    for (size_t i = 0; i < len / sizeof(groups[0]); i++) {
        if (groups[i] == group) {
            return true;
        }
    }
    return false;
}

bool access_peer(int fd, gid_t group, uid_t *ret_uid)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
        *ret_uid = (uid_t)-1;
        return false;
    }
    *ret_uid = cred.uid;
    if (cred.uid == 0 || cred.uid == geteuid()) {
        return true;
    }
    return group != (gid_t)ACCESS_NO_GROUP && peer_in_group(fd, cred.gid, group);
}

/* Split "name", "name:8416", "[::1]:8416"; false when it is none of these. */
static bool host_name(struct slice host, struct slice *ret_name)
{
    struct slice name = host;
    struct slice port = { 0 };
    uint64_t number = 0;

    if (host.len > 0 && host.ptr[0] == '[') {
        if (!slice_cut(host, ']', &name, &port)) {
            return false;
        }
        name.ptr++;
        name.len--;
        if (port.len > 0 && port.ptr[0] != ':') {
            return false;
        }
        port = port.len > 0 ? (struct slice){ .ptr = port.ptr + 1, .len = port.len - 1 } : port;
    } else {
        (void)slice_cut(host, ':', &name, &port);
    }
    *ret_name = name;
    return name.len > 0 && (port.len == 0 || (slice_to_u64(port, &number) && number <= UINT16_MAX));
}

static bool same_name(struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

bool access_host(struct slice host, const char *own, const char *const *more)
{
    static const char *const always[] = { "localhost", "127.0.0.1", "::1" };
    struct slice name;

    if (!host_name(host, &name)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        if (same_name(name, slice_from_cstr(always[i]))) {
            return true;
        }
    }
    for (size_t i = 0; more && more[i]; i++) {
        if (same_name(name, slice_from_cstr(more[i])) ||
            same_name(host, slice_from_cstr(more[i]))) {
            return true;
        }
    }
    return own[0] != '\0' && same_name(name, slice_from_cstr(own));
}

bool access_origin(struct slice origin, struct slice host)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        struct slice scheme = slice_from_cstr(schemes[i]);

        if (slice_starts_with(origin, scheme)) {
            return same_name(
                (struct slice){ .ptr = origin.ptr + scheme.len, .len = origin.len - scheme.len },
                host);
        }
    }
    return false;
}

bool access_group(const char *name, gid_t *ret, struct err *err)
{
    uint64_t number;

    if (slice_to_u64(slice_from_cstr(name), &number) && number < (gid_t)-1) {
        *ret = (gid_t)number;
        return true;
    }
    errno = 0;

    const struct group *g = getgrnam(name);

    if (!g) {
        return err_set(err, ERR_NOT_FOUND, "socket_group '%s': there is no such group", name);
    }
    *ret = g->gr_gid;
    return true;
}
