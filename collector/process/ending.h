/*
 * ending: all processes of a run, the child's tree and its orphans', and their end.
 *
 * `child` is the run's child while it lives, and 0 afterwards.
 */
#pragma once

#include "collector/process/orphans.h"

/* Send TERM to every process of the run. */
void ending_ask(const struct active_run *r, pid_t child);

/* Kill every process of the run. Takes at most TREE_END_MS. */
void ending_kill(const struct active_run *r, pid_t child);

/* True when the child, which has exited, left something that is alive. */
bool ending_has_members(const struct active_run *r);

/*
 * After the child has exited: how many descendants it left alive. They are killed
 * and not counted when they were being ended anyway; else they are counted, and
 * killed or kept as `end_them` says. What was killed is reaped, if the kernel
 * lets go of it within REAP_WAIT_MS; process_reap() does the rest.
 */
enum { REAP_WAIT_MS = 100 };
uint32_t ending_left_behind(const struct active_run *r, bool was_ended, bool end_them);
