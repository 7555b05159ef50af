/* Walking text that payload_check() has passed. */
#include "collector/record/payload.h"

#include <string.h>

#include "collector/base/plain.h"
#include "collector/record/payload_scan.h"

struct slice payload_skip(struct slice s, size_t n)
{
    return (struct slice){ .ptr = s.ptr + n, .len = s.len - n };
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

struct slice payload_skip_blanks(struct slice s)
{
    size_t n = 0;

    if (s.len == 0 || (unsigned char)s.ptr[0] > ' ') {
        return s; /* nearly always: our own records have no blanks */
    }
    while (n < s.len && is_blank(s.ptr[n])) {
        n++;
    }
    return n > 0 ? payload_skip(s, n) : s;
}

/* True when the quote at s.ptr[i] stands behind an odd number of backslashes. */
static bool is_escaped(struct slice s, size_t i)
{
    size_t n = i;

    while (n > 1 && s.ptr[n - 1] == '\\') {
        n--;
    }
    return (i - n) % 2 == 1;
}

/* As string_length(), of a string that has more than a plain run up to `from`. */
static size_t search_end(struct slice s, size_t from)
{
    size_t i = from;

    while (i < s.len) {
        const char *quote = memchr(s.ptr + i, '"', s.len - i);

        if (!quote) {
            break;
        }
        i = (size_t)(quote - s.ptr);
        if (!is_escaped(s, i)) {
            return i + 1;
        }
        i++;
    }
    return s.len;
}

static size_t string_length(struct slice s)
{
    size_t i = 1 + plain_run(payload_skip(s, 1));

    return i < s.len && s.ptr[i] == '"' ? i + 1 : search_end(s, i);
}

/* Brackets pair up in checked text, so counting them is enough. */
static size_t container_length(struct slice s)
{
    size_t depth = 0;
    size_t i = 0;

    while (i < s.len) {
        char c = s.ptr[i];

        if (c == '"') {
            i += string_length(payload_skip(s, i));
            continue;
        }
        i++;
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
            if (depth == 0) {
                break;
            }
        }
    }
    return i;
}

static bool ends_word(char c)
{
    return c == ',' || c == '}' || c == ']' || c == ':' || is_blank(c);
}

static size_t word_length(struct slice s)
{
    size_t i = 0;

    while (i < s.len && !ends_word(s.ptr[i])) {
        i++;
    }
    return i;
}

static size_t value_length(struct slice s)
{
    if (s.len == 0) {
        return 0;
    }
    if (s.ptr[0] == '"') {
        return string_length(s);
    }
    return s.ptr[0] == '{' || s.ptr[0] == '[' ? container_length(s) : word_length(s);
}

static struct json_value value_of(struct slice raw)
{
    return (struct json_value){ .raw = raw,
                                .kind =
                                    raw.len > 0 ? payload_kind_of(raw.ptr[0]) : JSON_KIND_NONE };
}

struct payload_iter payload_iter(struct json_value container)
{
    struct payload_iter it = { .object = container.kind == JSON_KIND_OBJECT };

    if ((it.object || container.kind == JSON_KIND_ARRAY) && container.raw.len >= 2) {
        it.rest = (struct slice){ .ptr = container.raw.ptr + 1, .len = container.raw.len - 2 };
        it.rest = payload_skip_blanks(it.rest);
    }
    return it;
}

/* The name at the start of it->rest; the rest then begins with the member's value. */
static struct slice take_key(struct payload_iter *it)
{
    struct slice key = { .ptr = it->rest.ptr, .len = string_length(it->rest) };

    it->rest = payload_skip_blanks(payload_skip(it->rest, key.len));
    if (it->rest.len > 0) {
        it->rest = payload_skip_blanks(payload_skip(it->rest, 1));
    }
    return key;
}

bool payload_next(struct payload_iter *it, struct slice *ret_key, struct json_value *ret_value)
{
    struct slice key = { 0 };

    if (it->rest.len == 0) {
        return false;
    }
    if (it->object) {
        key = take_key(it);
    }
    if (ret_key) {
        *ret_key = key;
    }

    struct slice raw = { .ptr = it->rest.ptr, .len = value_length(it->rest) };

    *ret_value = value_of(raw);
    it->rest = payload_skip_blanks(payload_skip(it->rest, raw.len));
    if (it->rest.len > 0) {
        it->rest = payload_skip_blanks(payload_skip(it->rest, 1)); /* the comma */
    }
    return true;
}

struct json_value payload_get(struct json_value object, struct slice key)
{
    struct payload_iter it = payload_iter(object);
    struct json_value value;
    struct slice name;

    while (it.object && payload_next(&it, &name, &value)) {
        if (payload_string_is(name, key)) {
            return value;
        }
    }
    return (struct json_value){ .kind = JSON_KIND_NONE };
}
