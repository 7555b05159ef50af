/*
 * route: which handler a request line means. Pure.
 *
 * A pattern is literal but for segments ":name", each of which takes any one
 * segment. Segments are compared before percent-decoding, parameters are decoded
 * afterwards, so that an encoded slash stays inside its segment.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/web/web.h"

enum { ROUTE_PARAMS_MAX = 4 };

struct route_param {
    struct slice name;  /* into the pattern */
    struct slice value; /* raw: into the path that was matched; else in the arena */
};

struct route_match {
    const struct web_route *route; /* NULL: no pattern fits the path */
    bool method_fits;              /* false: the path is known, this method is not */
    struct route_param params[ROUTE_PARAMS_MAX];
    size_t n_params;
};

/* The route of a path; of several patterns the first whose method fits too. */
struct route_match route_find(const struct web_route *routes, size_t n, const char *method,
                              struct slice path);

/* "GET, HEAD, POST": the methods that the path has, for the Allow header. */
void route_allowed(const struct web_route *routes, size_t n, struct slice path, char *ret_text,
                   size_t size);

/* Is name one of the words, which are parted by blanks? */
bool route_takes(const char *words, struct slice name);

/* Resolve %XX in place of the arena's copy. False: a broken escape, a NUL, or the limit. */
bool route_decode(struct slice raw, struct arena *a, struct slice *ret) MUST_CHECK;
