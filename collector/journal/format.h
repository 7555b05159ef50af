/*
 * format: every byte of a journal on disk.
 *
 *     STATE/journals/ROLE/
 *         role.lock                      empty; flock(2)ed by the one writer
 *         JOURNAL-ID/                    36 characters of a UUIDv7
 *             mark                       FORMAT_MARK_BYTES, mapped
 *             SEQ.seg                    20 decimal digits: its first sequence
 *         JOURNAL-ID.new/, SEQ.seg.new   not born yet; removed by the next writer
 *
 * Numbers are little-endian. CRC is CRC-32C (Castagnoli). Sequences begin at 1
 * and rise by one over all segments of a journal; none is used twice for
 * different bytes, so whatever cannot be continued (a cut, a copied folder)
 * ends the journal, and another one with a higher generation follows it.
 *
 * Segment head, FORMAT_HEAD_BYTES, written and synced before the file gets its
 * name, never changed:
 *
 *     at  bytes
 *      0   8  "HTJSEG1\n"
 *      8   4  CRC of bytes 12..FORMAT_HEAD_BYTES
 *     12   4  version, 1
 *     16  16  journal id
 *     32   8  generation of the journal: 1, 2, …; the highest is in use
 *     40   8  first sequence, as in the name
 *     48   8  sequence that was durable when it was made: first sequence - 1
 *     56   8  time, microseconds since 1970 UTC
 *     64  16  boot id of the machine
 *     80   8  sequence of the last checkpoint before it; 0: there is none
 *     88   4  length of that checkpoint's record, at most FORMAT_CHECKPOINT_MAX
 *     92   4  0
 *     96   n  that checkpoint's record, then zeros
 *
 * Frame, FORMAT_FRAME_HEAD bytes, the record, zeros up to a multiple of 8:
 *
 *      0   4  CRC of the journal id's 16 bytes, then of all of the frame from
 *             byte 4 on, zeros at its end included
 *      4   4  length of the record, 1..RECORD_MAX_BYTES
 *      8   8  sequence
 *     16   1  type, enum record_type
 *     17   1  flags: 1 = first frame of a commit; other bits 0
 *     18   6  0
 *     24   8  the sequence that was durable before this commit, in its first
 *             frame; else 0
 *     32  32  leaf, SHA-256(0x00 || record)
 *     64   n  record
 *
 * A frame is valid when all of that holds and its sequence is the one expected.
 * Frames stand without room between them. Behind the last one there are zeros
 * (preallocated), or the file ends. The first bad frame is
 *   - void, when the journal's next segment begins at its sequence: the
 *     segment's disk had failed, and what was not durable is in the next one;
 *   - damage, when it is not past the highest durable sequence that any valid
 *     frame, any later segment or the mark tells of;
 *   - else a torn tail: nobody was told of it, and it is cut.
 *
 * A checkpoint record covers the frames from the checkpoint before it (that frame
 * included; the first: from sequence 1) to the frame before itself, so that each
 * frame is a leaf of exactly one tree.
 *
 * Mark, FORMAT_MARK_BYTES, mapped and shared:
 *
 *      0   8  "HTJMARK1"
 *      8   4  CRC of bytes 12..104
 *     12   4  version, 1
 *     16  16  journal id
 *     32   8  generation
 *     40   8  device, and
 *     48   8  inode of the journal's folder, and
 *     56  16  machine id: a folder that has others is a copy
 *     72  16  boot id when the writer opened it
 *     88   4  durability: 1 fsync, 2 write
 *     92  12  0
 *   then words that change while it is mapped, each written at once:
 *    512   8  durable sequence
 *    520   8  the same, all bits turned: a torn or flipped word is not believed
 *    528   4  rises with every change above; futex(2) word to wait on
 *    532   4  state: FORMAT_MARK_OPEN, _CLOSED, _ENDED
 *    536   8  first sequence of the segment that the durable sequence is in
 *    544   8  from this sequence on the last segment is void: its disk failed,
 *             and what stands there was told to be lost; 0: nothing is
 *    552   8  the same, all bits turned
 *    560   8  retention has removed what is before this sequence; written before it
 *             does: a segment that is missing behind it is a loss. 1: nothing was
 *    568   8  the same, all bits turned
 *    576  96  losses, and
 *    672  96  again: each change is written into the older one
 *   each of which is, valid when its CRC holds:
 *      0   8  turn: the higher one counts
 *      8   8  records lost and not yet told by a gap record
 *     16   8  and 24 8: first and last time of these losses, microseconds
 *     32  16  their cause, NUL-padded
 *     48   8  sequence of the gap record that tells of
 *     56   8  this many of them, or 0: decides after a crash if it was stored
 *     64   8  records not stored whose callers were told to go on: lost with the process
 *     72   8  sequence from which on the commit that is being written has
 *     80   8  this many of them, the oldest first, or 0: as above
 *     88   4  CRC of bytes 0..88
 *     92   4  0
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/digest.h"
#include "collector/base/slice.h"
#include "collector/record/record.h"

enum {
    FORMAT_VERSION = 1,
    FORMAT_ID_BYTES = 16,
    FORMAT_HEAD_BYTES = 4096, /* one page: frames begin on the next */
    FORMAT_CHECKPOINT_AT = 96,
    FORMAT_CHECKPOINT_MAX = FORMAT_HEAD_BYTES - FORMAT_CHECKPOINT_AT,
    FORMAT_FRAME_HEAD = 64,
    FORMAT_FRAME_MAX = FORMAT_FRAME_HEAD + RECORD_MAX_BYTES, /* a multiple of 8 */
    FORMAT_MARK_BYTES = 4096,
    FORMAT_MARK_DYNAMIC = 512, /* where the changing words of the mark begin */
    FORMAT_MARK_LOSSES = 576,
    FORMAT_SEGMENT_BYTES = 64 * 1024 * 1024,
    FORMAT_DURABILITY_FSYNC = 1, /* of a mark */
    FORMAT_DURABILITY_WRITE = 2,
    FORMAT_NAME_SIZE = 25, /* "00000000000000000001.seg" and a NUL */
};

