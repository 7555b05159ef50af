#include "collector/process/process.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/process/ending.h"
#include "collector/process/spawn.h"
#include "collector/process/stream.h"

enum {
    TREE_LOOK_MS = 10,   /* how often we look whether the rest of an ending tree is gone */
    KILL_WAIT_MS = 1000, /* what KILL does not end by then hangs in the kernel */
};

/* The child lives; it has exited and its pipes are read out; all is over. */
enum phase { PHASE_ALIVE, PHASE_DRAIN, PHASE_OVER };

struct run {
    const struct process_spec *spec;
    struct process_result *result;
    const struct process_options *o;
    struct active_run active;
    struct spawned child;
    struct stream out;
    struct stream err;
    struct slice input; /* not written yet */
    int64_t started_us;
    enum phase phase;
    int64_t until_ms; /* when something must happen although nothing was heard */
    bool ending;      /* by us: TERM was sent; KILL comes at kill_at_ms */
    bool killed;
    int64_t kill_at_ms;
};

/* ---- Start ---------------------------------------------------------------- */

static void result_init(struct process_result *ret, const struct process_spec *spec,
                        struct budget *budget)
{
    *ret = (struct process_result){ .budget = budget };
    buf_init(&ret->out, spec->stdout_limit_bytes);
    buf_init(&ret->err_out,
             spec->stderr_limit_bytes > 0 ? spec->stderr_limit_bytes : 2 * spec->stderr_tail_bytes);
}

static void streams_init(struct run *r)
{
    struct process_result *result = r->result;

    r->out = (struct stream){
        .kept = &result->out,
        .total_bytes = &result->stdout_bytes,
        .limit_bytes = r->spec->stdout_limit_bytes,
        .budget = result->budget,
        .budget_bytes = &result->budget_bytes,
    };
    r->err = r->out;
    r->err.kept = &result->err_out;
    r->err.total_bytes = &result->stderr_bytes;
    r->err.limit_bytes = r->spec->stderr_limit_bytes;
    r->err.tail_bytes = r->spec->stderr_tail_bytes;
}

static void start(struct run *r)
{
    const struct process_spec *spec = r->spec;

    result_init(r->result, spec, r->o->budget);
    streams_init(r);
    r->started_us = clock_mono_us();
    if (!spawn_child(spec, &r->active, &r->child, &r->result->err)) {
        r->result->end = PROCESS_SPAWN_FAILED;
        r->result->duration_us = clock_mono_us() - r->started_us;
        r->phase = PHASE_OVER;
        return;
    }
    r->input = spec->input;
    r->until_ms = clock_mono_ms() + spec->timeout_ms;
    if (spec->on_started) {
        spec->on_started(spec->ctx, r->child.pid, r->child.start_ticks);
    }
}

/* ---- End ------------------------------------------------------------------ */

static pid_t living_child(const struct run *r)
{
    return r->phase == PHASE_ALIVE ? r->child.pid : 0;
}

/* Ask the child and all it has started to end; `why` is for people. */
static void begin_end(struct run *r, enum process_end end, const char *why)
{
    if (r->ending || r->phase != PHASE_ALIVE) {
        return;
    }
    r->ending = true;
    r->kill_at_ms = clock_mono_ms() + PROCESS_GRACE_MS;
    r->until_ms = r->kill_at_ms;
    r->result->end = end;
    r->result->signal = SIGTERM;
    (void)err_set(&r->result->err, ERR_AGAIN, "%s", why);
    ending_ask(&r->active, living_child(r));
}

static void kill_all(struct run *r)
{
    r->killed = true;
    r->result->signal = SIGKILL;
    r->until_ms = clock_mono_ms() + KILL_WAIT_MS;
    ending_kill(&r->active, living_child(r));
}

static void finish(struct run *r)
{
    r->phase = PHASE_OVER;
    spawned_close(&r->child);
    stream_finish(&r->out);
    stream_finish(&r->err);
    r->result->duration_us = clock_mono_us() - r->started_us;
    r->result->left_behind = ending_left_behind(&r->active, r->ending, r->o->end_left_behind);
    orphans_leave(&r->active);
}

