#include "collector/process/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"

enum {
    LIST_BYTES = 4096, /* one read of the list of children; the kernel gives no more */
    MAX_LOOKS = 40,    /* at a list that changes while we look */
    LOOK_PAUSE_US = 50,
    SLACK_NS = 50000, /* the kernel's default; a mark is this and 1 to SLACK_MARKS more */
    SLACK_MARKS = 40000,
};

/* A process that may stay. What it starts later is known by the session. */
struct kept {
    pid_t pid;
    pid_t session;
};

static struct {
    pthread_mutex_t lock;
    bool ready;
    int children_fd; /* /proc/self/task/MAIN/children; -1: this kernel has none */
    pthread_t main_thread;
    struct active_run *active;
    uint64_t runs; /* ever; the next mark */
    struct kept *kept;
    size_t n_kept;
    size_t cap_kept;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER, .children_fd = -1 };

static void lock(void)
{
    (void)pthread_mutex_lock(&registry.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&registry.lock);
}

bool process_init(struct err *err)
{
    char path[64];

    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) != 0) {
        return err_errno(err, errno, "become the subreaper");
    }
    /* A child that does not read its input must not kill us; an ignored SIGCHLD
       would hide how children end. */
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR) {
        return err_errno(err, errno, "set signals");
    }
    if (!fs_fill_standard(err)) {
        return false;
    }
    lock();
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    if (registry.children_fd >= 0) {
        (void)close(registry.children_fd);
    }
    registry.children_fd = open(path, O_RDONLY | O_CLOEXEC);
    registry.main_thread = pthread_self();
    registry.ready = true;
    unlock();
    return true;
}

static bool in_main_thread(void)
{
    return registry.ready && pthread_equal(registry.main_thread, pthread_self());
}

static void unlink_run(struct active_run *r)
{
    if (r->prev) {
        r->prev->next = r->next;
    } else {
        registry.active = r->next;
    }
    if (r->next) {
        r->next->prev = r->prev;
    }
}

void orphans_spawn_begin(struct active_run *r)
{
    lock();
    r->pid = 0;
    r->prev = NULL;
    r->next = registry.active;
    if (r->next) {
        r->next->prev = r;
    }
    registry.active = r;
    r->slack_ns = SLACK_NS + 1 + registry.runs++ % SLACK_MARKS;
    if (!in_main_thread()) {
        unlock();
    }
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)r->slack_ns, 0L, 0L, 0L);
}

void orphans_spawn_end(struct active_run *r, pid_t pid)
{
    (void)prctl(PR_SET_TIMERSLACK, 0L, 0L, 0L, 0L); /* back to this thread's own */
    if (!in_main_thread()) {
        lock();
    }
    r->pid = pid;
    if (pid == 0) {
        unlink_run(r);
    }
    unlock();
}

void orphans_leave(struct active_run *r)
{
    lock();
    unlink_run(r);
    unlock();
}

static const struct active_run *active_by_pid(pid_t pid)
{
    for (const struct active_run *r = registry.active; r; r = r->next) {
        if (r->pid == pid) {
            return r;
        }
    }
    return NULL;
}

static const struct active_run *active_by_tag(const char *tag)
{
    for (const struct active_run *r = registry.active; r; r = r->next) {
        if (strcmp(r->tag, tag) == 0) {
            return r;
        }
    }
    return NULL;
}

static bool is_kept(pid_t pid)
{
    for (size_t i = 0; i < registry.n_kept; i++) {
        if (registry.kept[i].pid == pid) {
            return true;
        }
    }
    return false;
}

static bool is_kept_session(pid_t session)
{
    for (size_t i = 0; i < registry.n_kept; i++) {
        if (registry.kept[i].session == session) {
            return true;
        }
    }
    return false;
}

static void keep(pid_t pid, pid_t session)
{
    if (is_kept(pid)) {
        return;
    }
    if (registry.n_kept == registry.cap_kept) {
        registry.cap_kept = registry.cap_kept > 0 ? registry.cap_kept * 2 : 16;
        registry.kept = xrealloc(registry.kept, registry.cap_kept * sizeof(*registry.kept));
    }
    registry.kept[registry.n_kept++] = (struct kept){ .pid = pid, .session = session };
}

/* Children of the main thread; without the kernel's list, of all threads. */
static void main_children(struct pids *ret)
{
    char text[LIST_BYTES];
    size_t have = 0;
    off_t offset = 0;
    ssize_t n = -1;

    while (registry.children_fd >= 0) {
        n = pread(registry.children_fd, text + have, sizeof(text) - have, offset);
        if (n <= 0) {
            break;
        }
        offset += n;
        have += (size_t)n;

        /* A number may be cut by the end of the read: keep its digits for the next. */
        size_t whole = have;

        while (whole > 0 && text[whole - 1] != ' ') {
            whole--;
        }
        proc_parse_pids(text, whole, ret);
        have -= whole;
        memmove(text, text + whole, have);
    }
    if (n < 0) {
        proc_children_scan(getpid(), ret);
    }
}

