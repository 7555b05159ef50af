#include "collector/process/tree.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"

void tree_done(struct tree *t)
{
    free(t->at);
    *t = (struct tree){ 0 };
}

static bool has(const struct tree *t, const struct proc_stat *s)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->at[i].pid == s->pid && t->at[i].start_ticks == s->start_ticks) {
            return true;
        }
    }
    return false;
}

bool tree_add(struct tree *t, pid_t pid)
{
    struct proc_stat s;

    if (!proc_stat(pid, &s) || !proc_alive(&s) || has(t, &s)) {
        return false;
    }
    if (t->n == t->cap) {
        t->cap = t->cap > 0 ? t->cap * 2 : 16;
        t->at = xrealloc(t->at, t->cap * sizeof(*t->at));
    }
    t->at[t->n++] = s;
    return true;
}

void tree_grow(struct tree *t)
{
    CLEANUP(pids_done) struct pids children = { 0 };

    for (size_t i = 0; i < t->n; i++) {
        children.n = 0;
        proc_children(t->at[i].pid, &children);
        for (size_t c = 0; c < children.n; c++) {
            (void)tree_add(t, children.at[c]);
        }
    }
}

/* Where the process stands now. False when it has ended, or the number is another's. */
static bool look_again(const struct proc_stat *was, struct proc_stat *ret)
{
    return proc_stat(was->pid, ret) && ret->start_ticks == was->start_ticks && proc_alive(ret);
}

/* Our own group is none of a hook's; should a member be in it, it is hit alone. */
static bool signal_group(const struct proc_stat *s, int signal)
{
    if (s->group <= 1 || s->group == getpgrp()) {
        return kill(s->pid, signal) == 0;
    }
    return kill(-s->group, signal) == 0;
}

/* A member may have left its group since it was found: the one of now counts. */
void tree_signal(const struct tree *t, size_t from, int signal)
{
    CLEANUP(pids_done) struct pids done = { 0 };
    struct proc_stat now;

    for (size_t i = from; i < t->n; i++) {
        if (look_again(&t->at[i], &now) && !pids_has(&done, now.group) &&
            signal_group(&now, signal)) {
            pids_add(&done, now.group);
        }
    }
}

uint32_t tree_end(void (*add_roots)(void *ctx, struct tree *t), void *ctx)
{
    CLEANUP(tree_done) struct tree t = { 0 };
    int64_t until_ms = clock_mono_ms() + TREE_END_MS;
    size_t killed = 0;

    for (;;) {
        size_t seen = t.n;

        add_roots(ctx, &t);
        tree_grow(&t);
        if (t.n > seen && clock_mono_ms() < until_ms) {
            tree_signal(&t, seen, SIGSTOP);
            continue;
        }
        if (t.n == killed) {
            return (uint32_t)killed;
        }
        tree_signal(&t, killed, SIGKILL);
        killed = t.n;
        if (clock_mono_ms() >= until_ms) {
            return (uint32_t)killed;
        }
    }
}
