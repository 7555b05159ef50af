#include <string.h>
#include <unistd.h>

#include "collector/process/process.h"
#include "collector/process/tree.h"

struct lost {
    pid_t pid;
    uint64_t start_ticks;
    const char *tag;
};

/* True when the number `pid` still is, or was last, the process that we knew. */
static bool leader_is_ours(const struct lost *l)
{
    struct proc_stat s;

    return l->pid > 0 && proc_stat(l->pid, &s) && s.start_ticks == l->start_ticks;
}

static bool carries_tag(pid_t pid, const char *tag)
{
    char value[PROC_TAG_SIZE];

    return tag && tag[0] && proc_tag(pid, value) == PROC_TAG_FOUND && strcmp(value, tag) == 0;
}

/*
 * A session's number is not given out again while anybody is in it. So the whole
 * session is ours when its leader is, or when somebody in it carries the tag; a
 * number alone proves nothing.
 */
static void add_lost(void *ctx, struct tree *t)
{
    const struct lost *l = ctx;
    CLEANUP(pids_done) struct pids all = { 0 };
    bool session_is_ours = leader_is_ours(l);
    struct proc_stat s;

    proc_all(&all);
    for (size_t i = 0; i < all.n; i++) {
        if (all.at[i] == getpid() || !carries_tag(all.at[i], l->tag)) {
            continue;
        }
        (void)tree_add(t, all.at[i]);
        session_is_ours =
            session_is_ours || (l->pid > 0 && proc_stat(all.at[i], &s) && s.session == l->pid);
    }
    for (size_t i = 0; session_is_ours && i < all.n; i++) {
        if (all.at[i] != getpid() && proc_stat(all.at[i], &s) && s.session == l->pid) {
            (void)tree_add(t, all.at[i]);
        }
    }
}

uint32_t process_end_orphans(pid_t pid, uint64_t start_ticks, const char *tag)
{
    struct lost l = { .pid = pid, .start_ticks = start_ticks, .tag = tag };
    uint32_t ended = tree_end(add_lost, &l);

    process_reap();
    return ended;
}