/* The child has exited; its pipes may hold more, or be held open by what it left. */
static void on_exited(struct run *r)
{
    siginfo_t info = { 0 };

    if (waitid(P_PIDFD, (id_t)r->child.pidfd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
        return;
    }
    if (!r->ending && info.si_code == CLD_EXITED) {
        r->result->end = PROCESS_EXITED;
        r->result->exit_code = info.si_status;
    } else if (!r->ending) {
        r->result->end = PROCESS_SIGNALED;
        r->result->signal = info.si_status;
    }
    fs_closep(&r->child.pidfd);
    fs_closep(&r->child.in);
    r->phase = PHASE_DRAIN;
    r->until_ms = clock_mono_ms() + r->spec->drain_ms;
}

/* True when the verdict can be taken: nothing more to read, nothing more to end. */
static bool drained(struct run *r, int64_t now_ms)
{
    if ((r->child.out >= 0 || r->child.err >= 0) && now_ms < r->until_ms) {
        return false;
    }
    if (!r->ending || r->killed || !ending_has_members(&r->active)) {
        return true;
    }

    /* The child has heeded TERM, and something that it started has not. */
    if (now_ms >= r->kill_at_ms) {
        kill_all(r);
        return true;
    }
    r->until_ms = now_ms + TREE_LOOK_MS;
    r->until_ms = r->until_ms < r->kill_at_ms ? r->until_ms : r->kill_at_ms;
    return false;
}

/* Do what the clock asks for. */
static void on_time(struct run *r, int64_t now_ms)
{
    switch (r->phase) {
    case PHASE_ALIVE:
        if (now_ms < r->until_ms) {
            return;
        }
        if (!r->ending) {
            begin_end(r, PROCESS_TIMED_OUT, "timed out");
        } else if (!r->killed) {
            kill_all(r);
        } else {
            orphans_abandon(r->child.pid);
            finish(r);
        }
        return;
    case PHASE_DRAIN:
        if (drained(r, now_ms)) {
            finish(r);
        }
        return;
    case PHASE_OVER:
        return;
    }
}

/* ---- Pipes ---------------------------------------------------------------- */

static void limit_passed(struct run *r, const char *why)
{
    begin_end(r, PROCESS_OUTPUT_LIMIT, why);
    if (r->phase == PHASE_DRAIN && !r->ending) {
        r->result->end = PROCESS_OUTPUT_LIMIT;
        (void)err_set(&r->result->err, ERR_TOO_BIG, "%s", why);
    }
}

static void on_readable(struct run *r, struct stream *s, int *fd, short revents)
{
    if (revents == POLLHUP) {
        fs_closep(fd);
        return;
    }
    switch (stream_read(s, *fd)) {
    case STREAM_MORE:
        return;
    case STREAM_END:
        fs_closep(fd);
        return;
    case STREAM_LIMIT:
        limit_passed(r, s == &r->out ? "stdout passed its limit" : "stderr passed its limit");
        return;
    case STREAM_NO_ROOM:
        limit_passed(r, "no memory is left for the output of hooks");
        return;
    }
}

/* A child that closes its input, or never reads it, is no failure. */
static void on_writable(struct run *r)
{
    ssize_t n = write(r->child.in, r->input.ptr, r->input.len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n > 0) {
        r->input.ptr += n;
        r->input.len -= (size_t)n;
    }
    if (n < 0 || r->input.len == 0) {
        fs_closep(&r->child.in);
    }
}

/* ---- The loop ------------------------------------------------------------- */

enum { FD_EXIT, FD_IN, FD_OUT, FD_ERR, FDS_PER_RUN };

static void fill_fds(const struct run *r, struct pollfd fds[FDS_PER_RUN])
{
    fds[FD_EXIT] = (struct pollfd){ .fd = r->child.pidfd, .events = POLLIN };
    fds[FD_IN] = (struct pollfd){ .fd = r->child.in, .events = POLLOUT };
    fds[FD_OUT] = (struct pollfd){ .fd = r->child.out, .events = POLLIN };
    fds[FD_ERR] = (struct pollfd){ .fd = r->child.err, .events = POLLIN };
}

static void on_events(struct run *r, const struct pollfd fds[FDS_PER_RUN])
{
    if (r->phase == PHASE_OVER) {
        return;
    }
    if (fds[FD_OUT].revents) {
        on_readable(r, &r->out, &r->child.out, fds[FD_OUT].revents);
    }
    if (fds[FD_ERR].revents) {
        on_readable(r, &r->err, &r->child.err, fds[FD_ERR].revents);
    }
    if (fds[FD_IN].revents) {
        on_writable(r);
    }
    if (fds[FD_EXIT].revents) {
        on_exited(r);
    }
}

/* Let time pass over all runs; when the next must act, in *ret_ms. False: all are over. */
static bool next_deadline(struct run *runs, size_t n, int64_t *ret_ms)
{
    int64_t now_ms = clock_mono_ms();
    bool any = false;

    *ret_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        on_time(&runs[i], now_ms);
        if (runs[i].phase != PHASE_OVER) {
            any = true;
            *ret_ms = runs[i].until_ms < *ret_ms ? runs[i].until_ms : *ret_ms;
        }
    }
    return any;
}

static void loop(struct run *runs, size_t n, struct pollfd *fds, int cancel_fd)
{
    struct pollfd *cancel = &fds[n * FDS_PER_RUN];
    int64_t deadline_ms;

    *cancel = (struct pollfd){ .fd = cancel_fd, .events = POLLRDHUP };
    while (next_deadline(runs, n, &deadline_ms)) {
        for (size_t i = 0; i < n; i++) {
            fill_fds(&runs[i], &fds[i * FDS_PER_RUN]);
        }
        if (poll(fds, n * FDS_PER_RUN + 1, clock_left_ms(deadline_ms)) <= 0) {
            continue; /* time has passed, or a signal came */
        }
        for (size_t i = 0; i < n; i++) {
            on_events(&runs[i], &fds[i * FDS_PER_RUN]);
        }
        if (cancel->revents) {
            cancel->fd = -1;
            for (size_t i = 0; i < n; i++) {
                begin_end(&runs[i], PROCESS_CANCELLED, "cancelled: the caller went away");
            }
        }
    }
}

void process_run(const struct process_spec *specs, struct process_result *results, size_t n,
                 int cancel_fd, const struct process_options *o)
{
    struct run *runs = xcalloc(n, sizeof(*runs));
    struct pollfd *fds = xcalloc(n * FDS_PER_RUN + 1, sizeof(*fds));

    for (size_t i = 0; i < n; i++) {
        runs[i] = (struct run){ .spec = &specs[i], .result = &results[i], .o = o };
        start(&runs[i]);
    }
    loop(runs, n, fds, cancel_fd);
    free(fds);
    free(runs);
}

void process_result_done(struct process_result *r)
{
    if (r->budget) {
        budget_give(r->budget, r->budget_bytes);
    }
    r->budget_bytes = 0;
    buf_done(&r->out);
    buf_done(&r->err_out);
}
