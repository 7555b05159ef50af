/*
 * positions: how far one sink is with each journal, told to the other roles.
 *
 * STATE/sinks/NAME.positions.json, replaced whole and at most once a second:
 *
 *     {"sink","configured":true,"positions":{JOURNAL-ID: next_seq},
 *      "state":"connecting|ok|retrying|broken","error","dead":N,"lost":N,
 *      "delivered","time","told":{JOURNAL-ID: seq}, "here":[JOURNAL-ID]}
 *
 * `dead` were refused for good, `lost` were gone before the sink had them (of damage that
 * hides how many: one), ever. `delivered` is when something last was; `told`, up to where losses
 * that stand before a position were told, so that a restart does not tell them again; `here`,
 * which journals' positions only we know: they were moved by a delivery that keeps none itself.
 * A loader has no journals, and writes "source":"kafka".
 *
 * `collect` retires no segment that a configured sink still needs; `status` shows
 * it. For a sink that keeps no position of its own it is the position: a crash
 * then sends again what was delivered since the file was written.
 * Thread: one.
 */
#pragma once

#include <stdint.h>

#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/base/slice.h"

enum sink_state {
    SINK_STATE_CONNECTING, /* it was not reached yet since we began */
    SINK_STATE_OK,
    SINK_STATE_RETRYING,
    SINK_STATE_BROKEN,
};

/* The state that an error means; ERR_INVALID is for a person to mend. */
enum sink_state sink_state_of(const struct err *err);

struct positions_entry {
    char journal[ID_TEXT_SIZE];
    uint64_t next;
    uint64_t told; /* 0: nothing that stands before `next` */
    bool here;     /* only we know `next`; the destination may know less */
};

struct positions {
    const char *state_dir; /* borrowed */
    const char *sink;      /* borrowed */
    struct positions_entry *list;
    size_t n;
    size_t cap;
    enum sink_state state;
    char error[ERR_TEXT_SIZE]; /* "" while ok */
    uint64_t dead;             /* records given up, ever */
    uint64_t lost;             /* records that were gone before the sink had them, ever */
    int64_t delivered_us;      /* since 1970 UTC; 0: never */
    const char *source;        /* a constant, "kafka": of its own positions; NULL: journals */
    bool changed;              /* since the file was written */
    int64_t written_ms;        /* monotonic */
};

/*
 * Read the file, if there is one; what is there of an older run is kept. Both
 * strings are borrowed. A file that cannot be understood is ERR_CORRUPT.
 */
bool positions_load(const char *state_dir, const char *sink, struct positions *ret, struct err *err)
    MUST_CHECK;
void positions_done(struct positions *p);

/* The next sequence of a journal; 1 for one that is not there. */
uint64_t positions_get(const struct positions *p, struct slice journal);
void positions_set(struct positions *p, struct slice journal, uint64_t next);
/* Does only this file know the position, and not the destination? */
bool positions_here(const struct positions *p, struct slice journal);
void positions_set_here(struct positions *p, struct slice journal, bool here);
/* As positions_set(), by a delivery now. */
void positions_deliver(struct positions *p, struct slice journal, uint64_t next);
/* Up to which sequence losses were told; 0: none that stands before the position. */
uint64_t positions_told(const struct positions *p, struct slice journal);
void positions_tell(struct positions *p, struct slice journal, uint64_t seq);
void positions_set_state(struct positions *p, enum sink_state state, const char *error);
/* Something was delivered now whose position is kept elsewhere. */
void positions_touch(struct positions *p);
void positions_count_dead(struct positions *p, uint64_t n);
void positions_count_lost(struct positions *p, uint64_t n);

/* Write the file when something changed, at most once a second unless `now`. */
bool positions_flush(struct positions *p, bool now, struct err *err) MUST_CHECK;

/* Say of every file whose sink is not among `names` that it is no longer configured. */
bool positions_unconfigure(const char *state_dir, const char *const *names, size_t n,
                           struct err *err) MUST_CHECK;
