#include "collector/process/ending.h"

#include <poll.h>
#include <signal.h>

#include "collector/base/clock.h"

enum { EMPTY_LOOKS = 3 }; /* a millisecond apart */

struct members {
    const struct active_run *run;
    pid_t child;
};

static void add_members(void *ctx, struct tree *t)
{
    const struct members *m = ctx;

    if (m->child > 0) {
        (void)tree_add(t, m->child);
    }
    orphans_of(m->run, t);
}

void ending_ask(const struct active_run *r, pid_t child)
{
    struct members m = { .run = r, .child = child };
    CLEANUP(tree_done) struct tree t = { 0 };

    add_members(&m, &t);
    tree_grow(&t);
    tree_signal(&t, 0, SIGTERM);
}

void ending_kill(const struct active_run *r, pid_t child)
{
    struct members m = { .run = r, .child = child };

    (void)tree_end(add_members, &m);
}

bool ending_has_members(const struct active_run *r)
{
    CLEANUP(tree_done) struct tree t = { 0 };

    if (orphans_none()) {
        return false;
    }
    orphans_of(r, &t);
    return t.n > 0;
}

/*
 * Kill what there is until there is nothing, several looks in a row: a process that
 * starts the next one and exits may slip through one of them. What was killed
 * is reaped by orphans_of(). How many would not go in time.
 */
static uint32_t end_for_good(const struct active_run *r)
{
    int64_t until_ms = clock_mono_ms() + REAP_WAIT_MS;
    int empty_looks = 0;

    for (;;) {
        CLEANUP(tree_done) struct tree t = { 0 };

        orphans_of(r, &t);
        empty_looks = t.n == 0 ? empty_looks + 1 : 0;
        if (empty_looks == EMPTY_LOOKS) {
            return 0;
        }
        if (clock_mono_ms() >= until_ms) {
            return (uint32_t)t.n;
        }
        if (t.n > 0) {
            ending_kill(r, 0);
        }
        (void)poll(NULL, 0, 1);
    }
}

uint32_t ending_left_behind(const struct active_run *r, bool was_ended, bool end_them)
{
    CLEANUP(tree_done) struct tree t = { 0 };

    if (orphans_none()) {
        return 0;
    }
    if (was_ended) {
        return end_for_good(r);
    }
    orphans_of(r, &t);
    tree_grow(&t);
    if (!end_them) {
        orphans_keep(&t);
    } else if (t.n > 0) {
        (void)end_for_good(r);
    }
    return (uint32_t)t.n;
}
