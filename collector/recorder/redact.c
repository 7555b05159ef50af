#include "collector/recorder/redact.h"

#include <string.h>

#include "collector/recorder/redact_name.h"
#include "collector/recorder/redact_part.h"

#define REDACTED "[redacted]"

/* Append text with every secret from `first` on replaced. */
static void replace(struct slice text, struct span first, struct buf *out, uint32_t *erased)
{
    struct span secret = first;
    size_t done = 0;

    do {
        buf_add(out, redact_between(text, done, secret.from));
        buf_add(out, SLICE(REDACTED));
        done = secret.to;
        (*erased)++;
    } while (redact_find(text, done, &secret));
    buf_add(out, redact_between(text, done, text.len));
}

bool redact_text(struct slice text, struct arena *a, struct slice *ret, uint32_t *ret_erased)
{
    struct span secret;
    uint32_t erased = 0;

    if (!redact_find(text, 0, &secret)) {
        *ret = text;
        return true;
    }

    CLEANUP(buf_done) struct buf out;

    /* The shortest secret is one byte, so a text grows at most as far. */
    buf_init(&out, text.len * sizeof(REDACTED));
    replace(text, secret, &out, &erased);
    if (!buf_ok(&out) || !arena_dup(a, buf_slice(&out), ret)) {
        return false;
    }
    *ret_erased += erased;
    return true;
}

/* ---- JSON -------------------------------------------------------------------- */

struct redactor {
    struct buf *out;
    struct arena arena; /* texts with their escapes resolved */
    struct buf joined;  /* an element of an array behind those before it */
    uint32_t erased;
    bool failed;
};

/* A string, or a key: as it came where nothing is taken out of it. */
static void put_string(struct redactor *r, struct slice raw)
{
    struct slice text;
    struct span secret;
    uint32_t replaced = 0;

    if (!payload_string(raw, &r->arena, &text, &replaced)) {
        r->failed = true;
        return;
    }

    bool found = redact_find(text, 0, &secret);

    if (!found && replaced == 0) {
        buf_add(r->out, raw);
        return;
    }
    r->erased += replaced;
    if (found) {
        struct slice clean;

        if (!redact_text(text, &r->arena, &clean, &r->erased)) {
            r->failed = true;
            return;
        }
        text = clean;
    }
    buf_add_json_string(r->out, text);
}

static void put_value(struct redactor *r, struct json_value v, bool secret);

/* {"name": "DB_PASSWORD", "value": …}: the name of the value stands beside it. */
static bool names_a_secret(struct redactor *r, struct json_value object)
{
    static const char *const names[] = { "name", "key", "header" };
    struct slice text;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct json_value name = payload_get(object, slice_from_cstr(names[i]));

        if (name.kind == JSON_KIND_STRING && payload_string(name.raw, &r->arena, &text, NULL) &&
            redact_is_secret_name(text)) {
            return true;
        }
    }
    return false;
}

static bool is_secret_key(struct redactor *r, struct slice raw)
{
    struct slice text;

    if (!payload_string(raw, &r->arena, &text, NULL)) {
        r->failed = true;
        return true;
    }
    return redact_is_secret_name(text);
}

static void put_object(struct redactor *r, struct json_value v, bool secret)
{
    enum { NOT_ASKED, YES, NO } pair = NOT_ASKED;
    struct payload_iter it = payload_iter(v);
    struct json_value value;
    struct slice key;
    char before = '{';

    while (payload_next(&it, &key, &value) && !r->failed && buf_ok(r->out)) {
        bool hide = secret || is_secret_key(r, key);

        if (!hide && payload_string_is(key, SLICE("value"))) {
            if (pair == NOT_ASKED) {
                pair = names_a_secret(r, v) ? YES : NO;
            }
            hide = pair == YES;
        }
        buf_add_char(r->out, before);
        put_string(r, key);
        buf_add_char(r->out, ':');
        put_value(r, value, hide);
        before = ',';
    }
    buf_add(r->out, before == '{' ? SLICE("{}") : SLICE("}"));
}

/*
 * The elements of an array may be the arguments of a program, or the lines of a
 * file: ["--password", "x"]. So each is read behind the end of those before it.
 */
enum { BEFORE_BYTES = 128 };

struct before {
    char bytes[BEFORE_BYTES];
    size_t len;
};

static void remember(struct before *b, struct slice text)
{
    enum { MOST = BEFORE_BYTES - 1 }; /* and a blank */
    struct slice tail = text.len > MOST ? redact_between(text, text.len - MOST, text.len) : text;

    if (b->len + tail.len > MOST) {
        size_t dropped = b->len + tail.len - MOST;

        memmove(b->bytes, b->bytes + dropped, b->len - dropped);
        b->len -= dropped;
    }
    if (tail.len > 0) {
        memcpy(b->bytes + b->len, tail.ptr, tail.len);
    }
    b->len += tail.len;
    b->bytes[b->len++] = ' ';
}

/* Is text a secret, or has one in it, that it would not be without what stands before it? */
static bool is_secret_behind(struct redactor *r, const struct before *b, struct slice text)
{
    struct span joined = { 0 };
    struct span alone;

    buf_clear(&r->joined);
    buf_add(&r->joined, (struct slice){ .ptr = b->bytes, .len = b->len });
    buf_add(&r->joined, text);
    while (redact_find(buf_slice(&r->joined), joined.to, &joined)) {
        if (joined.to > b->len) {
            return joined.from < b->len || !redact_find(text, 0, &alone) ||
                   alone.from != joined.from - b->len;
        }
    }
    return false;
}

