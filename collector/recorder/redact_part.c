#include "collector/recorder/redact_part.h"

#include <string.h>

struct slice redact_from(struct slice text, size_t i)
{
    size_t at = i < text.len ? i : text.len;

    return redact_between(text, at, text.len);
}

static bool is_in(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

size_t redact_until(struct slice text, size_t from, const char *stops)
{
    size_t i = from;

    while (i < text.len && !is_in(stops, text.ptr[i])) {
        i++;
    }
    return i;
}

size_t redact_span(struct slice text, size_t from, const char *set)
{
    size_t i = from;

    while (i < text.len && is_in(set, text.ptr[i])) {
        i++;
    }
    return i;
}

bool redact_is_word(struct slice text, const struct run *r, const char *word)
{
    size_t len = strlen(word);

    return r->to - r->name == len && strncasecmp(text.ptr + r->name, word, len) == 0;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

size_t redact_skip_quote(struct slice text, size_t i)
{
    size_t at = redact_span(text, i, "\\");

    return is_quote(redact_at(text, at)) ? at + 1 : i;
}

/*
 * Text that has been quoted n times has 2^n - 1 backslashes before its quotes:
 * `depth`. A quote with as many, and any number of doubled backslashes before
 * them, closes the value; with fewer an outer text ends; with more it is content.
 */
bool redact_find_quoted(struct slice text, size_t from, struct span *ret)
{
    size_t first = redact_skip_quote(text, from);
    size_t depth = first > from ? first - from - 1 : 0;
    size_t slashes = 0;
    size_t i = first;

    if (first == from) {
        return false;
    }
    for (; i < text.len && text.ptr[i] != '\n'; i++) {
        if (text.ptr[i] == '\\') {
            slashes++;
            continue;
        }
        if (text.ptr[i] == text.ptr[first - 1] &&
            (slashes < depth || slashes % (2 * (depth + 1)) == depth)) {
            i -= slashes < depth ? slashes : depth;
            break;
        }
        slashes = 0;
    }
    *ret = (struct span){ .from = first, .to = i };
    return true;
}

bool redact_begins_reference(struct slice value)
{
    static const char *const starts[] = {
        "${", "$(", "{{", "[redacted]", "os.environ", "process.env", "getenv", "secrets.", "***",
    };

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (slice_starts_with(value, slice_from_cstr(starts[i]))) {
            return true;
        }
    }
    return false;
}

bool redact_is_reference(struct slice value)
{
    static const char *const words[] = { "null", "none", "nil", "true", "false", "undefined" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (value.len == strlen(words[i]) && strncasecmp(value.ptr, words[i], value.len) == 0) {
            return true;
        }
    }
    if (redact_at(value, 0) == '$' &&
        redact_span(value, 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == value.len) {
        return true;
    }
    return value.len == 0 || (value.len <= 2 && value.ptr[0] == '%') ||
           redact_begins_reference(value);
}
