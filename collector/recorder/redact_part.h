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

/* The bytes of text from `from` up to `to`, which are inside it. */
static inline struct slice redact_between(struct slice text, size_t from, size_t to)
{
    return (struct slice){ .ptr = text.ptr + from, .len = to - from };
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

/* Is the run, without its dashes, this word, in letters of any case? */
bool redact_is_word(struct slice text, const struct run *r, const char *word);

/* The offset behind a quote at i, also an escaped one (\", \\\"); i when there is none. */
size_t redact_skip_quote(struct slice text, size_t i);

/* The value in quotes that begin at `from`; without closing ones it ends with the line. */
bool redact_find_quoted(struct slice text, size_t from, struct span *ret);

/* A token whose first letters tell its maker, or a JWT, in run r. */
bool redact_find_token(struct slice text, const struct run *r, struct span *ret);

/* The value that is given to the secret's name in run r. */
bool redact_find_assignment(struct slice text, const struct run *r, struct span *ret);

/* The password in `-u user:SECRET`, the option in run r. */
bool redact_find_login(struct slice text, const struct run *r, struct span *ret);

/* The value of an option that is a secret with the program of its command line. */
bool redact_find_option(struct slice text, const struct run *r, struct span *ret);

/* The lines of a YAML block, or of a list, under the secret's name in run r. */
bool redact_find_block(struct slice text, const struct run *r, struct span *ret);

/* Where the value of the name in run r begins when its line ends at `from`; else `from`. */
size_t redact_value_below(struct slice text, const struct run *r, size_t from);

/* The content of the XML element with the secret's name in run r. */
bool redact_find_element(struct slice text, const struct run *r, struct span *ret);
