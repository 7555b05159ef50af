/*
 * loader_mark: how far a loader has read one journal in one partition of a topic.
 *
 * A topic's partition holds a journal's records in order, so what is above the last
 * sequence is new, without a look. What is not needs one (loader_look.h). The partition's
 * offset is ours while the transaction lasts, and so are its marks.
 *
 * A resend may come in another partition than the first time, where partitions were
 * added meanwhile. Its row is there already then, which the table's key refuses, and
 * the transaction is done again with a look at everything.
 * Thread: the loader's.
 */
#pragma once

#include "sinks/loader_batch.h"
#include "sinks/loader_known.h"

/* A journal of which this transaction has messages. */
struct loader_journal {
    struct slice id;           /* into a message of the batch */
    struct loader_known known; /* numbers that were looked for, and those that were added */
    bool looked;               /* `known` has what was there before, of what needs a look */
};

struct loader_mark {
    size_t journal; /* index into loader_marks.journals */
    const struct loader_place *place;
    uint64_t last_seq;
    uint64_t stored_seq; /* last_seq as it was before this transaction */
    bool moved;
};

/* Those of one transaction; start from { .db = … }. */
struct loader_marks {
    struct postgres *db;      /* borrowed; where they are kept */
    struct loader_mark *list; /* owned */
    size_t n;
    size_t cap;
    struct loader_journal *journals; /* owned */
    size_t n_journals;
    size_t cap_journals;
};

/* Release the lists, not the struct. */
void loader_marks_done(struct loader_marks *marks);

/*
 * The mark of a journal in a place, valid until the next call; one that is new is read
 * from the database.
 */
enum sink_result loader_mark_of(struct loader_marks *marks, struct slice journal,
                                const struct loader_place *place, struct loader_mark **ret,
                                struct err *err) MUST_CHECK;

/* The record seq was read. */
void loader_mark_move(struct loader_mark *m, uint64_t seq);

/* Write those that moved. */
enum sink_result loader_marks_write(const struct loader_marks *marks, struct err *err) MUST_CHECK;
