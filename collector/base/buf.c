#include "collector/base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/base/plain.h"
#include "collector/base/utf8.h"

enum { FIRST_BYTES = 256 };

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){ .max_bytes = max_bytes };
}

void buf_done(struct buf *b)
{
    free(b->ptr);
    buf_init(b, b->max_bytes);
}

void buf_clear(struct buf *b)
{
    b->len_bytes = 0;
    b->too_big = false;
}

/* One byte more than asked, so that buf_cstr() always has a place for its NUL. */
char *buf_reserve(struct buf *b, size_t n)
{
    if (b->too_big || n > b->max_bytes - b->len_bytes) {
        b->too_big = true;
        return NULL;
    }

    size_t need = b->len_bytes + n + 1;

    if (need > b->cap_bytes) {
        size_t cap = b->cap_bytes > 0 ? b->cap_bytes : FIRST_BYTES;

        while (cap < need) {
            cap *= 2;
        }
        b->ptr = xrealloc(b->ptr, cap);
        b->cap_bytes = cap;
    }
    return b->ptr + b->len_bytes;
}

void buf_add(struct buf *b, struct slice bytes)
{
    char *at = buf_reserve(b, bytes.len);

    if (at && bytes.len > 0) {
        memcpy(at, bytes.ptr, bytes.len);
        b->len_bytes += bytes.len;
    }
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, (struct slice){ .ptr = &c, .len = 1 });
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_list again;

    va_start(ap, fmt);
    va_copy(again, ap);

    int n = vsnprintf(NULL, 0, fmt, ap);
    char *at = n < 0 ? NULL : buf_reserve(b, (size_t)n);

    if (at) {
        (void)vsnprintf(at, (size_t)n + 1, fmt, again);
        b->len_bytes += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

void buf_add_u64(struct buf *b, uint64_t n)
{
    char digits[20]; /* of UINT64_MAX */
    size_t i = sizeof(digits);

    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    buf_add(b, (struct slice){ .ptr = digits + i, .len = sizeof(digits) - i });
}

void buf_add_i64(struct buf *b, int64_t n)
{
    if (n < 0) {
        buf_add_char(b, '-');
    }
    buf_add_u64(b, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

/* How the byte is written inside a JSON string, or NULL: as it is. */
static const char *escape_of(unsigned char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

void buf_add_json_string(struct buf *b, struct slice text)
{
    buf_add_char(b, '"');
    while (text.len > 0) {
        size_t n = plain_run(text);

        if (n == 0) {
            unsigned char c = (unsigned char)text.ptr[0];
            const char *escape = escape_of(c);

            n = c < 0x80 ? 1 : utf8_length(text);
            if (escape) {
                buf_add(b, slice_from_cstr(escape));
            } else if (c == 0 || n == 0) {
                n = 1;
                buf_add(b, SLICE(UTF8_REPLACEMENT));
            } else if (c < 0x20) {
                buf_addf(b, "\\u%04x", c);
            } else {
                buf_add(b, (struct slice){ .ptr = text.ptr, .len = n });
            }
        } else {
            buf_add(b, (struct slice){ .ptr = text.ptr, .len = n });
        }
        text.ptr += n;
        text.len -= n;
    }
    buf_add_char(b, '"');
}

bool buf_ok(const struct buf *b)
{
    return !b->too_big;
}

struct slice buf_slice(const struct buf *b)
{
    return (struct slice){ .ptr = b->ptr, .len = b->len_bytes };
}

const char *buf_cstr(struct buf *b)
{
    if (!b->ptr) {
        return "";
    }
    b->ptr[b->len_bytes] = '\0';
    return b->ptr;
}