/* An element that is one hides as a whole. */
static bool is_secret_element(struct redactor *r, struct before *b, struct json_value v)
{
    struct slice text = v.raw;

    if (v.kind != JSON_KIND_STRING && v.kind != JSON_KIND_NUMBER) {
        b->len = 0;
        return false;
    }
    if (v.kind == JSON_KIND_STRING && !payload_string(v.raw, &r->arena, &text, NULL)) {
        r->failed = true;
        return true;
    }

    bool hide = b->len > 0 && text.len > 0 && is_secret_behind(r, b, text);

    remember(b, text);
    return hide;
}

static void put_array(struct redactor *r, struct json_value v, bool secret)
{
    struct payload_iter it = payload_iter(v);
    struct json_value value;
    struct before before = { .len = 0 };
    char sign = '[';

    while (payload_next(&it, NULL, &value) && !r->failed && buf_ok(r->out)) {
        bool hide = secret || is_secret_element(r, &before, value);

        buf_add_char(r->out, sign);
        put_value(r, value, hide);
        sign = ',';
    }
    buf_add(r->out, sign == '[' ? SLICE("[]") : SLICE("]"));
}

/* As deep as PAYLOAD_MAX_DEPTH at most. */
static void put_value(struct redactor *r, struct json_value v, bool secret)
{
    switch (v.kind) {
    case JSON_KIND_OBJECT:
        put_object(r, v, secret);
        return;
    case JSON_KIND_ARRAY:
        put_array(r, v, secret);
        return;
    case JSON_KIND_STRING:
    case JSON_KIND_NUMBER:
        if (secret) {
            buf_add(r->out, SLICE("\"" REDACTED "\""));
            r->erased++;
        } else if (v.kind == JSON_KIND_STRING) {
            put_string(r, v.raw);
        } else {
            buf_add(r->out, v.raw);
        }
        return;
    case JSON_KIND_NONE:
    case JSON_KIND_NULL:
    case JSON_KIND_FALSE:
    case JSON_KIND_TRUE:
        buf_add(r->out, v.raw);
        return;
    }
}

static const char *kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_KIND_NONE] = "nothing", [JSON_KIND_NULL] = "null",     [JSON_KIND_FALSE] = "boolean",
        [JSON_KIND_TRUE] = "boolean", [JSON_KIND_NUMBER] = "number", [JSON_KIND_STRING] = "string",
        [JSON_KIND_ARRAY] = "array",  [JSON_KIND_OBJECT] = "object",
    };

    return names[kind];
}

/* "[string, 1048576 bytes]" */
static void put_size(struct buf *out, struct json_value v)
{
    buf_addf(out, "\"[%s, %zu bytes]\"", kind_name(v.kind), v.raw.len);
}

/* What is left of an object: its keys, and what stood under each. Of anything else its size. */
static void put_skeleton(struct redactor *r, struct json_value v)
{
    struct payload_iter it = payload_iter(v);
    struct json_value value;
    struct slice key;
    char before = '{';

    if (v.kind != JSON_KIND_OBJECT) {
        put_size(r->out, v);
        r->erased++;
        return;
    }
    while (payload_next(&it, &key, &value) && !r->failed && buf_ok(r->out)) {
        buf_add_char(r->out, before);
        put_string(r, key);
        buf_add_char(r->out, ':');
        put_size(r->out, value);
        before = ',';
        r->erased++;
    }
    buf_add(r->out, before == '{' ? SLICE("{}") : SLICE("}"));
}

static bool is_whole(const struct redactor *r)
{
    return !r->failed && buf_ok(r->out);
}

/* Blanks and escapes may shrink, but a value this much over the limit is not even tried. */
enum { TRY_TIMES = 8, ARENA_SPARE = 4096 };

void redact_json(struct json_value v, size_t max_bytes, struct buf *out, uint32_t *ret_erased)
{
    CLEANUP(buf_done) struct buf made;
    struct redactor r = { .out = &made, .failed = v.raw.len / TRY_TIMES > max_bytes };

    buf_init(&made, max_bytes);
    buf_init(&r.joined, v.raw.len + BEFORE_BYTES);
    arena_init(&r.arena, TRY_TIMES * max_bytes + ARENA_SPARE);
    if (!r.failed) {
        put_value(&r, v, false);
    }
    if (!is_whole(&r)) {
        buf_clear(&made);
        arena_clear(&r.arena);
        r.failed = false;
        r.erased = 0;
        put_skeleton(&r, v);
    }
    if (!is_whole(&r)) {
        buf_clear(&made);
        r.erased = 1;
        put_size(&made, v);
    }
    buf_add(out, buf_slice(&made));
    buf_done(&r.joined);
    arena_clear(&r.arena);
    *ret_erased += r.erased;
}

bool redact_keys(struct json_value v, size_t max_bytes, struct buf *out, uint32_t *ret_erased)
{
    struct redactor r = { .out = out };
    struct payload_iter it = payload_iter(v);
    struct json_value value;
    struct slice key;
    char before = '[';

    arena_init(&r.arena, TRY_TIMES * max_bytes + ARENA_SPARE);
    while (payload_next(&it, &key, &value) && out->len_bytes + key.len + 2 <= max_bytes &&
           is_whole(&r)) {
        buf_add_char(out, before);
        put_string(&r, key);
        before = ',';
    }
    buf_add(out, before == '[' ? (struct slice){ 0 } : SLICE("]"));
    arena_clear(&r.arena);
    *ret_erased += r.erased;
    return is_whole(&r);
}
