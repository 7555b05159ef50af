/* Redaction of any bytes: it stays inside them, and its JSON is JSON within the limit. */
#include <assert.h>

#include "collector/recorder/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 512 };

static void check_text(struct slice text)
{
    struct arena a;
    struct slice clean;
    uint32_t erased = 0;

    arena_init(&a, 16 * 1024 * 1024);
    assert(redact_text(text, &a, &clean, &erased));
    assert((erased == 0) == (clean.ptr == text.ptr));
    arena_clear(&a);
}

static void check_json(struct slice text)
{
    struct json_value v;
    struct json_value clean;
    struct err err;
    struct buf out;
    uint32_t erased = 0;

    if (!payload_check(text, &v, &err)) {
        return;
    }
    buf_init(&out, LIMIT);
    redact_json(v, LIMIT, &out, &erased);
    assert(buf_ok(&out));
    assert(payload_check(buf_slice(&out), &clean, &err));
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { .ptr = (const char *)data, .len = size };

    check_text(text);
    check_json(text);
    return 0;
}
