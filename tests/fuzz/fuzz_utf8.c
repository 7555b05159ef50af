/* Any bytes: a JSON string made of them is JSON, and a prefix is a prefix. */
#include <stdint.h>
#include <stdlib.h>

#include "collector/base/buf.h"
#include "collector/base/utf8.h"
#include "collector/record/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { .ptr = (const char *)data, .len = size };
    struct slice half = utf8_prefix(text, utf8_count(text) / 2);
    struct json_value value;
    struct err err;
    struct buf b;

    buf_init(&b, 8 * size + 2);
    buf_add_json_string(&b, text);
    if (!buf_ok(&b) || !payload_check(buf_slice(&b), &value, &err) || half.len > size) {
        abort();
    }
    buf_done(&b);
    return 0;
}
