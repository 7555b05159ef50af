/*
 * payload: the one reader of JSON that is not ours.
 *
 * A host's payload and a hook's result are read where they lie: numbers keep
 * their digits, duplicate keys stay, a lone surrogate passes through. Validate
 * once with payload_check(), then walk slices of the same bytes; or do both at once with
 * payload_reader.h. Of a key that stands twice the first occurrence counts. Pure; safe from
 * any thread.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/err.h"

enum { PAYLOAD_MAX_DEPTH = 128 };

enum json_kind {
    JSON_KIND_NONE = 0, /* there is no such value */
    JSON_KIND_NULL,
    JSON_KIND_FALSE,
    JSON_KIND_TRUE,
    JSON_KIND_NUMBER,
    JSON_KIND_STRING,
    JSON_KIND_ARRAY,
    JSON_KIND_OBJECT,
};

/* One value: its bytes as they came, without blanks around them. */
struct json_value {
    struct slice raw; /* into the text that was checked */
    enum json_kind kind;
};

/*
 * Check that text is one JSON value (RFC 8259, UTF-8, at most PAYLOAD_MAX_DEPTH
 * deep) with nothing but blanks around it. *ret is that value.
 *
 * Errors: ERR_INVALID with line and column, or "deeper than 128".
 */
bool payload_check(struct slice text, struct json_value *ret, struct err *err) MUST_CHECK;

/* The first member of `object` whose name is `key` (escapes resolved); kind NONE: none. */
struct json_value payload_get(struct json_value object, struct slice key);

/* Walk an object's members or an array's items, in order. */
struct payload_iter {
    struct slice rest;
    bool object;
};
struct payload_iter payload_iter(struct json_value container);
/* False at the end. ret_key (raw, with its quotes) is empty for an array; may be NULL. */
bool payload_next(struct payload_iter *it, struct slice *ret_key, struct json_value *ret_value);

/*
 * The characters of a string value (or of a raw key). A lone surrogate and a NUL
 * become U+FFFD; *ret_replaced (may be NULL) grows by how many did. Without
 * escapes the result is a slice of the text itself; what is no string, empty.
 * False at the arena's limit.
 */
bool payload_string(struct slice raw, struct arena *a, struct slice *ret, uint32_t *ret_replaced)
    MUST_CHECK;

/* True when the raw string (with quotes) spells exactly `text`. */
bool payload_string_is(struct slice raw, struct slice text);

/* The value of a number that is a whole one (also 3.0 and 3e2). False: not whole, or too big. */
bool payload_integer(struct json_value v, int64_t *ret) MUST_CHECK;
