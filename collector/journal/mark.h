/*
 * mark: the small shared file that tells readers how far a journal is durable.
 *
 * The writer maps it and moves it after each fdatasync; readers in any process
 * map it read-only, and wait on it. It outlives kill -9 of the writer. Only what
 * is already true is ever stored, so a mark that a power loss set back is merely
 * late. Layout: format.h.
 * Thread: the writer's side belongs to the writer, but mark_set_losses(): whoever
 * holds the journal's lock; the rest any.
 */
#pragma once

#include "collector/base/err.h"
#include "collector/journal/format.h"
#include "collector/journal/io.h"

struct mark {
    const struct journal_io *io;
    unsigned char *at; /* mapped, FORMAT_MARK_BYTES; NULL while closed */
    int fd;
    /* What a writer has put there: somebody may cut the file, and a store behind its end kills. */
    unsigned char *own; /* owned; NULL: a reader's */
};

/* Losses that no gap record tells of yet, kept here so that kill -9 loses no count. */
struct mark_losses {
    uint64_t count;
    int64_t first_us;
    int64_t last_us;
    char cause[16];   /* a word of small letters and '_' */
    uint64_t gap_seq; /* where a gap record is being written that tells of gap_count */
    uint64_t gap_count;
    uint64_t owed;     /* records that callers take for stored and that are not yet… */
    uint64_t owed_seq; /* …of which owed_count are being written, from this sequence on */
    uint64_t owed_count;
};

/* Make the mark of a new journal in `dir`: durable 0, open; synced and mapped. */
bool mark_create(const struct journal_io *io, const char *dir, const struct format_mark *m,
                 struct mark *ret, struct err *err) MUST_CHECK;

/*
 * Map the mark in `dir`. Errors: ERR_NOT_FOUND; ERR_CORRUPT when it is too short; ERR_IO.
 * A file that is cut while it is mapped reads as a mark that knows nothing; a writer
 * makes it whole again with its next change.
 */
bool mark_open(const struct journal_io *io, const char *dir, bool writable, struct mark *ret,
               struct err *err) MUST_CHECK;
void mark_close(struct mark *m); /* accepts a closed one */

/* What does not change while a writer has it; false when its bytes are damaged. */
bool mark_get(const struct mark *m, struct format_mark *ret) MUST_CHECK;
void mark_put(struct mark *m, const struct format_mark *value);

/* Whether it is to be believed at all: its fixed part is whole, and its sequence a possible one. */
bool mark_sound(const struct mark *m);

/* The durable sequence: never more than is true, whatever bit was flipped. 0 when it is none. */
uint64_t mark_durable(const struct mark *m);

/* Move it, wake who waits. */
void mark_move(struct mark *m, uint64_t durable_seq, uint64_t segment_first);

/* FORMAT_MARK_OPEN, _CLOSED, _ENDED; anything else is damage. */
uint32_t mark_state(const struct mark *m);
void mark_set_state(struct mark *m, uint32_t state);

/* The first void sequence of the last segment; 0: none. */
uint64_t mark_void(const struct mark *m);
void mark_set_void(struct mark *m, uint64_t seq);

/*
 * The first sequence that retention has left: what is older was removed with a
 * purpose, and what is missing from here on is lost. 0: it does not say.
 */
uint64_t mark_retired(const struct mark *m);
void mark_set_retired(struct mark *m, uint64_t seq);

/* The losses not told yet; zeros where their check does not hold. */
void mark_get_losses(const struct mark *m, struct mark_losses *ret);
void mark_set_losses(struct mark *m, const struct mark_losses *l);

/* Push it to disk: at open and close; between them a late mark is harmless. */
bool mark_sync(struct mark *m, struct err *err) MUST_CHECK;

/*
 * Wait until the durable sequence is not `seen` or the state is not seen_state, at
 * most timeout_ms. False when nothing changed.
 */
bool mark_wait(const struct mark *m, uint64_t seen, uint32_t seen_state, int64_t timeout_ms);
