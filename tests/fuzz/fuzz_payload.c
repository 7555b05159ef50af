/* What the validator accepts can be walked, and stays what it is when it is minified. */
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

/* Where jansson takes a text too, both forms of it mean the same. */
static void compare(struct slice text, struct slice minified)
{
    json_t *x = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *y = json_loadb(minified.ptr, minified.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    assert((x != NULL) == (y != NULL));
    assert(!x || json_equal(x, y));
    json_decref(x);
    json_decref(y);
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
    struct json_value again;
    struct arena a;
    struct buf out;
    struct err err = { 0 };

    if (!payload_check(text, &v, &err)) {
        refused(text, &err);
        return 0;
    }
    arena_init(&a, 16 * 1024 * 1024);
    buf_init(&out, size);
    walk(v, &a);
    payload_minify(v, &out);
    assert(payload_check(buf_slice(&out), &again, &err));
    assert(again.kind == v.kind);
    compare(text, buf_slice(&out));
    buf_done(&out);
    arena_clear(&a);
    return 0;
}
