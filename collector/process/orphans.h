/*
 * orphans: which processes outlived their parents, and whose they are.
 *
 * We are the subreaper of all that our hooks start: what loses its parent becomes
 * a child of our main thread, and one read of /proc/self/task/MAIN/children tells
 * whether there is any. An orphan belongs to the run
 *
 *   1. in whose session it is,
 *   2. else whose PROCESS_TAG is in its environment,
 *   3. else, where it cleared that, whose mark it carries: each run's child is made
 *      with a timer slack of its own, some nanoseconds over the usual 50 us, which
 *      every descendant inherits, through exec and setsid(2) as well;
 *   4. else, when it shows nothing, to the only run there is now; while there are
 *      several it is nobody's, and is looked at again when the next one ends.
 *
 * What a run left running and was allowed to is remembered as kept: it is not
 * counted again, and no later run is blamed for it or for what it starts.
 *
 * The registry is one for the process, as the kernel's list of children is. All
 * of it is guarded by one lock, which is never held while somebody waits.
 * Safe from any thread.
 */
#pragma once

#include "collector/process/process.h"
#include "collector/process/tree.h"

/* A run; it stays in place from orphans_spawn_begin() to orphans_leave(). */
struct active_run {
    pid_t pid; /* of the child, and the number of its session; 0: not known yet */
    const char *tag;
    uint64_t slack_ns; /* its mark */
    struct active_run *prev;
    struct active_run *next;
};

/*
 * The child of r, whose tag is set, is made between these two. The run is entered
 * before, because a quick child may have left an orphan before we hear of its
 * start; and a child of the main thread must not look like an orphan itself.
 * Other threads' children never do, so they are made side by side. pid 0: there is
 * no child, and the run is out again.
 */
void orphans_spawn_begin(struct active_run *r);
void orphans_spawn_end(struct active_run *r, pid_t pid);
void orphans_leave(struct active_run *r);

/* True when there is no orphan that nobody has looked at: the usual case. */
bool orphans_none(void);

/* Add the orphans of r that are alive to t; what has ended is reaped on the way. */
void orphans_of(const struct active_run *r, struct tree *t);

/* Remember those of t that are our children as kept. */
void orphans_keep(const struct tree *t);

/* A child that could not be killed in time: reap it whenever it ends. */
void orphans_abandon(pid_t pid);
