/*
 * redact_shape: find what looks like a secret inside a text.
 *
 * One pass; each byte is looked at a few times at most, whatever the text. Pure.
 */
#pragma once

#include "collector/base/slice.h"

/* The bytes from `from` up to, not including, `to`. */
struct span {
    size_t from;
    size_t to;
};

/* The first secret in text that begins at `from` or later. False when there is none. */
bool redact_find(struct slice text, size_t from, struct span *ret);
