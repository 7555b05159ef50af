#include "collector/contract/text.h"

#include <string.h>

#include "collector/base/utf8.h"

/* The white space beyond ASCII, as UTF-8. */
static const char *const wide_blanks[] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
    "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80",
};

static bool is_narrow_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_blank(struct slice character)
{
    if (character.len == 1) {
        return is_narrow_blank(character.ptr[0]);
    }
    for (size_t i = 0; i < sizeof(wide_blanks) / sizeof(wide_blanks[0]); i++) {
        if (slice_equal(character, slice_from_cstr(wide_blanks[i]))) {
            return true;
        }
    }
    return false;
}

static size_t first_length(struct slice s)
{
    size_t n = utf8_length(s);

    return n > 0 ? n : 1;
}

/* Bytes of the character at the end of s, which is not empty. */
static size_t last_length(struct slice s)
{
    size_t n = 1;

    while (n < s.len && n < 4 && ((unsigned char)s.ptr[s.len - n] & 0xc0) == 0x80) {
        n++;
    }
    return n;
}

struct slice text_trim(struct slice s)
{
    while (s.len > 0) {
        size_t n = first_length(s);

        if (!is_blank((struct slice){ .ptr = s.ptr, .len = n })) {
            break;
        }
        s.ptr += n;
        s.len -= n;
    }
    while (s.len > 0) {
        size_t n = last_length(s);

        if (!is_blank((struct slice){ .ptr = s.ptr + s.len - n, .len = n })) {
            break;
        }
        s.len -= n;
    }
    return s;
}

bool text_is_blank(struct slice s)
{
    return text_trim(s).len == 0;
}
