#include "collector/process/tree.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
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

/* True when the number still is this process's, and it has not ended. */
static bool is_same(const struct proc_stat *was)
{
    struct proc_stat now;

    return proc_stat(was->pid, &now) && now.start_ticks == was->start_ticks && proc_alive(&now);
}

/* The pidfd is taken before the look, so that what was looked at is what is hit. */
static bool signal_one(const struct proc_stat *s, int signal)
{
    CLEANUP(fs_closep) int pidfd = pidfd_open(s->pid, 0);

    return pidfd >= 0 && is_same(s) && pidfd_send_signal(pidfd, signal, NULL, 0) == 0;
}

uint32_t tree_signal(const struct tree *t, size_t from, int signal)
{
    uint32_t hit = 0;

    for (size_t i = from; i < t->n; i++) {
        hit += signal_one(&t->at[i], signal) ? 1 : 0;
    }
    return hit;
}

uint32_t tree_count_alive(const struct tree *t)
{
    uint32_t alive = 0;

    for (size_t i = 0; i < t->n; i++) {
        alive += is_same(&t->at[i]) ? 1 : 0;
    }
    return alive;
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
            (void)tree_signal(&t, seen, SIGSTOP);
            continue;
        }
        if (t.n == killed) {
            return (uint32_t)killed;
        }
        (void)tree_signal(&t, killed, SIGKILL);
        killed = t.n;
        if (clock_mono_ms() >= until_ms) {
            return (uint32_t)killed;
        }
    }
}
