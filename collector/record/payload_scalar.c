/* What a string and a number of checked JSON mean. */
#include <string.h>

#include "collector/base/utf8.h"
#include "collector/record/payload_scan.h"

enum { SURROGATE_FIRST = 0xd800, SURROGATE_LOW = 0xdc00, SURROGATE_END = 0xe000 };

static uint32_t hex_value(char c)
{
    if (c <= '9') {
        return (uint32_t)(c - '0');
    }
    return (uint32_t)((c | 0x20) - 'a') + 10;
}

/* The \uXXXX at the start of s; 0 when there is none. */
static uint32_t unit_at(struct slice s)
{
    uint32_t unit = 0;

    if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u') {
        return 0;
    }
    for (size_t i = 2; i < 6; i++) {
        unit = unit << 4 | hex_value(s.ptr[i]);
    }
    return unit;
}

static bool is_surrogate(uint32_t code)
{
    return code >= SURROGATE_FIRST && code < SURROGATE_END;
}

/* The code point of the escape at the start of *rest, which moves past it. */
static uint32_t take_escape(struct slice *rest)
{
    static const char *const short_forms = "\"\"\\\\//b\bf\fn\nr\rt\t";
    struct slice s = *rest;

    if (s.len < 2 || s.ptr[1] != 'u') {
        const char *at = s.len < 2 ? NULL : strchr(short_forms, s.ptr[1]);

        *rest = payload_skip(s, s.len < 2 ? s.len : 2);
        return at ? (uint32_t)at[1] : 0;
    }

    uint32_t code = unit_at(s);

    *rest = payload_skip(s, s.len < 6 ? s.len : 6);
    if (code >= SURROGATE_FIRST && code < SURROGATE_LOW) {
        uint32_t low = unit_at(*rest);

        if (low >= SURROGATE_LOW && low < SURROGATE_END) {
            *rest = payload_skip(*rest, 6);
            return 0x10000 + ((code - SURROGATE_FIRST) << 10) + (low - SURROGATE_LOW);
        }
    }
    return code;
}

/* UTF-8 of a code point that is no surrogate. */
static size_t encode_utf8(uint32_t code, char ret[4])
{
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }

    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    uint32_t lead = 0xf00U >> n & 0xf0; /* n ones from the top of a byte */

    for (size_t i = n - 1; i > 0; i--) {
        ret[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    ret[0] = (char)(lead | code);
    return n;
}

/* The run without escapes at the start of s. */
static struct slice plain_run(struct slice s)
{
    const char *slash = s.len > 0 ? memchr(s.ptr, '\\', s.len) : NULL;

    return (struct slice){ .ptr = s.ptr, .len = slash ? (size_t)(slash - s.ptr) : s.len };
}

/* What stands between the quotes. */
static struct slice inside(struct slice raw)
{
    if (raw.len < 2 || raw.ptr[0] != '"') {
        return (struct slice){ 0 };
    }
    return (struct slice){ .ptr = raw.ptr + 1, .len = raw.len - 2 };
}

/* No escape is shorter than the UTF-8 of what it means (\u0800 has 6 bytes and means 3). */
bool payload_string(struct slice raw, struct arena *a, struct slice *ret, uint32_t *ret_replaced)
{
    struct slice rest = inside(raw);
    struct slice run = plain_run(rest);

    if (run.len == rest.len) {
        *ret = rest;
        return true;
    }

    char *text = arena_alloc(a, rest.len, 1);
    size_t len = 0;
    uint32_t replaced = 0;

    if (!text) {
        return false;
    }
    while (rest.len > 0) {
        run = plain_run(rest);
        memcpy(text + len, run.ptr, run.len);
        len += run.len;
        rest = payload_skip(rest, run.len);
        if (rest.len > 0) {
            uint32_t code = take_escape(&rest);
            bool keep = code != 0 && !is_surrogate(code);

            replaced += keep ? 0 : 1;
            len += encode_utf8(keep ? code : 0xfffd, text + len);
        }
    }
    if (ret_replaced) {
        *ret_replaced += replaced;
    }
    *ret = (struct slice){ .ptr = text, .len = len };
    return true;
}

bool payload_string_is(struct slice raw, struct slice text)
{
    struct slice rest = inside(raw);

    if (raw.len < 2 || raw.ptr[0] != '"') {
        return false;
    }
    while (rest.len > 0) {
        struct slice run = plain_run(rest);

        if (!slice_starts_with(text, run)) {
            return false;
        }
        text = payload_skip(text, run.len);
        rest = payload_skip(rest, run.len);
        if (rest.len > 0) {
            uint32_t code = take_escape(&rest);
            char bytes[4];
            size_t n = is_surrogate(code) ? 0 : encode_utf8(code, bytes);

            if (n == 0 || !slice_starts_with(text, (struct slice){ .ptr = bytes, .len = n })) {
                return false;
            }
            text = payload_skip(text, n);
        }
    }
    return text.len == 0;
}

enum { EXPONENT_MAX = 1000000000 }; /* past it nothing but zero fits, however many digits */

/* The exponent that stands behind e or E; its sign included. */
static int64_t exponent_of(struct slice s)
{
    int64_t exponent = 0;
    bool negative = s.len > 0 && s.ptr[0] == '-';

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] >= '0' && s.ptr[i] <= '9' && exponent < EXPONENT_MAX) {
            exponent = exponent * 10 + (s.ptr[i] - '0');
        }
    }
    return negative ? -exponent : exponent;
}

/* *value times 10^zeros plus digit. False at an overflow. */
static bool shift_in(int64_t *value, int64_t zeros, int digit)
{
    for (int64_t i = 0; *value != 0 && i < zeros; i++) {
        if (__builtin_mul_overflow(*value, 10, value)) {
            return false;
        }
    }
    return !__builtin_add_overflow(*value, digit, value);
}

/*
 * Digits are taken up to the last one that is not zero; the zeros behind it and
 * the point only move the exponent. So 30e-1 is whole and 3.05 is not.
 */
bool payload_integer(struct json_value v, int64_t *ret)
{
    struct slice rest = v.raw;
    int64_t value = 0;
    int64_t zeros = 0;
    int64_t fraction = 0;
    bool behind_point = false;
    bool negative = rest.len > 0 && rest.ptr[0] == '-';

    if (v.kind != JSON_KIND_NUMBER) {
        return false;
    }
    for (; rest.len > 0 && (rest.ptr[0] | 0x20) != 'e'; rest = payload_skip(rest, 1)) {
        char c = rest.ptr[0];

        if (c == '.') {
            behind_point = true;
        } else if (c != '-') {
            fraction += behind_point ? 1 : 0;
            zeros++;
            if (c != '0') {
                if (!shift_in(&value, zeros, negative ? '0' - c : c - '0')) {
                    return false;
                }
                zeros = 0;
            }
        }
    }

    int64_t exponent = exponent_of(rest.len > 0 ? payload_skip(rest, 1) : rest);
    int64_t shift = exponent - fraction + zeros;

    if (value != 0 && (shift < 0 || !shift_in(&value, shift, 0))) {
        return false;
    }
    *ret = value;
    return true;
}