bool orphans_none(void)
{
    CLEANUP(pids_done) struct pids children = { 0 };
    char probe[1];
    bool none = true;

    if (registry.children_fd >= 0 && pread(registry.children_fd, probe, sizeof(probe), 0) == 0) {
        return true;
    }
    lock();
    main_children(&children);
    for (size_t i = 0; i < children.n && none; i++) {
        none = active_by_pid(children.at[i]) || is_kept(children.at[i]);
    }
    unlock();
    return none;
}

static bool is_mark(uint64_t slack_ns)
{
    return slack_ns > SLACK_NS && slack_ns <= SLACK_NS + SLACK_MARKS;
}

/* By the mark that it inherited. *ret_old: it is of a run that has ended. */
static const struct active_run *active_by_mark(pid_t pid, bool *ret_old)
{
    uint64_t slack_ns;

    *ret_old = false;
    if (!proc_slack(pid, &slack_ns) || !is_mark(slack_ns)) {
        return NULL;
    }
    for (const struct active_run *r = registry.active; r; r = r->next) {
        if (r->slack_ns == slack_ns) {
            return r;
        }
    }
    *ret_old = true;
    return NULL;
}

/*
 * Whose the orphan s is; NULL: nobody's, for now or for good. *ret_sure is false
 * when a second look may tell more.
 */
static const struct active_run *owner_of(const struct proc_stat *s, bool *ret_sure)
{
    const struct active_run *owner = active_by_pid(s->session);
    char tag[PROC_TAG_SIZE];
    bool old;

    *ret_sure = true;
    if (owner) {
        return owner;
    }
    switch (proc_tag(s->pid, tag)) {
    case PROC_TAG_FOUND:
        owner = active_by_tag(tag);
        if (!owner) {
            keep(s->pid, s->session); /* started by what an earlier run left */
        }
        return owner;
    case PROC_TAG_UNKNOWN:
        *ret_sure = false;
        break;
    case PROC_TAG_NONE:
        break;
    }
    owner = active_by_mark(s->pid, &old);
    if (owner) {
        *ret_sure = true;
        return owner;
    }
    if (old || is_kept_session(s->session)) {
        keep(s->pid, s->session);
        return NULL;
    }
    return registry.active && !registry.active->next ? registry.active : NULL;
}

/* Reap an orphan that has ended. False when it has not. */
static bool reap(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == pid;
}

/*
 * One look at the list. False when something in it had ended before it could be
 * looked at: whatever that had started is an orphan now, and not in this list.
 */
static bool look(const struct active_run *r, struct tree *t)
{
    CLEANUP(pids_done) struct pids children = { 0 };
    struct proc_stat s;
    bool settled = true;

    main_children(&children);
    for (size_t i = 0; i < children.n; i++) {
        pid_t pid = children.at[i];

        if (active_by_pid(pid) || is_kept(pid)) {
            continue;
        }
        if (!proc_stat(pid, &s) || s.ppid != getpid() || !proc_alive(&s)) {
            settled = !reap(pid) && settled;
            continue;
        }

        bool sure;
        const struct active_run *owner = owner_of(&s, &sure);

        settled = settled && (owner || sure);
        if (owner == r) {
            (void)tree_add(t, pid);
        }
    }
    return settled;
}

void orphans_of(const struct active_run *r, struct tree *t)
{
    bool settled = false;

    for (int i = 0; i < MAX_LOOKS && !settled; i++) {
        if (i > 0) {
            (void)usleep(LOOK_PAUSE_US);
        }
        lock();
        settled = look(r, t);
        unlock();
    }
}

void orphans_keep(const struct tree *t)
{
    lock();
    for (size_t i = 0; i < t->n; i++) {
        if (t->at[i].ppid == getpid()) {
            keep(t->at[i].pid, t->at[i].session);
        }
    }
    unlock();
}

void orphans_abandon(pid_t pid)
{
    lock();
    keep(pid, pid);
    unlock();
}

static bool is_child(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

void process_reap(void)
{
    CLEANUP(pids_done) struct pids children = { 0 };
    size_t left = 0;

    lock();
    for (size_t i = 0; i < registry.n_kept; i++) {
        if (is_child(registry.kept[i].pid)) {
            registry.kept[left++] = registry.kept[i];
        }
    }
    registry.n_kept = left;
    main_children(&children);
    for (size_t i = 0; i < children.n; i++) {
        if (!active_by_pid(children.at[i]) && !is_kept(children.at[i])) {
            (void)reap(children.at[i]);
        }
    }
    unlock();
}
