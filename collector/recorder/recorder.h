/*
 * recorder: everything that becomes of a dispatch beside its decision.
 *
 * Wraps the dispatcher: takes an in-flight slot before the first hook, and
 * afterwards makes the records (evaluations, tool execution), redacts them on a
 * copy, hands them to the journal. The only writer of evaluations. A decision
 * is never changed by recording it.
 *
 *     recorder_run() ─▶ chain_run ─▶ evaluations ─▶ redact ─▶ encode ─▶ journal_submit
 *                                                    on_recorded(STORED | LATE | LOST) ◀─┘
 */
#pragma once

#include "collector/dispatcher/chain.h"
#include "collector/journal/inflight.h"
#include "collector/journal/journal.h"

struct recorder; /* opaque */

enum capture { CAPTURE_KEYS, CAPTURE_PAYLOAD }; /* the payload's key names, or a redacted copy */

struct recorder_options {
    const char *collector;
    const char *state_dir;     /* where recorder_interrupted() looks; NULL: nowhere */
    struct journal *journal;   /* NULL: nothing is journalled (`hooktrail dispatch`) */
    struct inflight *inflight; /* NULL: no slots */
    int64_t record_wait_ms;    /* how long a reply waits for its record */
    enum capture capture;
    const struct process_options *process;
};

/* A recorder over a journal that stays open as long as it; _free waits at most record_wait_ms. */
struct recorder *recorder_new(const struct recorder_options *o);
void recorder_free(struct recorder *r); /* accepts NULL */

/* What may change while a recorder records; of a change of record_wait_ms, what waits already
 * knows nothing. Thread: any. */
struct recorder_settings {
    int64_t record_wait_ms;
    enum capture capture;
    bool end_left_behind; /* process.h */
};
void recorder_set(struct recorder *r, const struct recorder_settings *s);

enum recorded {
    RECORDED_STORED, /* safe */
    RECORDED_LATE,   /* not safe within record_wait_ms; it may still come */
    RECORDED_LOST,   /* will not be stored; counted */
};

/*
 * Run the chains of a prepared dispatch, and record it. on_recorded is called
 * exactly once, at the latest record_wait_ms after the last hook ended; on the
 * writer's thread, the recorder's own, or inside this call. It must not block.
 * The dispatch must live until then.
 * Thread: the worker that owns d.
 */
void recorder_run(struct recorder *r, struct dispatch *d,
                  void (*on_recorded)(void *ctx, struct dispatch *d, enum recorded outcome),
                  void *ctx);

/*
 * The records of a dispatch that has run, redacted and encoded: what recorder_run()
 * journals; `hooktrail dispatch --record` writes it. on_record is called once a record.
 */
void recorder_encode(struct recorder *r, struct dispatch *d,
                     void (*on_record)(void *ctx, enum record_type type, struct slice json,
                                       const struct evaluation *e),
                     void *ctx);

/* Record a hook set as it was loaded: `hook_registry`, split where it is large. */
bool recorder_registry(struct recorder *r, const struct hookset *set, struct err *err) MUST_CHECK;

/* Record an `admin` action. `details` is a JSON object, or empty. */
bool recorder_admin(struct recorder *r, const char *action, const char *actor, struct slice details,
                    struct err *err) MUST_CHECK;

/* End and record what a predecessor left in flight (pass as inflight_open()'s on_left). */
void recorder_interrupted(void *recorder, const struct inflight_entry *left);

struct recorder_stats {
    uint64_t dispatches;
    uint64_t late;
    uint64_t lost;
    uint64_t redaction_failures;
};
/* Counted since recorder_new(). Thread: any. */
void recorder_stats(struct recorder *r, struct recorder_stats *ret);
