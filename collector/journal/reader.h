/*
 * reader: a journal's records in order, from another thread or process.
 *
 * A reader sees no frame that is not durable, needs no lock, and writes nothing:
 * a role with read-only rights can follow. It verifies length, CRC and leaf hash
 * of each frame. When the writer's process is gone, the reader still sees all
 * that was durable.
 * Thread: a reader belongs to one.
 */
#pragma once

#include <stdint.h>

#include "collector/base/digest.h"
#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/record/types.h"

struct journal_reader; /* opaque */

/* One journal that exists on disk. */
struct journal_info {
    struct id id;
    char role[32];        /* collect, ship, serve, cli */
    char dir[4096];       /* its folder */
    uint64_t first_seq;   /* of the oldest segment there */
    uint64_t durable_seq; /* 0: nothing yet */
    bool open;            /* a writer has it (as far as can be told without its lock) */
};

/*
 * All journals under STATE/journals, oldest id first. `on_journal` may return
 * false to stop. A missing folder is an empty list; one that may not be read is ERR_IO.
 */
bool journal_list(const char *state_dir, bool (*on_journal)(void *ctx, const struct journal_info *),
                  void *ctx, struct err *err) MUST_CHECK;

/*
 * How many durable records are there for who has all before next_seq (0 or 1: nothing yet);
 * what is retired is not.
 */
uint64_t journal_behind(const struct journal_info *j, uint64_t next_seq);

/*
 * Whether the journal in `dir` may have more than its mark says: a power loss may set that
 * back, and the journal's writer has not opened it since the machine was started.
 */
bool journal_mark_may_be_late(const char *dir);

struct journal_frame {
    uint64_t seq;
    enum record_type type;
    struct digest leaf;
    struct slice bytes; /* the record; valid until the next call on this reader */
};

enum journal_read {
    JOURNAL_READ_FRAME,   /* *ret is filled */
    JOURNAL_READ_WAIT,    /* nothing more is durable now */
    JOURNAL_READ_ENDED,   /* this journal will get no more: it was succeeded by another id */
    JOURNAL_READ_RETIRED, /* from_seq is older than what is kept: *ret->seq is the first there is */
    JOURNAL_READ_DAMAGED, /* frames from ret->seq on cannot be read; the reader stands behind them
                           */
    JOURNAL_READ_ERROR,   /* err */
};

/* Stand before from_seq (1: the beginning) of the journal in `dir`. */
bool journal_reader_open(const char *dir, uint64_t from_seq, struct journal_reader **ret,
                         struct err *err) MUST_CHECK;
void journal_reader_close(struct journal_reader *r); /* accepts NULL */

/* The next frame, or why there is none; it never blocks. */
enum journal_read journal_reader_next(struct journal_reader *r, struct journal_frame *ret,
                                      struct err *err) MUST_CHECK;

/* Wait until more is durable, or timeout_ms. True when there may be more. */
bool journal_reader_wait(struct journal_reader *r, int64_t timeout_ms);

/* The durable sequence now. */
uint64_t journal_reader_durable(struct journal_reader *r);
