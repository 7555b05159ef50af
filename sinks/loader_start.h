/*
 * loader_start: where a loader goes on in each partition that it was given.
 *
 * The database knows, and the topic may be another one than it was, or begin later:
 * then reading begins where that begins, which is told, and counted where it lost.
 * Thread: the loader's.
 */
#pragma once

#include "sinks/loader_state.h"

/* Take the partitions, each where the database says. */
enum sink_result loader_start_all(struct loader *l, struct err *err) MUST_CHECK;

/*
 * The first that comes from a place, a message or its end, must be what was read there
 * last. Where it is not, all places are to be taken anew, this one from its beginning.
 */
void loader_start_prove(struct loader *l, struct loader_place *place, const rd_kafka_message_t *m);
