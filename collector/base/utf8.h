/* utf8: what is a character, and what stands in for what is none. Pure. */
#pragma once

#include <stddef.h>

#include "collector/base/slice.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/*
 * Bytes of the well-formed character (RFC 3629: no overlong form, no surrogate,
 * at most U+10FFFF) at the start of s; 0 when there is none.
 */
size_t utf8_length(struct slice s);

/*
 * True for a character, not empty, that steers a terminal: C0, DEL, and C1 (U+0080 to
 * U+009F, which terminals obey as they do ESC sequences).
 */
bool utf8_is_control(struct slice character);

/* Characters (code points) in s; a byte that is no UTF-8 counts as one. */
size_t utf8_count(struct slice s);

/* The longest prefix of s that has at most n characters. */
struct slice utf8_prefix(struct slice s, size_t n);
