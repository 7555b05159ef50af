/*
 * access: who may ask, by socket and by header (design: Access).
 *
 * A web page in a browser on this machine can send requests to a loopback port,
 * and by a DNS name of its own that points here even read the answers. It can
 * choose neither Host nor Origin; so both must be ours.
 */
#pragma once

#include <sys/types.h>

#include "collector/base/err.h"
#include "collector/base/slice.h"

enum { ACCESS_NO_GROUP = -1 };

/* May the process at the other end of this Unix socket ask? *ret_uid is set either way. */
bool access_peer(int fd, gid_t group, uid_t *ret_uid);

/*
 * Is `host` (a Host header's value, with or without a port) localhost, a loopback
 * address, `own` (the listener's name, "" for none), or one of `more`
 * (NULL-terminated, or NULL)?
 */
bool access_host(struct slice host, const char *own, const char *const *more);

/* Is `origin` the very place that the request goes to: http(s)://HOST? */
bool access_origin(struct slice origin, struct slice host);

/* The gid of a group's name, or of its number. Errors: ERR_NOT_FOUND. */
bool access_group(const char *name, gid_t *ret, struct err *err) MUST_CHECK;
