/*
 * trace: what happened in one thread, as a timeline.
 *
 * One answer, three faces: the JSON of GET /v1/threads/{id}/trace, of
 * `hooktrail trace --json` (trace_json), and the timeline that `hooktrail trace`
 * draws (trace_print). Records in the JSON are the bytes that were journalled:
 * what hooks and tools sent is never read and written again.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/record/record.h"
#include "queries/paint.h"
#include "queries/store.h"

enum { TRACE_LIMIT = 1000 }; /* events where no limit is asked for */

struct trace_options {
    struct slice thread;
    int64_t from_us; /* 0: from its beginning */
    int64_t to_us;   /* 0: to its end */
    uint32_t limit;  /* events; 0: TRACE_LIMIT */
};

/* One event. Everything points into the arena that the trace was made in. */
struct trace_event {
    enum record_type type; /* evaluation, tool execution, or gap */
    int64_t at_us;         /* its place; of a gap: when the losses began */
    struct slice body;     /* the record as it was journalled */
    union {
        struct evaluation evaluation;
        struct tool_execution tool;
        struct gap gap;
    };
};

struct trace {
    struct slice thread;
    int64_t from_us; /* what was asked for, or of the first and the last event */
    int64_t to_us;
    struct trace_event *events; /* oldest first */
    size_t n;
    bool truncated;     /* there is more behind the limit */
    int64_t next_us;    /* when truncated: where to go on (--from) */
    size_t evaluations; /* how many events are evaluations */
    uint64_t unshipped; /* records in a journal and not in the store yet; set by the caller */
};

/*
 * Ask the store. Gaps of the journal that fall into the thread's time are events
 * too: what they cover may be missing.
 * Errors: ERR_NOT_FOUND: no record of that thread (in that time); the store's.
 */
bool trace_query(struct store *s, const struct trace_options *o, struct arena *a, struct trace *ret,
                 struct err *err) MUST_CHECK;

/*
 * Append, with a newline at the end:
 * {"thread_id","from","to","events":[{"kind":"evaluation|tool_execution|gap",…the record…}],
 *  "truncated":bool,"next_from"?,"unshipped"}
 */
void trace_json(const struct trace *t, struct buf *out);

/* Draw it for people. `all`: each hook on a line, tool executions too. */
void trace_print(const struct trace *t, const struct paint *p, bool all);
