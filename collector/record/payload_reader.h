/*
 * payload_reader: JSON that is checked while it is walked, each byte looked at once.
 *
 *     payload_reader_init(&r, text, err)
 *     payload_enter(&r, JSON_KIND_OBJECT)
 *     while (payload_member(&r, &key))     r is at the member's value:
 *         payload_take(&r, &value)         take it whole, or enter it in turn
 *     payload_reader_done(&r)              false: it was no JSON, or r.err says what else
 *
 * Whoever knows which member comes next asks payload_member_is(), which is cheaper. What
 * is wrong is told once, with line and column; from then on nothing moves. Not thread-safe.
 */
#pragma once

#include "collector/record/payload.h"

struct payload_reader {
    const char *start;
    const char *at;
    const char *end;
    size_t depth; /* containers that were entered */
    bool first;   /* the container at hand has given nothing yet */
    bool failed;
    struct err *err;
};

/* At the start of `text`, which outlives the reader. */
void payload_reader_init(struct payload_reader *r, struct slice text, struct err *err);

/* The kind that the value at hand begins as; NONE: no value stands there. */
enum json_kind payload_kind(struct payload_reader *r);

/* Go into the object or array at hand. False: another kind of value, or r failed: none. */
bool payload_enter(struct payload_reader *r, enum json_kind kind) MUST_CHECK;

/*
 * Go to the next member's value, or the next item. False at the container's end, which is
 * passed, and when r failed. ret_key is raw, with its quotes.
 */
bool payload_member(struct payload_reader *r, struct slice *ret_key);
bool payload_item(struct payload_reader *r);

/*
 * The same where a member's name is expected: false, and nothing moved, unless the text goes
 * on with `lead`: a comma, the name in its quotes and a colon. For an object's first member
 * the comma is passed over. payload_ahead() tells most names apart before: their first two
 * letters, where there are as many bytes left; else NULL.
 */
static inline const char *payload_ahead(const struct payload_reader *r)
{
    return r->end - r->at >= 4 ? r->at + (r->first ? 1 : 2) : NULL;
}

static inline bool payload_member_is(struct payload_reader *r, struct slice lead)
{
    size_t skip = r->first ? 1 : 0;
    size_t len = lead.len - skip;

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, lead.ptr + skip, len) != 0) {
        return false;
    }
    r->at += len;
    r->first = false;
    return true;
}

/* Take the value at hand, whole. Its text is the reader's. */
bool payload_take(struct payload_reader *r, struct json_value *ret) MUST_CHECK;

/* True when all of the text was JSON, and was passed; but for blanks. */
bool payload_reader_done(struct payload_reader *r) MUST_CHECK;
