/*
 * runner: delivers to one sink until it is told to stop. One thread a sink.
 *
 *     source ──span──▶ pump ──▶ driver          positions ──▶ STATE/sinks/NAME…
 *        ▲               └─ refused for good ──▶ dead letters
 *        └─ rewound when the sink was opened anew
 *
 * A driver that can begin a span has the next one on its way while it waits for the answers
 * to this one. What was begun is ended before the runner stops, when the sink lets it.
 *
 * It waits where nothing can be done (the sink is away, nothing is to deliver),
 * never longer than a moment without hearing a stop. Between deliveries it cuts
 * what the sink no longer keeps.
 */
#pragma once

#include "sinks/cutting.h"
#include "sinks/positions.h"
#include "sinks/pump.h"
#include "sinks/source.h"
#include "sinks/stop.h"

struct runner_options {
    const struct sink_config *cfg; /* with name and state_dir */
    const struct sink_ops *ops;
    struct source *source; /* borrowed */
    struct stop *stop;     /* borrowed */
    size_t batch_records;
    int64_t linger_ms;   /* pause in a lull, to gather what comes: a batch costs an fsync */
    bool once;           /* end when all that is there has been delivered */
    int64_t patience_ms; /* once: give up when nothing could be delivered for so long */
    cutting_on_cut on_cut;
    void *ctx; /* of on_cut */
};

enum runner_end {
    RUNNER_STOPPED,   /* it was asked to; or asked to end when done, and its sink is away */
    RUNNER_DELIVERED, /* once, or asked to end when done: everything is there */
    RUNNER_GAVE_UP,   /* once: the sink could not be reached, or refuses us; not all can be read */
};

/* Run. Errors are logged, and stand in the positions file; *ret_err tells the last one. */
enum runner_end runner_run(const struct runner_options *o, struct err *ret_err);
