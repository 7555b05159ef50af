#include "collector/journal/format.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "collector/journal/crc32c.h"

static_assert(RECORD_HOOK_EVALUATION == 1 && RECORD_TOOL_EXECUTION == 2 &&
                  RECORD_HOOK_REGISTRY == 3 && RECORD_GAP == 4 && RECORD_CHECKPOINT == 5 &&
                  RECORD_ADMIN == 6,
              "the numbers of types are on disk: new ones go to the end");
static_assert(FORMAT_FRAME_MAX % 8 == 0, "a largest frame needs no zeros");

static const char head_magic[] = "HTJSEG1\n";
static const char mark_magic[] = "HTJMARK1";

enum {
    MAGIC_BYTES = 8,
    CRC_FROM = 12,     /* of a head and of a mark: behind the CRC */
    MARK_CRC_TO = 104, /* of a mark: the end of its static part */
    FRAME_CRC_FROM = 4,
    FLAG_STARTS_COMMIT = 1,
};

static void put32(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (unsigned char)(v >> 8 * i);
    }
}

static void put64(unsigned char *at, uint64_t v)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (unsigned char)(v >> 8 * i);
    }
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get64(const unsigned char *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

static struct slice run(const unsigned char *from, size_t n)
{
    return (struct slice){ .ptr = (const char *)from, .len = n };
}

static bool is_zero(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i] != 0) {
            return false;
        }
    }
    return true;
}

size_t format_frame_bytes(size_t n)
{
    return (FORMAT_FRAME_HEAD + n + 7) & ~(size_t)7;
}

struct digest format_leaf(struct slice record)
{
    const struct slice parts[] = { { .ptr = "", .len = 1 }, record };

    return digest_of_parts(parts, 2);
}

void format_put_head(const struct format_head *h, unsigned char *ret)
{
    memset(ret, 0, FORMAT_HEAD_BYTES);
    memcpy(ret, head_magic, MAGIC_BYTES);
    put32(ret + 12, FORMAT_VERSION);
    memcpy(ret + 16, h->journal, FORMAT_ID_BYTES);
    put64(ret + 32, h->generation);
    put64(ret + 40, h->first_seq);
    put64(ret + 48, h->first_seq - 1);
    put64(ret + 56, (uint64_t)h->time_us);
    memcpy(ret + 64, h->boot, FORMAT_ID_BYTES);
    if (h->checkpoint.len > 0 && h->checkpoint.len <= FORMAT_CHECKPOINT_MAX) {
        put64(ret + 80, h->checkpoint_seq);
        put32(ret + 88, (uint32_t)h->checkpoint.len);
        memcpy(ret + FORMAT_CHECKPOINT_AT, h->checkpoint.ptr, h->checkpoint.len);
    }
    put32(ret + 8, crc32c(0, run(ret + CRC_FROM, FORMAT_HEAD_BYTES - CRC_FROM)));
}

bool format_get_head(struct slice bytes, struct format_head *ret)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;

    if (bytes.len < FORMAT_HEAD_BYTES || memcmp(at, head_magic, MAGIC_BYTES) != 0 ||
        get32(at + 8) != crc32c(0, run(at + CRC_FROM, FORMAT_HEAD_BYTES - CRC_FROM)) ||
        get32(at + 12) != FORMAT_VERSION || get32(at + 88) > FORMAT_CHECKPOINT_MAX) {
        return false;
    }
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->journal, at + 16, FORMAT_ID_BYTES);
    ret->generation = get64(at + 32);
    ret->first_seq = get64(at + 40);
    ret->time_us = (int64_t)get64(at + 56);
    memcpy(ret->boot, at + 64, FORMAT_ID_BYTES);
    ret->checkpoint_seq = get64(at + 80);
    ret->checkpoint = run(at + FORMAT_CHECKPOINT_AT, get32(at + 88));
    return true;
}

static uint32_t frame_crc(const unsigned char journal[FORMAT_ID_BYTES], const unsigned char *at,
                          size_t n)
{
    return crc32c(crc32c(0, run(journal, FORMAT_ID_BYTES)),
                  run(at + FRAME_CRC_FROM, n - FRAME_CRC_FROM));
}

void format_put_frame(const unsigned char journal[FORMAT_ID_BYTES], const struct format_frame *f,
                      unsigned char *ret)
{
    size_t n = format_frame_bytes(f->bytes.len);

    memset(ret, 0, FORMAT_FRAME_HEAD);
    put32(ret + 4, (uint32_t)f->bytes.len);
    put64(ret + 8, f->seq);
    ret[16] = (unsigned char)f->type;
    ret[17] = f->starts_commit ? FLAG_STARTS_COMMIT : 0;
    put64(ret + 24, f->starts_commit ? f->durable_before : 0);
    memcpy(ret + 32, f->leaf.bytes, DIGEST_BYTES);
    memcpy(ret + FORMAT_FRAME_HEAD, f->bytes.ptr, f->bytes.len);
    memset(ret + FORMAT_FRAME_HEAD + f->bytes.len, 0, n - FORMAT_FRAME_HEAD - f->bytes.len);
    put32(ret, frame_crc(journal, ret, n));
}

