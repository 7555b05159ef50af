/*
 * stream: one output of a child, kept up to a limit, or only its end, or not.
 *
 * What is kept comes out of the shared budget and is given back with the result.
 */
#pragma once

#include "collector/process/process.h"

struct stream {
    struct buf *kept;      /* the result's */
    uint64_t *total_bytes; /* the result's */
    size_t limit_bytes;    /* 0: no limit */
    size_t tail_bytes;     /* without a limit: how much of the end is kept */
    struct budget *budget; /* NULL: unlimited */
    size_t *budget_bytes;  /* the result's: taken from the budget so far */
    bool over;             /* it passed its limit: what comes now is counted only */
};

enum stream_state {
    STREAM_MORE,    /* nothing to read now */
    STREAM_END,     /* every writer has closed it */
    STREAM_LIMIT,   /* it has just passed its limit */
    STREAM_NO_ROOM, /* the budget has just become empty */
};

/*
 * Read what is there, at most STREAM_TURN_BYTES, so that a child that writes
 * without pause does not hold up the others. fd need not be non-blocking, but
 * poll(2) must have said that there is something.
 */
enum { STREAM_TURN_BYTES = 64 * 1024 };
enum stream_state stream_read(struct stream *s, int fd);

/* Cut what is kept to the tail; once, at the end. */
void stream_finish(struct stream *s);
