/*
 * trace: what happened in one thread, as a timeline.
 *
 * One answer, three faces: the JSON of GET /v1/threads/{id}/trace, of
 * `hooktrail trace --json`, and the timeline that `hooktrail trace` draws from it.
 */
#pragma once

#include <stdio.h>

#include "queries/store.h"

struct trace_options {
    struct slice thread;
    int64_t from_us; /* 0: from its beginning */
    int64_t to_us;   /* 0: to its end */
    uint32_t limit;  /* events; 0: 1000 */
};

/*
 * {"thread_id","from","to","events":[{"time","kind":"evaluation"|"tool_execution",…record…}],
 *  "truncated":bool}; owned by the caller (json_decref). ERR_NOT_FOUND: no record of that thread.
 */
bool trace_query(struct store *s, const struct trace_options *o, json_t **ret, struct err *err)
    MUST_CHECK;

/* Draw it for people. `color`: ANSI colours. `all`: skipped hooks too, each on a line. */
void trace_print(const json_t *trace, FILE *out, bool color, bool all);