/* Words that a flipped bit does not turn into each other. */
#define FORMAT_MARK_OPEN UINT32_C(0x4e45504f)   /* "OPEN": a writer has it, or died with it */
#define FORMAT_MARK_CLOSED UINT32_C(0x44534c43) /* "CLSD": settled, sealed, closed */
#define FORMAT_MARK_ENDED UINT32_C(0x44444e45)  /* "ENDD": followed by another journal */

/* No journal ever comes so far: a sequence above it is garbage. */
#define FORMAT_SEQ_MAX (UINT64_C(1) << 48)

struct format_head {
    unsigned char journal[FORMAT_ID_BYTES];
    uint64_t generation;
    uint64_t first_seq;
    int64_t time_us;
    unsigned char boot[FORMAT_ID_BYTES];
    uint64_t checkpoint_seq; /* 0: none */
    struct slice checkpoint; /* into the bytes it was read from */
};

struct format_frame {
    uint64_t seq;
    enum record_type type;
    bool starts_commit;
    uint64_t durable_before; /* where starts_commit; else 0 */
    struct digest leaf;
    struct slice bytes; /* into the bytes it was read from */
};

struct format_mark {
    unsigned char journal[FORMAT_ID_BYTES];
    uint64_t generation;
    uint64_t device;
    uint64_t inode;
    unsigned char machine[FORMAT_ID_BYTES];
    unsigned char boot[FORMAT_ID_BYTES];
    uint32_t durability;
};

/* Bytes that a record of n bytes takes, head and zeros included. */
size_t format_frame_bytes(size_t n);

/* SHA-256(0x00 || record), the leaf of RFC 9162. */
struct digest format_leaf(struct slice record);

/* Write a head, a frame, a mark's static part; the sizes are those above. */
void format_put_head(const struct format_head *h, unsigned char *ret);
void format_put_frame(const unsigned char journal[FORMAT_ID_BYTES], const struct format_frame *f,
                      unsigned char *ret);
void format_put_mark(const struct format_mark *m, unsigned char *ret);

/* Read them back; false when they are not valid. */
bool format_get_head(struct slice bytes, struct format_head *ret) MUST_CHECK;
bool format_get_mark(struct slice bytes, struct format_mark *ret) MUST_CHECK;

/* What stands at the beginning of some bytes of a segment. */
enum format_at {
    FORMAT_FRAME, /* a valid frame; its sequence is for the caller to check */
    FORMAT_SHORT, /* it may be one: more bytes are needed */
    FORMAT_EMPTY, /* nothing was written here: a head of zeros */
    FORMAT_BAD,
};

/*
 * Read the frame at the beginning of `bytes`. *ret_bytes is the size of the
 * whole frame, also with FORMAT_SHORT where its head was there.
 */
enum format_at format_get_frame(const unsigned char journal[FORMAT_ID_BYTES], struct slice bytes,
                                struct format_frame *ret, size_t *ret_bytes);

/* Read back one's own frame, without any check. */
void format_peek_frame(struct slice bytes, struct format_frame *ret, size_t *ret_bytes);

/* A quick look, to pass over what is surely none: true where a frame may begin. */
bool format_may_be_frame(struct slice bytes);

/* "00000000000000000001.seg", and its inverse. */
void format_segment_name(uint64_t first_seq, char ret_name[FORMAT_NAME_SIZE]);
bool format_segment_seq(const char *name, uint64_t *ret_first_seq) MUST_CHECK;
