/*
 * collect_tell: STATE/run/collect.json, what collect tells `status` of itself:
 *
 *     {"hook_sets":[{"contract","digest","hooks","loaded"}],
 *      "reload":{"time","faults","error"?}}
 *
 * `reload` is the last SIGHUP; absent before the first. Thread: the main thread.
 */
#pragma once

#include "collector/ingress/reload.h"

/* Write it anew; a failure is logged. last: NULL before the first reload. */
void tell_write(const char *state_dir, struct sets *sets, const struct reload *last);
void tell_remove(const char *state_dir);
