/*
 * why: why did this hook not fire, or what did it do?
 *
 * Walks the eight steps of the SRE contract's "When a Hook Does Not Fire". Each
 * is a condition that must hold for a hook to decide something: it holds, it
 * fails, or the records cannot tell; with its evidence. The first that fails is
 * the answer. One sentence and what to do close it.
 *
 *     1 event         the event occurred for this call
 *     2 event_type    the hook listens to that event
 *     3 activation    it is always active, or was activated for the thread
 *     4 registration  it was configured, enabled, and of this agent
 *     5 matcher       its matcher matches the tool's name
 *     6 reached       no earlier hook ended the chain
 *     7 decided       it ran, and did more than pass
 *     8 worked        it ran, and did not fail
 *
 * The same JSON is GET /v1/why and `hooktrail why --json`.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "queries/paint.h"
#include "queries/store.h"

struct why_options {
    struct slice hook;
    struct slice call;   /* --call; or else: */
    struct slice thread; /* --thread */
    struct slice tool;
    struct slice event;
    int64_t at_us;      /* 0: the latest; else the nearest to it */
    uint64_t unshipped; /* records that are in a journal and not in the store yet */
};

enum why_state { WHY_UNKNOWN, WHY_HOLDS, WHY_FAILS };

enum why_step_kind {
    WHY_EVENT,
    WHY_EVENT_TYPE,
    WHY_ACTIVATION,
    WHY_REGISTRATION,
    WHY_MATCHER,
    WHY_REACHED,
    WHY_DECIDED,
    WHY_WORKED,
    WHY_STEPS,
};

struct why_step {
    enum why_state state;
    struct slice evidence;  /* a sentence without its full stop */
    struct slice record_id; /* the record that shows it; empty: none */
};

/* The answer; everything in the arena that it was made in. */
struct why {
    struct slice hook;
    bool found; /* there is such a call or thread, and such a hook */
    struct slice evaluation_id;
    struct slice thread_id;
    struct slice call_id;
    struct slice event;
    struct slice tool_name;
    int64_t time_us; /* of the evaluation; 0: none */
    uint64_t unshipped;
    struct why_step steps[WHY_STEPS];
    struct slice verdict;
    struct slice advice;
};

/*
 * Errors: ERR_INVALID: no hook, or neither call nor thread; the store's. A hook
 * nobody knows, or a call that nobody saw, is an answer, not an error.
 */
bool why_query(struct store *s, const struct why_options *o, struct arena *a, struct why *ret,
               struct err *err) MUST_CHECK;

/* The sentence whose truth the state tells; "holds", "fails", "unknown". */
const char *why_step_statement(enum why_step_kind step);
const char *why_state_name(enum why_state state);

/*
 * Append, with a newline at the end:
 * {"hook","found","evaluation_id"?,"thread_id"?,"call_id"?,"event"?,"tool_name"?,"time"?,
 *  "steps":[{"number","step","statement","state","evidence","record_id"?}…],"verdict","advice",
 *  "unshipped"}
 */
void why_json(const struct why *w, struct buf *out);

/* Draw it for people. */
void why_print(const struct why *w, const struct paint *p);
