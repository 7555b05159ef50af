#include "collector/base/utf8.h"

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t utf8_length(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    if (s.len == 0) {
        return 0;
    }
    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        return s.len >= 2 && is_tail(p[1]) ? 2 : 0;
    }
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        bool overlong = s.len >= 2 && p[0] == 0xe0 && p[1] < 0xa0;
        bool surrogate = s.len >= 2 && p[0] == 0xed && p[1] > 0x9f;

        return s.len >= 3 && is_tail(p[1]) && is_tail(p[2]) && !overlong && !surrogate ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        bool overlong = s.len >= 2 && p[0] == 0xf0 && p[1] < 0x90;
        bool beyond = s.len >= 2 && p[0] == 0xf4 && p[1] > 0x8f;

        return s.len >= 4 && is_tail(p[1]) && is_tail(p[2]) && is_tail(p[3]) && !overlong && !beyond
                   ? 4
                   : 0;
    }
    return 0;
}

bool utf8_is_control(struct slice c)
{
    unsigned char first = (unsigned char)c.ptr[0];

    return first < 0x20 || first == 0x7f ||
           (c.len == 2 && first == 0xc2 && (unsigned char)c.ptr[1] < 0xa0);
}

/* The first character of s, well-formed or not, in bytes. s is not empty. */
static size_t step(struct slice s)
{
    size_t n = utf8_length(s);

    return n > 0 ? n : 1;
}

size_t utf8_count(struct slice s)
{
    size_t count = 0;

    while (s.len > 0) {
        size_t n = step(s);

        s.ptr += n;
        s.len -= n;
        count++;
    }
    return count;
}

struct slice utf8_prefix(struct slice s, size_t n)
{
    struct slice rest = s;

    while (rest.len > 0 && n > 0) {
        size_t bytes = step(rest);

        rest.ptr += bytes;
        rest.len -= bytes;
        n--;
    }
    return (struct slice){ .ptr = s.ptr, .len = s.len - rest.len };
}
