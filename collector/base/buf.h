/*
 * buf: an owned, growing run of bytes with a maximum.
 *
 * Whoever builds bytes of unknown size (a record, a reply, a hook's output)
 * names the maximum when the buffer is made; passing it is remembered, not
 * reported at once: a writer appends without looking, and asks buf_ok() at the
 * end. After the first refusal the buffer takes no more, so what is in it is
 * always a prefix of what was meant.
 * Not thread-safe.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/cleanup.h"
#include "collector/base/slice.h"

struct buf {
    char *ptr; /* owned; NULL while cap_bytes is 0 */
    size_t len_bytes;
    size_t cap_bytes;
    size_t max_bytes; /* len_bytes never passes it */
    bool too_big;     /* an append was refused */
};

/* An empty buffer that may grow to max_bytes. It takes no memory until then. */
void buf_init(struct buf *b, size_t max_bytes);

/* Release the memory; b is then as after buf_init(). For CLEANUP too. */
void buf_done(struct buf *b);

/* Forget the bytes, keep the memory and the maximum. */
void buf_clear(struct buf *b);

/* Append bytes, a literal's bytes, one byte, a formatted text, a decimal. */
void buf_add(struct buf *b, struct slice bytes);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_add_u64(struct buf *b, uint64_t n);
void buf_add_i64(struct buf *b, int64_t n);

/*
 * Append `text` as a JSON string with its quotes. Bytes that are no UTF-8, and
 * NUL, become U+FFFD, so that the result is always valid JSON that every
 * database takes.
 */
void buf_add_json_string(struct buf *b, struct slice text);

/*
 * Room for n more bytes at the end, to be filled by the caller, who then adds
 * what it used to len_bytes. NULL when that would pass the maximum.
 */
char *buf_reserve(struct buf *b, size_t n) MUST_CHECK;

/* False when an append was refused because of max_bytes. */
bool buf_ok(const struct buf *b) MUST_CHECK;

/* The bytes, borrowed until the next append. */
struct slice buf_slice(const struct buf *b);

/* The bytes with a NUL behind them (which is not counted); never NULL. */
const char *buf_cstr(struct buf *b);
