/*
 * journal_impl: what a journal is inside, for the files that make it up.
 *
 *     journal.c   the public side: submit, wait, count; the thread
 *     append.c    one record, waited for
 *     open.c      take the lock, open, close
 *     adopt.c     find the journal in use; go on with it, or follow it by another
 *     birth.c     begin a journal; begin its successor
 *     recovery.c  what an old journal's frames say of how it ended
 *     writer.c    one round: take what is queued, store it, settle it
 *     room.c      the segment to write to: rotation, quota, a failed disk
 *     retire.c    remove what nobody needs any more
 *
 * The writer's fields need no lock: all but journal.c run on the writer thread,
 * or before it starts and after it has ended. A test drives the same rounds
 * without a thread: open_core(), writer_round(), close_core().
 */
#pragma once

#include <pthread.h>

#include "collector/journal/folder.h"
#include "collector/journal/journal.h"
#include "collector/journal/losses.h"
#include "collector/journal/mark.h"
#include "collector/journal/sealing.h"
#include "collector/journal/segment.h"

enum {
    /* Room that records leave at a segment's end: a checkpoint, and every gap there can be. */
    RESERVE_BYTES = 16 * 1024,
    /* One commit: a largest batch at least, and gaps. Only what is used of it takes memory. */
    GROUP_BYTES = JOURNAL_BATCH_MAX * FORMAT_FRAME_MAX + RESERVE_BYTES,
    RETRY_MS = 100,  /* between tries while the disk gives no room */
    SYNC_MS = 1000,  /* between syncs, durability write */
    CLOSE_MS = 5000, /* journal_close() waits no longer */
};

struct journal {
    /* Limits of `o` that may change meanwhile: these count. */
    _Atomic enum journal_full when_full;
    _Atomic uint64_t quota_bytes;
    _Atomic int64_t keep_ms;

    /* Set once. */
    struct journal_options o;
    const struct journal_io *io;
    struct folder_path role_dir;
    int lock_fd;
    unsigned char machine[FORMAT_ID_BYTES];
    unsigned char boot[FORMAT_ID_BYTES];

    /* The writer's. */
    struct folder_path dir; /* of the journal in use */
    unsigned char id_bytes[FORMAT_ID_BYTES];
    uint64_t generation;
    struct mark mark;
    struct segment segment;
    struct sealing *sealing;
    uint64_t next_seq;    /* of the next frame that is written */
    uint64_t durable_seq; /* the mark's */
    char *group;          /* owned, GROUP_BYTES: the frames of one commit */
    size_t group_len;
    size_t unsealed_len; /* of the group: accepted, and not told to `sealing` yet */
    uint64_t group_seq;  /* behind its last frame */
    struct loss group_gaps[LOSSES_CAUSES];
    size_t n_group_gaps;
    struct buf scratch;          /* a gap or checkpoint record being made */
    struct journal_batch *taken; /* off the queue, not settled */
    size_t n_settled;            /* batches of the last round */
    int64_t checkpoint_at_ms;    /* monotonic: when the next is due */
    int64_t sync_at_ms;
    int64_t retry_at_ms; /* 0: the disk gave room when it was last asked */

    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the writer; and close, at the end */
    struct id id;
    struct journal_batch *first; /* of the queue */
    struct journal_batch *last;
    struct losses losses;
    bool losses_unsaved;        /* counted by a caller, not in the mark yet */
    struct journal_stats stats; /* queue_bytes included */
    uint64_t lost_before;       /* it began to refuse: of losses.total */
    bool waiting;               /* the writer sleeps on `wake` */
    bool closing;
    bool ended; /* the thread is about to return */

    pthread_t thread;
};

/* open.c: journal_open() and journal_close() but for the thread. */
bool open_core(const struct journal_options *o, struct journal **ret,
               struct journal_recovery *ret_recovery, struct err *err) MUST_CHECK;
void close_core(struct journal *j); /* settles what is left, seals, frees nothing */
void free_core(struct journal *j);  /* accepts NULL and a half-opened one */

/*
 * birth.c: begin a new journal, the successor of the one that j has (if any), which
 * is ended. Its first frames are the gap records of j->losses. On failure j is as
 * it was.
 */
bool birth_begin(struct journal *j, struct err *err) MUST_CHECK;

/* birth.c: the sealing of the journal `id`; release with sealing_free(). */
bool birth_seal(struct journal *j, const struct id *id, struct sealing **ret, struct err *err)
    MUST_CHECK;

/* writer.c: one round; true when something was settled. When the next is due, monotonic. */
bool writer_round(struct journal *j);
int64_t writer_due_ms(const struct journal *j);

/* writer.c: after the last round, log how many records are lost to a disk that refuses. */
void writer_say_lost(struct journal *j);

/* writer.c: write and sync a checkpoint of all so far; false: the segment failed. */
bool writer_checkpoint(struct journal *j, struct err *err) MUST_CHECK;

/*
 * room.c: a segment that takes `bytes` more. Errors: ERR_AGAIN when quota or disk
 * is full, ERR_IO; nothing is lost by either.
 */
bool room_make(struct journal *j, uint64_t bytes, struct err *err) MUST_CHECK;
