/*
 * scan: the frames of one segment, in order, as they lie there.
 *
 * It knows nothing of what is durable, nor which sequence should come; walk.h
 * does. Readers, recovery and verify all go through here.
 */
#pragma once

#include "collector/base/err.h"
#include "collector/journal/format.h"
#include "collector/journal/io.h"

struct scan {
    const struct journal_io *io;
    int fd; /* -1 while closed */
    unsigned char journal[FORMAT_ID_BYTES];
    uint64_t offset; /* of the next frame in the file */
    uint64_t behind; /* offset behind the frame that was read last */
    char *window;    /* owned: bytes of the file from window_at on */
    uint64_t window_at;
    size_t window_len;
    size_t window_cap;
};

/* A scan that is closed. */
#define SCAN_NONE ((struct scan){ .fd = -1 })

/* Open the segment of `dir`; it stands before its first frame. Errors: ERR_NOT_FOUND, ERR_IO. */
bool scan_open(const struct journal_io *io, const char *dir,
               const unsigned char journal[FORMAT_ID_BYTES], uint64_t first_seq, struct scan *ret,
               struct err *err) MUST_CHECK;
void scan_close(struct scan *s); /* accepts a closed one; for CLEANUP too */

/* The segment's head; its checkpoint is valid until the next call. False when it is damaged. */
bool scan_head(struct scan *s, struct format_head *ret) MUST_CHECK;

enum scan_at {
    SCAN_FRAME, /* *ret is filled, valid until the next call; the scan stands behind it */
    SCAN_END,   /* nothing was written here, or the file ends */
    SCAN_BAD,   /* something else; the scan stands before it */
    SCAN_ERROR, /* the disk does not give the bytes: err */
};

/* The next frame. */
enum scan_at scan_next(struct scan *s, struct format_frame *ret, struct err *err) MUST_CHECK;

/* Forget what was read ahead: the file has grown. */
void scan_refresh(struct scan *s);

/*
 * From a bad place, move to the next valid frame of the sequence at_least or above.
 * False: there is none in this segment, and the scan stays.
 */
bool scan_resync(struct scan *s, uint64_t at_least);

/* True when there is nothing but zeros from the scan's place on. */
bool scan_only_zeros(struct scan *s);
