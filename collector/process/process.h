/*
 * process: run children, feed them, read them, time them, end them.
 *
 * A child leads a session of its own, with signals and mask reset, and inherits
 * no descriptor but its three. Its input is written while its output is read,
 * so a child that never reads hurts nobody. The verdict is taken when the child
 * itself exits, plus a drain of at most drain_ms: a process it left behind with
 * the pipes open does not hold it. On timeout: TERM, PROCESS_GRACE_MS, KILL, for
 * its session and for every descendant that left it.
 *
 *     spawn ──▶ poll(pidfd, stdin, stdout, stderr, cancel) ──▶ exit ──▶ drain ──▶ result
 *                  │ deadline / cancel / output limit
 *                  └──▶ TERM ──500 ms──▶ KILL ──▶ reap
 *
 * Descendants are found through the subreaper: what outlives its parent becomes
 * a child of our main thread, where one small read tells whether there is any.
 * /proc is walked only when there is, or when a child must be ended.
 *
 * The environment variable PROCESS_TAG names the run; by it a descendant is
 * known that has left session and parents (after a crash, too).
 * Design: "Running a command hook, in every contract".
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "collector/base/budget.h"
#include "collector/base/buf.h"
#include "collector/base/err.h"

enum { PROCESS_GRACE_MS = 500 }; /* between TERM and KILL */
#define PROCESS_TAG "HOOKTRAIL_RUN"

enum process_end {
    PROCESS_EXITED,
    PROCESS_SIGNALED,     /* by somebody else */
    PROCESS_TIMED_OUT,    /* ended by us */
    PROCESS_OUTPUT_LIMIT, /* ended by us: a stream passed its limit, or the budget is empty */
    PROCESS_CANCELLED,    /* ended by us: cancel_fd */
    PROCESS_SPAWN_FAILED, /* never ran; `err` tells why */
};

struct process_spec {
    const char *const *argv;   /* NULL-terminated; argv[0] with a slash, or looked up in PATH */
    const char *const *envp;   /* whole environment, without PROCESS_TAG; NULL-terminated */
    const char *cwd;           /* NULL: ours */
    const char *tag;           /* value of PROCESS_TAG; unique to this run */
    struct slice input;        /* borrowed during the run */
    int64_t timeout_ms;        /* > 0 */
    int64_t drain_ms;          /* at most 100 */
    size_t stdout_limit_bytes; /* 0: the output is discarded, without limit */
    size_t stderr_limit_bytes; /* 0: no limit, and only the last stderr_tail_bytes are kept */
    size_t stderr_tail_bytes;

    /* Called once the child exists; start_ticks is field 22 of /proc/PID/stat. May be NULL. */
    void (*on_started)(void *ctx, pid_t pid, uint64_t start_ticks);
    void *ctx;
};

struct process_result {
    enum process_end end;
    int exit_code;         /* when PROCESS_EXITED */
    int signal;            /* when PROCESS_SIGNALED, or how we ended it */
    struct buf out;        /* owned: process_result_done() */
    struct buf err_out;    /* all of it up to the limit, or the tail */
    uint64_t stdout_bytes; /* read in all, kept or not */
    uint64_t stderr_bytes;
    int64_t duration_us;
    uint32_t left_behind; /* descendants that were alive after the drain */
    struct err err;       /* when it was ended by us, or never ran */

    struct budget *budget; /* private: where budget_bytes are given back to */
    size_t budget_bytes;
};

struct process_options {
    struct budget *budget;        /* for kept output; shared by all runs */
    _Atomic bool end_left_behind; /* end what a finished child leaves running; may change */
};

/*
 * Make this process the subreaper of its descendants. Once, at start, from the
 * main thread, before any other thread; children are spawned from any thread.
 */
bool process_init(struct err *err) MUST_CHECK;

/*
 * Run n children side by side (n >= 1) and wait for all. results[i] is filled in
 * any case. cancel_fd (-1: none): all are ended when it becomes readable with
 * nothing to read (a peer that closed) or reports POLLHUP/POLLRDHUP.
 * Returns within the longest timeout plus grace and drain.
 * Thread: any; the calling thread does the waiting.
 */
void process_run(const struct process_spec *specs, struct process_result *results, size_t n,
                 int cancel_fd, const struct process_options *o);

/* Release the output of one result. */
void process_result_done(struct process_result *r);

/* Reap orphans that ended; call it now and then (the collector's timer does). */
void process_reap(void);

/*
 * After a crash of our predecessor: end the process pid (when it still is the one
 * that started at start_ticks; pid 0: not known), its session, and everything
 * that carries `tag`. Returns how many were ended.
 */
uint32_t process_end_orphans(pid_t pid, uint64_t start_ticks, const char *tag);
