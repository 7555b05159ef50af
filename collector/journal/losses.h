/*
 * losses: records that were lost and that no gap record tells of yet.
 *
 * Kept in memory by cause, and as a sum in the mark, so that kill -9 forgets
 * none. A gap record that is being written takes a cause out only when it is
 * durable.
 * Thread: any caller holds the journal's lock.
 */
#pragma once

#include <stdint.h>

#include "collector/base/buf.h"
#include "collector/journal/mark.h"
#include "collector/record/encode.h"

enum {
    LOSSES_CAUSES = 8, /* kinds of loss told apart; more are joined to the last */
    LOSSES_CAUSE_SIZE = 16,
};

struct loss {
    char cause[LOSSES_CAUSE_SIZE];
    bool unknown; /* how many is not known, beside `count` */
    uint64_t count;
    int64_t first_us;
    int64_t last_us;
};

struct losses {
    struct loss list[LOSSES_CAUSES];
    size_t n;
    uint64_t total;   /* counted since the start */
    uint64_t gap_seq; /* and what follows: as in the mark */
    uint64_t gap_count;
    uint64_t owed;
    uint64_t owed_seq;
    uint64_t owed_count;
};

/* Count n records lost for a fixed word of a cause; how many is unknown when n is 0. */
void losses_add(struct losses *l, uint64_t n, const char *cause, int64_t now_us);

/* True when a gap record is due. */
bool losses_any(const struct losses *l);

/* Take `told`, which a durable gap record tells of, out again. */
void losses_told(struct losses *l, const struct loss *told);

/* Write one as a gap record. */
void losses_encode(const struct loss *l, const char *collector, int64_t now_us, struct buf *out);

/* Keep the sum in the mark. */
void losses_save(const struct losses *l, struct mark *m);

/*
 * Read back what a predecessor left there whose last stored frame is last_seq: what
 * it owed died with it, and is lost now.
 */
void losses_load(struct losses *l, const struct mark *m, uint64_t last_seq, int64_t now_us);
