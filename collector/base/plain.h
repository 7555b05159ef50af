/*
 * plain: how much of a text stands in a JSON string as it is.
 *
 * Most of a payload are runs of printable ASCII without a quote or a backslash:
 * they are found eight bytes at a time. Pure.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/slice.h"

/* The top bit of each of the 8 bytes in w that may end a run; of those the lowest does. */
static inline uint64_t plain_stops(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101U;
    uint64_t quote = w ^ (ones * '"');
    uint64_t slash = w ^ (ones * '\\');
    uint64_t below = (w - ones * 0x20) | (quote - ones) | (slash - ones);

    return (below | w) & (ones * 0x80);
}

/* Bytes at the start of s before a quote, a backslash, a control or what is not ASCII. */
static inline size_t plain_run(struct slice s)
{
    size_t i = 0;
    uint64_t w;

    for (; s.len - i >= sizeof(w); i += sizeof(w)) {
        memcpy(&w, s.ptr + i, sizeof(w));

        uint64_t stops = plain_stops(le64toh(w));

        if (stops != 0) {
            return i + (size_t)__builtin_ctzll(stops) / 8;
        }
    }
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }
    }
    return i;
}
