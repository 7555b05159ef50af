/*
 * journal: the local append-only log that every record enters first.
 *
 * One role, one journal, one writer thread; any number of readers, in other
 * processes too, which see only what is durable. The bytes on disk are told in
 * format.h. This header is the writer's side; reader.h, verify.h and inflight.h
 * are the others.
 *
 *     STATE/journals/ROLE/               one writer (flock), role.lock
 *         JOURNAL-ID/                    born with an id; a new one after a cut,
 *             00000000000000000001.seg   after a copy, never reused
 *             mark                       mapped: the durable sequence, waitable
 *
 *     submit ─▶ queue ─▶ writer thread: number, hash, frame, pwrite, fdatasync
 *                           └─▶ mark moves ─▶ on_settled of each batch
 *
 * accepted = stored + counted losses: a batch that is accepted is either settled
 * as stored, or counted in a later `gap` record. One that is not settled when the
 * process is killed is no loss as long as somebody waits for it: he gets no answer,
 * and a hook that ran is told as `interrupted` by its slot (inflight.h); where none
 * ran it is as if he had never asked, also when a full quota had held the batch. Who
 * goes on without it says so (journal_owe()); then it is counted, too.
 */
#pragma once

#include <stdint.h>

#include "collector/base/digest.h"
#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/record/types.h"

struct journal; /* opaque */

enum journal_durability {
    JOURNAL_FSYNC, /* settled once fdatasync has returned */
    /* Settled once in the page cache; synced every second, and at close. Readers see what is
     * durable: up to that second later. */
    JOURNAL_WRITE,
};

enum journal_full {
    JOURNAL_FULL_BLOCK,    /* a full quota holds submissions back; they time out as not recorded */
    JOURNAL_FULL_DROP_NEW, /* they are dropped at once, and counted */
};

struct journal_options {
    const char *state_dir; /* STATE */
    const char *role;      /* folder under STATE/journals: collect, ship, serve, cli */
    const char *collector; /* name in gap and checkpoint records */
    enum journal_durability durability;
    enum journal_full when_full;
    uint64_t quota_bytes;        /* of all segments of this role's journals */
    uint64_t segment_bytes;      /* FORMAT_SEGMENT_BYTES; smaller in tests */
    int64_t keep_ms;             /* a segment older than this may be retired */
    int64_t checkpoint_ms;       /* 60 000; shorter in tests */
    size_t queue_bytes;          /* of batches not written yet; over it submissions are refused */
    const struct journal_io *io; /* NULL: the real disk; tests give a simulated one */
    bool rotate_key;             /* sign on with a new key, by a record that both keys sign */
};

/* What one journal found when it was opened. */
struct journal_recovery {
    bool created;       /* there was none */
    uint64_t cut_bytes; /* torn tail that was cut */
    uint64_t damaged;   /* frames quarantined, reported as a gap */
    bool moved;         /* the folder is a copy: a new journal was begun */
    uint64_t missing;   /* frames whose segments are gone, reported as a gap */
    /* The id of the key that signed last, when it is not there any more: a new journal was begun,
     * with another key; else "". */
    char key_lost[17];
};

/*
 * Open this role's journal for writing, recover it, start its writer thread.
 * A full disk is no error, unless a new journal has to be begun: what is submitted
 * is refused as it is later.
 * Errors: ERR_AGAIN when another process has it, or in that case; ERR_IO; ERR_CORRUPT
 * only when not even a new journal can be begun.
 */
bool journal_open(const struct journal_options *o, struct journal **ret,
                  struct journal_recovery *ret_recovery, struct err *err) MUST_CHECK;

/* What may change while a journal is open. */
struct journal_limits {
    enum journal_full when_full;
    uint64_t quota_bytes;
    int64_t keep_ms;
};

/* From now on these hold instead of those that it was opened with. Thread: any. */
void journal_set_limits(struct journal *j, const struct journal_limits *limits);

/* Settle what was submitted, seal, stop the thread. Accepts NULL. Waits at most 5 s. */
void journal_close(struct journal *j);

/* The id of the journal that is written now; it changes after a failed disk recovered by a cut. */
struct id journal_id(struct journal *j);

enum { JOURNAL_BATCH_MAX = 8 }; /* records of one dispatch: two chains, a tool execution, spare */

enum journal_outcome {
    JOURNAL_STORED, /* as durable as asked */
    JOURNAL_LOST,   /* will never be stored; counted in a gap record */
};

/*
 * Records that are stored together, in order, with nothing between them. The
 * caller owns the struct and the bytes until on_settled is called, exactly once,
 * on the writer thread: it must not block, and may free the batch.
 */
struct journal_batch {
    struct {
        enum record_type type;
        struct slice bytes; /* the record's JSON line without newline */
        struct digest
            leaf; /* the journal's: hashed by who submits, while the writer syncs others */
    } records[JOURNAL_BATCH_MAX];
    size_t n;
    void (*on_settled)(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq);
    void *ctx;
    struct journal_batch *next; /* the journal's, like all that follows */
    bool queued;
    bool owed;
    bool staged;
    bool counted;
};

/*
 * Accept a batch. Never blocks. False (err says why) when it is not accepted: the
 * queue is full, the journal is closing, a record is over RECORD_MAX_BYTES; then
 * on_settled is not called and nothing was counted: the caller counts.
 * Thread: any.
 */
bool journal_submit(struct journal *j, struct journal_batch *b, struct err *err) MUST_CHECK;

/*
 * The submitter of b waits no longer, and goes on as if it were stored: should the
 * process be killed before it is, a gap record of the next one counts it, cause
 * `interrupted`. In force when it returns. May come before the
 * submission; must, before on_settled has returned.
 * Thread: any.
 */
void journal_owe(struct journal *j, struct journal_batch *b);

/* Count n records that were lost before they could be submitted; a gap record will tell. */
void journal_count_lost(struct journal *j, uint64_t n, const char *cause);

/* Submit one record and wait until it is settled, at most timeout_ms. For roles that write rarely.
 */
bool journal_append(struct journal *j, enum record_type type, struct slice bytes,
                    int64_t timeout_ms, uint64_t *ret_seq, struct err *err) MUST_CHECK;

/* Numbers for /metrics and `status`. Thread: any. */
struct journal_stats {
    uint64_t accepted_records;
    uint64_t stored_records;
    uint64_t lost_records;
    uint64_t durable_seq;
    uint64_t bytes_on_disk;
    uint64_t syncs;
    uint64_t sync_failures;
    uint64_t queue_bytes;
    bool full;           /* the quota is used up */
    const char *refuses; /* why nothing can be stored now: quota, disk_full, io; NULL: it can */
};
void journal_stats(struct journal *j, struct journal_stats *ret);

/*
 * Retire segments that every sink is past. `past` answers, for a journal id, the
 * lowest sequence that some configured sink still needs (UINT64_MAX: none needs
 * any). Called now and then by the role's timer. Thread: any one.
 */
void journal_retire(struct journal *j, uint64_t (*past)(void *ctx, struct slice journal_id),
                    void *ctx);
