#include "collector/base/yaml_scalar.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 64 }; /* a longer run of digits is refused, not read */

static bool is_one_of(struct slice text, const char *const *words)
{
    for (; *words; words++) {
        if (slice_equal(text, slice_from_cstr(*words))) {
            return true;
        }
    }
    return false;
}

static size_t digits(struct slice s, size_t from)
{
    size_t i = from;

    while (i < s.len && isdigit((unsigned char)s.ptr[i])) {
        i++;
    }
    return i - from;
}

enum shape { SHAPE_WORD, SHAPE_DECIMAL, SHAPE_FLOAT };

/* [-+]? then digits, or digits with a fraction, an exponent, or both. */
static enum shape shape_of(struct slice s)
{
    size_t i = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+') ? 1 : 0;
    size_t whole = digits(s, i);
    size_t fraction = 0;
    enum shape shape = SHAPE_DECIMAL;

    i += whole;
    if (i < s.len && s.ptr[i] == '.') {
        fraction = digits(s, i + 1);
        i += 1 + fraction;
        shape = SHAPE_FLOAT;
    }
    if (whole + fraction == 0) {
        return SHAPE_WORD;
    }
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        i++;
        i += i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+') ? 1 : 0;

        size_t exponent = digits(s, i);

        i += exponent;
        if (exponent == 0) {
            return SHAPE_WORD;
        }
        shape = SHAPE_FLOAT;
    }
    return i == s.len ? shape : SHAPE_WORD;
}

/* 0x1F and 0o17, without a sign; 0 when it is neither. */
static int base_of(struct slice s)
{
    int base = slice_starts_with(s, SLICE("0x")) ? 16 : slice_starts_with(s, SLICE("0o")) ? 8 : 0;

    for (size_t i = 2; i < s.len; i++) {
        char c = s.ptr[i];

        if (base == 16 ? !isxdigit((unsigned char)c) : c < '0' || c > '7') {
            return 0;
        }
    }
    return s.len > 2 ? base : 0;
}

static bool leads_with_zero(struct slice s)
{
    size_t i = s.ptr[0] == '-' || s.ptr[0] == '+' ? 1 : 0;

    return s.len > i + 1 && s.ptr[i] == '0' && isdigit((unsigned char)s.ptr[i + 1]);
}

/* The number in z, read by libc; NULL when it is out of range. */
static json_t *number(const char *z, enum shape shape, int base)
{
    errno = 0;
    if (base > 0) {
        long long v = strtoll(z + 2, NULL, base);

        return errno == 0 ? json_integer(v) : NULL;
    }
    if (shape == SHAPE_DECIMAL) {
        long long v = strtoll(z, NULL, 10);

        return errno == 0 ? json_integer(v) : NULL;
    }

    double d = strtod(z, NULL);

    return isfinite(d) ? json_real(d) : NULL;
}

static json_t *refuse(char *text, size_t size, const char *why)
{
    (void)snprintf(text, size, "%s", why);
    return NULL;
}

json_t *yaml_scalar(struct slice text, bool plain, char *ret_text, size_t text_size)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const trues[] = { "true", "True", "TRUE", NULL };
    static const char *const falses[] = { "false", "False", "FALSE", NULL };
    static const char *const no_numbers[] = { ".inf",  ".Inf",  ".INF",  "-.inf", "-.Inf",
                                              "-.INF", "+.inf", "+.Inf", "+.INF", ".nan",
                                              ".NaN",  ".NAN",  NULL };

    if (text.len > 0 && memchr(text.ptr, '\0', text.len)) {
        return refuse(ret_text, text_size, "a NUL character is not taken here");
    }

    enum shape shape = plain ? shape_of(text) : SHAPE_WORD;
    int base = plain ? base_of(text) : 0;

    if (plain && is_one_of(text, nulls)) {
        return json_null();
    }
    if (plain && (is_one_of(text, trues) || is_one_of(text, falses))) {
        return json_boolean(is_one_of(text, trues));
    }
    if (plain && is_one_of(text, no_numbers)) {
        return refuse(ret_text, text_size, "must be a finite number (in quotes: a string)");
    }
    if (shape == SHAPE_DECIMAL && leads_with_zero(text)) {
        return refuse(ret_text, text_size,
                      "a number with a leading zero is ambiguous: write 0o17, or put it in quotes");
    }
    if (shape != SHAPE_WORD || base > 0) {
        char z[NUMBER_BYTES];
        json_t *n = NULL;

        if (text.len < sizeof(z)) {
            (void)snprintf(z, sizeof(z), "%" SLICE_FMT, SLICE_ARG(text));
            n = number(z, shape, base);
        }
        return n ? n : refuse(ret_text, text_size, "a number out of range (in quotes: a string)");
    }

    json_t *s = json_stringn(text.ptr ? text.ptr : "", text.len);

    return s ? s : refuse(ret_text, text_size, "not UTF-8");
}
