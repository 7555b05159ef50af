/*
 * collect_tell: STATE/run/collect.json, what collect tells `status` of itself:
 *
 *     {"hook_sets":[{"contract","digest","hooks","loaded"}],
 *      "reload":{"time","faults","error"?}, "refuses"?}
 *
 * `reload` is the last SIGHUP; absent before the first. `refuses` is why the journal can
 * store nothing now: quota, disk_full, io. Thread: the main thread.
 */
#pragma once

#include <jansson.h>

#include "collector/ingress/reload.h"
#include "collector/journal/journal.h"

/* What was told last. Zeroed: nothing yet. */
struct tell {
    json_t *reload;      /* owned; NULL: none yet */
    const char *refuses; /* a constant; NULL: it stores */
};
void tell_done(struct tell *t);

/* Write it anew; a failure is logged. */
void tell_write(const struct tell *t, const char *state_dir, struct sets *sets);
/* The next tell_write() tells of this reload. */
void tell_reload(struct tell *t, const struct reload *last);
/* The next tell_write() tells whether the journal stores. False: that was told already. */
bool tell_journal(struct tell *t, const struct journal_stats *stats);
void tell_remove(const char *state_dir);
