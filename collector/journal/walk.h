/*
 * walk: the frames of a journal, in order, over all its segments.
 *
 * Steps from segment to segment, passes over what is void, and tells damage as a
 * range of sequences. It does not know what is durable: the caller does.
 */
#pragma once

#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/journal/folder.h"
#include "collector/journal/scan.h"

struct walk {
    const struct journal_io *io;
    struct folder_path dir;
    unsigned char journal[FORMAT_ID_BYTES];
    uint64_t next_seq; /* of the frame that comes next */
    uint64_t segment;  /* first sequence of the segment that is open */
    uint64_t limit;    /* first sequence of the segment behind it; UINT64_MAX: it is the last */
    struct scan scan;
};

/* A walk that is closed. */
#define WALK_NONE ((struct walk){ .scan = { .fd = -1 } })

/*
 * Stand before from_seq, or before the first frame there is when that is later:
 * next_seq tells. Errors: ERR_NOT_FOUND when the journal has no segment; ERR_IO.
 */
bool walk_open(const struct journal_io *io, const char *dir, struct slice journal_id,
               uint64_t from_seq, struct walk *ret, struct err *err) MUST_CHECK;
void walk_close(struct walk *w); /* accepts a closed one; for CLEANUP too */

enum walk_at {
    WALK_FRAME,   /* *ret is filled, valid until the next call; next_seq is behind it */
    WALK_END,     /* no more was written, up to now */
    WALK_DAMAGED, /* no valid frame of next_seq: see walk_skip() */
    WALK_ERROR,   /* err: a system call failed */
};

/* The next frame. */
enum walk_at walk_next(struct walk *w, struct format_frame *ret, struct err *err) MUST_CHECK;

/* Look again for segments and frames: the journal has grown. */
bool walk_refresh(struct walk *w, struct err *err) MUST_CHECK;

/*
 * After WALK_DAMAGED: stand before the next valid frame, whose sequence is
 * next_seq then. False when there is none; the walk stays where it was.
 */
bool walk_skip(struct walk *w, struct err *err) MUST_CHECK;
