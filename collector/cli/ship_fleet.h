/*
 * ship_fleet: the threads of `ship`, one a configured sink.
 *
 * Each has a feed of its own, so that one sink's outage delays no other and
 * costs one batch of memory.
 */
#pragma once

#include "collector/base/config.h"
#include "sinks/audit.h"
#include "sinks/runner.h"

struct fleet; /* opaque */

/* Start a thread for every sink of the configuration, which must outlive the fleet. */
bool fleet_start(const struct config *c, bool once, struct audit *audit, struct fleet **ret,
                 struct err *err) MUST_CHECK;

/* Have all threads ended by themselves (once)? */
bool fleet_is_done(struct fleet *f);

/* Ask all to end when everything that is there now has been delivered. */
void fleet_finish(struct fleet *f);

/* Ask all to stop, wait for them, release. The worst end of a sink; NULL is accepted. */
enum runner_end fleet_stop(struct fleet *f);
