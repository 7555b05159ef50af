/*
 * redact_part: what the finders of redact_shape share.
 *
 * Offsets are into the text that is searched; past its end there are NULs. Pure.
 */
#pragma once

#include "collector/recorder/redact_shape.h"

/* A run of letters, digits, '_' and '-', and where it begins without its dashes. */
struct run {
    size_t from;
    size_t name;
    size_t to;
};

/* Is c part of a run? */
static inline bool redact_is_run(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* The byte at i; NUL past the end. */
static inline char redact_at(struct slice text, size_t i)
{
    if (i >= text.len) {
        return '\0';
    }
    return text.ptr[i];
}

/* text from i on; empty past the end. */
struct slice redact_from(struct slice text, size_t i);

/* The offset, from `from` on, of the first byte that is in `stops`, or the end. */
size_t redact_until(struct slice text, size_t from, const char *stops);

/* The offset, from `from` on, of the first byte that is not in `set`, or the end. */
size_t redact_span(struct slice text, size_t from, const char *set);

/* True when value is no secret but where one comes from, or nothing: $TOKEN, null, ***, %s. */
bool redact_is_reference(struct slice value);

/* The same, told by how it begins, before anybody looks for its end. */
bool redact_begins_reference(struct slice value);

/* A token whose first letters tell its maker, or a JWT, in run r. */
bool redact_find_token(struct slice text, const struct run *r, struct span *ret);

/* The value that is given to the secret's name in run r. */
bool redact_find_assignment(struct slice text, const struct run *r, struct span *ret);
