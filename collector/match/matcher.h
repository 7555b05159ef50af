/*
 * matcher: does a hook's pattern match a tool's name?
 *
 * A pattern is a PCRE2 regular expression, anchored in full: it must match the
 * whole name. `*` alone matches every name, an empty pattern none. A pattern
 * that does not compile, or that passes the match limit (reached in less than
 * MATCHER_LIMIT_MS), is compared as an exact string instead, and says so: the
 * contract asks for this, and the record tells it (SRE contract, "Matcher
 * behavior"). Immutable after matcher_new(); safe from any thread.
 */
#pragma once

#include "collector/base/cleanup.h"
#include "collector/base/slice.h"

enum { MATCHER_LIMIT_MS = 50 }; /* longest time one comparison may take */

struct matcher; /* opaque */

/* Compile; the pattern is copied. Never NULL: a bad pattern becomes an exact string. */
struct matcher *matcher_new(struct slice pattern);

/* Release; accepts NULL. The second is for CLEANUP. */
void matcher_free(struct matcher *m);
void matcher_freep(struct matcher **m);

/* How a name is compared. */
enum matcher_rule {
    MATCHER_BY_ANY,   /* the pattern is `*` */
    MATCHER_BY_REGEX, /* the pattern compiles (an empty one matches nothing) */
    MATCHER_BY_EXACT, /* it does not, or this comparison passed the limit */
};

/* True when it matches all of name. *ret_rule tells by which rule that was decided. */
bool matcher_matches(const struct matcher *m, struct slice name, enum matcher_rule *ret_rule);

/* Why the pattern does not compile, for people, with its offset; "" when it does. */
const char *matcher_fault(const struct matcher *m);
