/* digest: SHA-256 (OpenSSL), and bytes written as hexadecimal digits. Safe from any thread. */
#pragma once

#include "collector/base/slice.h"

enum { DIGEST_BYTES = 32, DIGEST_HEX_SIZE = 65 }; /* the latter with the NUL */

struct digest {
    unsigned char bytes[DIGEST_BYTES];
};

/* Its bytes, borrowed. */
static inline struct slice digest_slice(const struct digest *d)
{
    return (struct slice){ .ptr = (const char *)d->bytes, .len = DIGEST_BYTES };
}

/* SHA-256 of bytes. */
struct digest digest_of(struct slice bytes);

/* SHA-256 of the bytes of several slices, one after the other. */
struct digest digest_of_parts(const struct slice *parts, size_t n);

/* True when both are the same. */
bool digest_equal(const struct digest *a, const struct digest *b);

/* 64 lower-case digits and a NUL. */
void digest_hex(const struct digest *d, char ret_hex[DIGEST_HEX_SIZE]);

/* The inverse. False when s is not 64 hexadecimal digits in lower case. */
bool digest_from_hex(struct slice s, struct digest *ret) MUST_CHECK;

/* The value of a hexadecimal digit in lower case; -1 when it is none. */
int hex_digit(char c);

/* n bytes from 2 n such digits. False, with *ret in any state, when s is anything else. */
bool hex_read(struct slice s, unsigned char *ret, size_t n) MUST_CHECK;
