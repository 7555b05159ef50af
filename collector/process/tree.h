/*
 * tree: a set of processes that belong together, and how to end it.
 *
 * It grows from its roots by asking for children. To end it, what is found is
 * stopped, and looked for again until nothing new appears, and then killed:
 * a stopped process forks no more, so a fork bomb that races us loses.
 *
 *     roots ─▶ grow ─▶ STOP what is new ─▶ again, until nothing is ─▶ KILL all
 *
 * Signals go to whole process groups: the kernel gives them to all members at
 * once, also to one that is just being forked. A hook leads a session of its own,
 * so no group has members of two runs. That a number was not given to another
 * process meanwhile is seen by its start time just before.
 */
#pragma once

#include "collector/process/proc.h"

/* The zero value is the empty set. */
struct tree {
    struct proc_stat *at;
    size_t n;
    size_t cap;
};

/* Release it; for CLEANUP too. */
void tree_done(struct tree *t);

/* Add a process that is alive. False when it is there already, or has ended. */
bool tree_add(struct tree *t, pid_t pid);

/* Add all descendants of what is there. */
void tree_grow(struct tree *t);

/* Send `signal` to the groups of the members from index `from` on. */
void tree_signal(const struct tree *t, size_t from, int signal);

/*
 * Kill everything that add_roots() finds now, and its descendants. add_roots is
 * called again and again, and adds what it knows with tree_add().
 * Returns how many were killed; some may need a moment to be gone. Takes at most
 * TREE_END_MS, however fast the tree grows.
 */
enum { TREE_END_MS = 1000 };
uint32_t tree_end(void (*add_roots)(void *ctx, struct tree *t), void *ctx);
