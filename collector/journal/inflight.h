/*
 * inflight: which hooks run now, in a small file that survives us.
 *
 * Before a hook is started its dispatch stands here; a collector that comes back
 * after kill -9 finds what was running, ends it, and records the evaluation as
 * `interrupted`. No hook runs without a trace. Layout: inflight_format.h.
 *
 * Safe from any thread; a taken slot belongs to who took it.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "collector/base/err.h"
#include "collector/base/id.h"

enum {
    INFLIGHT_SLOTS = 1024,
    INFLIGHT_TEXT = 128, /* bytes of a name kept in a slot; longer ones are cut */
};

struct inflight; /* opaque */

/* What stands in a slot. */
struct inflight_entry {
    struct id dispatch_id;
    struct id evaluation_id; /* of the chain that runs */
    uint64_t journal_seq;    /* durable when the slot was taken: the record, if any, is behind it */
    int64_t started_us;
    char contract[16];
    char chain[16];
    char thread_id[INFLIGHT_TEXT];
    char call_id[INFLIGHT_TEXT];
    char agent_name[INFLIGHT_TEXT];
    char event[INFLIGHT_TEXT];
    char tool_name[INFLIGHT_TEXT];
    char hook_name[INFLIGHT_TEXT];
    uint32_t ordinal;
    int32_t pid; /* 0: not started, or not known yet */
    uint64_t start_ticks;
    char tag[64]; /* PROCESS_TAG of the hook */
};

/*
 * Open STATE/inflight, creating it. `on_left` is called for each slot that a
 * predecessor left taken, and then the slot is free; pid is 0 when the machine was
 * started anew meanwhile. In a copied folder nothing is left: what ran is the first
 * one's to end and to record.
 * Errors: ERR_AGAIN: another collector has it; ERR_CORRUPT: of another version; ERR_IO.
 */
bool inflight_open(const char *state_dir, void (*on_left)(void *ctx, const struct inflight_entry *),
                   void *ctx, struct inflight **ret, struct err *err) MUST_CHECK;
void inflight_close(struct inflight *f); /* accepts NULL; slots stay as they are */

/* Take a slot; -1 when all are taken, or it cannot be written: the dispatch runs all the same, and
 * nobody would tell that it was interrupted. Thread: any. */
int inflight_take(struct inflight *f, const struct inflight_entry *entry);

/* Change what a taken slot says of its hook; pid 0 before it is started. Both accept -1. */
void inflight_set_hook(struct inflight *f, int slot, const char *hook_name, uint32_t ordinal,
                       const char *tag);
void inflight_set_pid(struct inflight *f, int slot, pid_t pid, uint64_t start_ticks);

/* Free the slot, once the record is stored. Accepts -1. */
void inflight_release(struct inflight *f, int slot);