/* What the CRC cannot say of a frame: that it means something. */
static bool is_sound(const unsigned char *at, const struct format_frame *f)
{
    struct digest leaf = format_leaf(f->bytes);

    return at[16] > RECORD_NONE && at[16] < RECORD_TYPE_COUNT &&
           (at[17] & ~FLAG_STARTS_COMMIT) == 0 && is_zero(at + 18, 6) && f->seq > 0 &&
           (f->starts_commit ? f->durable_before < f->seq : f->durable_before == 0) &&
           memcmp(leaf.bytes, f->leaf.bytes, DIGEST_BYTES) == 0;
}

void format_peek_frame(struct slice bytes, struct format_frame *ret, size_t *ret_bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    uint32_t len = get32(at + 4);

    *ret_bytes = format_frame_bytes(len);
    *ret = (struct format_frame){
        .seq = get64(at + 8),
        .type = (enum record_type)at[16],
        .starts_commit = at[17] & FLAG_STARTS_COMMIT,
        .durable_before = get64(at + 24),
        .bytes = run(at + FORMAT_FRAME_HEAD, len),
    };
    memcpy(ret->leaf.bytes, at + 32, DIGEST_BYTES);
}

enum format_at format_get_frame(const unsigned char journal[FORMAT_ID_BYTES], struct slice bytes,
                                struct format_frame *ret, size_t *ret_bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;

    *ret_bytes = FORMAT_FRAME_HEAD;
    if (bytes.len < FORMAT_FRAME_HEAD) {
        return FORMAT_SHORT;
    }

    uint32_t len = get32(at + 4);
    struct format_frame f;

    if (len == 0 || len > RECORD_MAX_BYTES) {
        return is_zero(at, FORMAT_FRAME_HEAD) ? FORMAT_EMPTY : FORMAT_BAD;
    }
    *ret_bytes = format_frame_bytes(len);
    if (bytes.len < *ret_bytes) {
        return FORMAT_SHORT;
    }
    if (get32(at) != frame_crc(journal, at, *ret_bytes)) {
        return FORMAT_BAD;
    }
    format_peek_frame(bytes, &f, ret_bytes);
    if (!is_sound(at, &f)) {
        return FORMAT_BAD;
    }
    *ret = f;
    return FORMAT_FRAME;
}

bool format_may_be_frame(struct slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;

    return bytes.len >= FORMAT_FRAME_HEAD && at[16] > RECORD_NONE && at[16] < RECORD_TYPE_COUNT &&
           (at[17] & ~FLAG_STARTS_COMMIT) == 0 && is_zero(at + 18, 6) && get32(at + 4) > 0 &&
           get32(at + 4) <= RECORD_MAX_BYTES;
}

void format_put_mark(const struct format_mark *m, unsigned char *ret)
{
    memset(ret, 0, MARK_CRC_TO);
    memcpy(ret, mark_magic, MAGIC_BYTES);
    put32(ret + 12, FORMAT_VERSION);
    memcpy(ret + 16, m->journal, FORMAT_ID_BYTES);
    put64(ret + 32, m->generation);
    put64(ret + 40, m->device);
    put64(ret + 48, m->inode);
    memcpy(ret + 56, m->machine, FORMAT_ID_BYTES);
    memcpy(ret + 72, m->boot, FORMAT_ID_BYTES);
    put32(ret + 88, m->durability);
    put32(ret + 8, crc32c(0, run(ret + CRC_FROM, MARK_CRC_TO - CRC_FROM)));
}

bool format_get_mark(struct slice bytes, struct format_mark *ret)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;

    if (bytes.len < MARK_CRC_TO || memcmp(at, mark_magic, MAGIC_BYTES) != 0 ||
        get32(at + 8) != crc32c(0, run(at + CRC_FROM, MARK_CRC_TO - CRC_FROM)) ||
        get32(at + 12) != FORMAT_VERSION) {
        return false;
    }
    memcpy(ret->journal, at + 16, FORMAT_ID_BYTES);
    ret->generation = get64(at + 32);
    ret->device = get64(at + 40);
    ret->inode = get64(at + 48);
    memcpy(ret->machine, at + 56, FORMAT_ID_BYTES);
    memcpy(ret->boot, at + 72, FORMAT_ID_BYTES);
    ret->durability = get32(at + 88);
    return true;
}

void format_segment_name(uint64_t first_seq, char ret_name[FORMAT_NAME_SIZE])
{
    (void)snprintf(ret_name, FORMAT_NAME_SIZE, "%020llu.seg", (unsigned long long)first_seq);
}

bool format_segment_seq(const char *name, uint64_t *ret_first_seq)
{
    struct slice digits = slice_from_cstr(name);

    if (digits.len != FORMAT_NAME_SIZE - 1 || strcmp(name + 20, ".seg") != 0) {
        return false;
    }
    digits.len = 20;
    return slice_to_u64(digits, ret_first_seq) && *ret_first_seq > 0;
}
