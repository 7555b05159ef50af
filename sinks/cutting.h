/*
 * cutting: what a sink no longer keeps goes, between deliveries.
 *
 *     look ──a day is due──▶ tell it ──▶ step … step ──day is gone──▶ look …
 *       └─nothing is due: again in an hour     a failure: the same again in a minute
 *
 * A day is told before its first row goes, and not again when its cut goes on after a
 * failure. Its user delivers, and between two deliveries asks for one step.
 * Thread: the sink's.
 */
#pragma once

#include "sinks/sink.h"

enum { CUTTING_PAUSE_MS = 20 }; /* between two steps: readers and deliveries come first */

/* A cut begins. False: it could not be recorded, do not cut. */
typedef bool (*cutting_on_cut)(void *ctx, const char *sink, const struct sink_cut *cut,
                               struct err *err);

struct cutting {
    const char *sink;      /* borrowed: its name */
    cutting_on_cut on_cut; /* NULL: nobody is told */
    void *ctx;
    struct err err; /* why it fails, while delivery may be well; ERR_NONE: it does not */

    int64_t next_ms;     /* monotonic: not before */
    bool told;           /* `cut` was, and is not done */
    struct sink_cut cut; /* the present one */
    int64_t behind_us;   /* the end of what has just been cut: what is behind it? 0: nothing was */
};

/* Is there something to do now? */
bool cutting_is_due(const struct cutting *c);

/* Is more to be done, without a wait for a clock? */
bool cutting_goes_on(const struct cutting *c);

/*
 * Look whether something is due, unless a cut is under way, and do one step of it.
 * What fails is told once an incident, stands in c->err and waits; on SINK_DOWN
 * the caller closes the sink.
 */
enum sink_result cutting_step(struct cutting *c, struct sink *s);

/* The sink could not even be asked; `err` says why. */
void cutting_fail(struct cutting *c, const struct err *err);

/* Another one sees to it: look again when the next day may be due. */
void cutting_leave(struct cutting *c);
