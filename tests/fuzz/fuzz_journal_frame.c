/*
 * Any bytes as a segment's head, a mark, a frame: what is read back is written as
 * the very bytes that were read. The first byte chooses; a frame may have its leaf
 * and its CRC put right first, so that the rest of it is looked at too.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collector/journal/crc32c.h"
#include "collector/journal/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char journal[FORMAT_ID_BYTES] = "0123456789abcde";

static struct slice slice_of(const unsigned char *at, size_t n)
{
    return (struct slice){ .ptr = (const char *)at, .len = n };
}

/* Make a frame of `bytes` sound but for what its head says. */
static void put_right(unsigned char *bytes, size_t n)
{
    uint32_t len = (uint32_t)(n - FORMAT_FRAME_HEAD);
    size_t whole = format_frame_bytes(len);
    struct digest leaf = format_leaf(slice_of(bytes + FORMAT_FRAME_HEAD, len));

    memcpy(bytes + 4, &len, sizeof(len));
    memcpy(bytes + 32, leaf.bytes, DIGEST_BYTES);

    uint32_t crc =
        crc32c(crc32c(0, slice_of(journal, sizeof(journal))), slice_of(bytes + 4, whole - 4));

    memcpy(bytes, &crc, sizeof(crc));
}

static void read_frame(const unsigned char *bytes, size_t n)
{
    struct format_frame f;
    size_t whole;

    (void)format_may_be_frame(slice_of(bytes, n));
    if (format_get_frame(journal, slice_of(bytes, n), &f, &whole) != FORMAT_FRAME) {
        return;
    }
    assert(whole <= n && f.bytes.len <= RECORD_MAX_BYTES);

    unsigned char *again = malloc(whole);

    assert(again);
    format_put_frame(journal, &f, again);
    assert(memcmp(again + 4, bytes + 4, FORMAT_FRAME_HEAD - 4 + f.bytes.len) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }

    size_t n = size - 1;
    unsigned char *bytes = calloc(1, n + 8);
    struct format_head head;
    struct format_mark mark;

    assert(bytes);
    memcpy(bytes, data + 1, n);
    if (data[0] % 4 == 0 && n > FORMAT_FRAME_HEAD && n < FORMAT_FRAME_MAX) {
        put_right(bytes, n);
        read_frame(bytes, format_frame_bytes(n - FORMAT_FRAME_HEAD));
    } else if (data[0] % 4 == 1) {
        read_frame(bytes, n);
    } else if (data[0] % 4 == 2 && format_get_head(slice_of(bytes, n), &head)) {
        assert(head.checkpoint.len <= FORMAT_CHECKPOINT_MAX);
    } else {
        (void)!format_get_mark(slice_of(bytes, n), &mark);
    }
    free(bytes);
    return 0;
}
