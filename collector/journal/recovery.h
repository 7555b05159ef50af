/*
 * recovery: what the frames of a journal say of how it ended.
 *
 * Only the frames since the last checkpoint are read: those before it were
 * complete when the segment after them was begun. What may be damaged there,
 * readers and verify find.
 */
#pragma once

#include "collector/journal/mark.h"
#include "collector/journal/sealing.h"
#include "collector/journal/walk.h"

struct recovery {
    uint64_t last_seq;    /* of the last valid frame that is kept; readers may go so far */
    uint64_t segment;     /* first sequence of the last segment */
    uint64_t end;         /* offset in it behind that frame: where to cut, or to go on */
    uint64_t durable_end; /* offset in it behind the last frame that the mark calls durable */
    uint64_t cut_bytes;   /* of a torn tail behind it; 0: there is none */
    uint64_t damaged;     /* durable frames that are not valid any more */
    bool unsound;         /* a segment's head is damaged: it cannot be sealed on */
    uint64_t highest_seq; /* ever durable, as far as anything tells; last_seq at least */
};

/*
 * Read the journal in `dir`. `mark` may be NULL when it says nothing. Each
 * valid frame that is kept goes to `sealing`, unless it is NULL. Nothing is changed.
 * Errors: ERR_NOT_FOUND when there is no segment; ERR_IO.
 */
bool recovery_read(const struct journal_io *io, const char *dir, struct slice journal_id,
                   const struct mark *mark, struct sealing *sealing, struct recovery *ret,
                   struct err *err) MUST_CHECK;
