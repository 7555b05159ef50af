/*
 * redact: take secrets out of what is about to be recorded, on a copy.
 *
 * By key name (password, token, authorization, …, in any spelling and nesting)
 * and by the shape of a value (private keys, JWTs, cloud and vendor tokens,
 * credentials in URLs, "Authorization: …" inside a command line). What is taken
 * out becomes "[redacted]". A redaction that fails leaves the skeleton (key
 * names, sizes), never the content. Pure; safe from any thread.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/record/payload.h"

/* A plain text: values with a secret's shape are replaced. The result is in the arena. */
bool redact_text(struct slice text, struct arena *a, struct slice *ret, uint32_t *ret_erased)
    MUST_CHECK;

/*
 * A JSON value, minified, at most max_bytes: over it, or on failure, its skeleton.
 * Lone surrogates and NUL escapes become U+FFFD and count as erased.
 */
void redact_json(struct json_value v, size_t max_bytes, struct buf *out, uint32_t *ret_erased);

/*
 * The names of an object's keys, ["a","b"]: as many as fit into about max_bytes.
 * Nothing of an object without keys, nor of what is no object. False: nothing of it
 * may be recorded.
 */
bool redact_keys(struct json_value v, size_t max_bytes, struct buf *out, uint32_t *ret_erased)
    MUST_CHECK;
