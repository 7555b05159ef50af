/*
 * segment: the file that a journal's frames are appended to.
 *
 * Preallocated, so that an append changes no metadata; cut to its length when it
 * is closed. After any failed write or sync it takes no more: what the kernel
 * still has of the lost pages is not to be trusted.
 * Thread: writer.
 */
#pragma once

#include "collector/base/err.h"
#include "collector/journal/format.h"
#include "collector/journal/io.h"

struct segment {
    const struct journal_io *io;
    int fd;             /* -1 while there is none */
    bool failed;        /* a write or sync failed */
    uint64_t first_seq; /* as in its name */
    uint64_t end;       /* offset behind the last frame written */
    uint64_t durable;   /* offset behind the last frame synced */
    uint64_t size;      /* room reserved */
    uint64_t zeroed;    /* offset up to which zeros were written ahead */
};

/* A segment that is none. */
#define SEGMENT_NONE ((struct segment){ .fd = -1 })

/*
 * Make a segment in `dir` with room for size_bytes, its frames beginning with
 * `carried` (whole frames, durable then). It gets its name only when all of it is
 * durable. Errors: ERR_AGAIN when the disk is full; ERR_IO. Nothing is left then.
 */
bool segment_create(const struct journal_io *io, const char *dir, const struct format_head *head,
                    struct slice carried, uint64_t size_bytes, struct segment *ret, struct err *err)
    MUST_CHECK;

/* Where a segment of a predecessor goes on. */
struct segment_place {
    uint64_t first_seq;
    uint64_t durable; /* offset behind what is surely durable */
    uint64_t end;     /* offset behind the last frame to keep */
};

/*
 * Go on in one that a predecessor left. What is kept and not surely durable is
 * written again and synced: after a failed sync the kernel takes pages for clean
 * that never reached the disk, and a sync alone would not write them. On a full disk
 * it has no room for more, and that is no error.
 */
bool segment_reopen(const struct journal_io *io, const char *dir, const struct segment_place *at,
                    uint64_t size_bytes, struct segment *ret, struct err *err) MUST_CHECK;

/* Append whole frames. After a failure the segment is failed. */
bool segment_write(struct segment *s, struct slice frames, struct err *err) MUST_CHECK;

/*
 * Zeros ahead of the frames, for who syncs each commit. Room that is only reserved
 * becomes written room with each first write, and that change of metadata makes a
 * sync twice as slow; so it is made for many commits at once.
 */
void segment_write_ahead(struct segment *s);

/* Make all that was written durable. After a failure the segment is failed. */
bool segment_sync(struct segment *s, struct err *err) MUST_CHECK;

/* The bytes of frames written and not synced yet, as the file has them, into at[] of that size. */
bool segment_read_unsynced(struct segment *s, char *at, struct err *err) MUST_CHECK;

/*
 * Close it, the rest of its room given back; a failed one stays as it is. Accepts
 * SEGMENT_NONE.
 */
void segment_close(struct segment *s);
