/*
 * deadletter: the records that a sink refuses for good, kept for a person.
 *
 * A file a sink, STATE/deadletters/NAME.ndjson, a line a record:
 *
 *     {"journal","seq","place","type","error","time","attempts","record":{…}}
 *
 * `record` is the record byte for byte; bytes that are no JSON, or as deep as
 * JSON may be, stand as `record_hex` instead. A line is on disk before the position
 * moves past its record; the last line is looked at, so that a crash between the two
 * does not repeat it. A file of 256 MiB takes no more: the sink waits, and says so,
 * until a person has sent or dropped letters. Whoever appends or rewrites holds NAME.lock.
 * Thread: any; calls on one file wait for each other, at most LOCK_WAIT_MS.
 */
#pragma once

#include <stdint.h>

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/record/types.h"

struct deadletter {
    struct slice journal;
    uint64_t seq;       /* 0: no record of ours */
    struct slice place; /* of a message that is none, TOPIC/PARTITION@OFFSET; else empty */
    enum record_type type;
    struct slice error; /* what the sink said */
    int64_t time_us;    /* of the last attempt */
    uint64_t attempts;
    struct slice record; /* the exact bytes */
};

/* What a person calls it: JOURNAL:SEQ, or its place. It can be typed. */
void deadletter_name(const struct deadletter *d, struct buf *out);

/*
 * Append one, durably, unless it is the last one there already.
 * Errors: ERR_TOO_BIG: the file is full; ERR_AGAIN: another process holds the lock for long.
 */
bool deadletter_append(const char *state_dir, const char *sink, const struct deadletter *d,
                       struct err *err) MUST_CHECK;

enum deadletter_fate { DEADLETTER_KEEP, DEADLETTER_DROP };

/*
 * Decide on one: it is kept (as on_letter leaves it: error, time and attempts may
 * be set) or dropped. Valid during the call.
 */
typedef enum deadletter_fate (*deadletter_on_letter)(void *ctx, struct deadletter *d);

/* How a pass over a file went. */
struct deadletter_count {
    uint64_t kept;
    uint64_t dropped;
    uint64_t unreadable; /* lines that a crash or a hand left; kept as they are */
};

/*
 * Offer every letter of a sink, oldest first. A file that is not there is empty.
 * With `rewrite` the file is then replaced by what was kept, all or nothing; else
 * nothing is changed.
 */
bool deadletter_walk(const char *state_dir, const char *sink, bool rewrite,
                     deadletter_on_letter on_letter, void *ctx, struct deadletter_count *ret,
                     struct err *err) MUST_CHECK;

/* Call on_sink for each sink that has a file. A missing folder has none. */
bool deadletter_sinks(const char *state_dir, void (*on_sink)(void *ctx, const char *sink),
                      void *ctx, struct err *err) MUST_CHECK;
