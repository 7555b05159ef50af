/*
 * recorder_part: what the files of the recorder share.
 *
 *     recorder.c      run a dispatch, in-flight slots, submit, settle
 *     waiting.c       replies that wait for their record, and the thread that ends the wait
 *     facts.c         a dispatch's records: redacted, small enough (shrink.h), encoded
 *     interrupted.c   what a predecessor left in flight
 *     registry.c      hook sets and admin actions
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "collector/base/buf.h"
#include "collector/journal/journal.h"
#include "collector/recorder/recorder.h"

enum {
    SLOTS_MAX = 16,        /* in-flight slots of one dispatch */
    APPEND_WAIT_MS = 5000, /* for records that somebody waits for */
};

/* The records of one dispatch on their way into the journal. Owns the bytes. */
struct pending {
    struct journal_batch batch;
    struct buf bytes[JOURNAL_BATCH_MAX];
    struct recorder *recorder;
    int slots[SLOTS_MAX];
    size_t n_slots;

    /* Who waits; cleared once answered. Guarded by the recorder's lock. */
    struct dispatch *dispatch;
    void (*on_recorded)(void *ctx, struct dispatch *d, enum recorded outcome);
    void *ctx;
    bool waits;
    int64_t deadline_ms;
    struct pending *next;
    struct pending *prev;
};

struct recorder {
    struct recorder_options options;
    struct slice collector;
    struct process_options process;
    _Atomic int64_t record_wait_ms; /* of the options, until recorder_set() */
    _Atomic enum capture capture;

    /* The line of those who wait, the longest first. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic */
    struct pending *first;
    struct pending *last;
    bool stopping;
    bool has_thread;
    pthread_t thread;
    int64_t wakes_ms;      /* when the thread looks next; INT64_MAX: when it is told to */
    _Atomic unsigned refs; /* of the owner, and of each pending */

    _Atomic uint64_t dispatches;
    _Atomic uint64_t late;
    _Atomic uint64_t lost;
    _Atomic uint64_t redaction_failures;
};

/* Start and stop the thread that answers RECORDED_LATE. */
bool waiting_start(struct recorder *r) MUST_CHECK;
void waiting_stop(struct recorder *r);

/* Stand in line; p->on_recorded is called exactly once from now on. */
void waiting_add(struct recorder *r, struct pending *p);

/* Answer, unless the wait has ended already. */
void waiting_answer(struct recorder *r, struct pending *p, enum recorded outcome);

/* Free the slots of p: its record is stored, or counted whatever comes. The lock is held. */
void recorder_release_slots(struct recorder *r, struct pending *p);
