/* What the validator accepts can be walked; what it refuses, jansson refuses, too. */
#include <assert.h>
#include <string.h>

#include <jansson.h>

#include "collector/record/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read every value below v once, its string and its number included. */
static void walk(struct json_value v, struct arena *a)
{
    struct payload_iter it = payload_iter(v);
    struct json_value item;
    struct slice key;
    struct slice text;
    int64_t n;

    (void)payload_integer(v, &n);
    (void)payload_string(v.raw, a, &text, NULL);
    while (payload_next(&it, &key, &item)) {
        assert(item.raw.ptr >= v.raw.ptr && item.raw.ptr + item.raw.len <= v.raw.ptr + v.raw.len);
        assert(!it.object || payload_string(key, a, &text, NULL));
        assert(!it.object || payload_get(v, text).kind != JSON_KIND_NONE || text.len > 0);
        walk(item, a);
    }
}

/* What jansson reads is what we read; but it takes a NUL for the end of the text. */
static void refused(struct slice text, const struct err *err)
{
    json_t *x = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    assert(!x || strstr(err->text, "deeper than") || memchr(text.ptr, '\0', text.len));
    json_decref(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { .ptr = (const char *)data, .len = size };
    struct json_value v;
    struct arena a;
    struct err err = { 0 };

    if (!payload_check(text, &v, &err)) {
        refused(text, &err);
        return 0;
    }
    arena_init(&a, 16 * 1024 * 1024);
    walk(v, &a);
    arena_clear(&a);
    return 0;
}
