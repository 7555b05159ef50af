#include <stdio.h>
#include <string.h>

#include "collector/dispatcher/runner.h"

enum { FAILURE_SIZE = 128 };

/* ---- What a process did, in the words of an outcome ----------------------- */

static void failed_by_signal(struct job *j, int signal)
{
    const char *name = sigabbrev_np(signal);
    char text[FAILURE_SIZE];

    (void)snprintf(text, sizeof(text), "ended by signal %d%s%s", signal, name ? " SIG" : "",
                   name ? name : "");
    j->outcome.signal = signal;
    job_failed(j, CAUSE_SIGNAL, slice_from_cstr(text));
}

static void failed_by_timeout(struct job *j)
{
    int64_t ms = j->step->timeout_ms;
    char text[FAILURE_SIZE];

    if (ms % 1000 == 0) {
        (void)snprintf(text, sizeof(text), "timed out after %lld s", (long long)(ms / 1000));
    } else {
        (void)snprintf(text, sizeof(text), "timed out after %lld ms", (long long)ms);
    }
    j->outcome.timed_out = true;
    job_failed(j, CAUSE_TIMEOUT, slice_from_cstr(text));
}

static void tell_end(struct job *j, const struct process_result *r)
{
    switch (r->end) {
    case PROCESS_EXITED:
        j->outcome.has_exit_code = true;
        j->outcome.exit_code = r->exit_code;
        return;
    case PROCESS_SIGNALED:
        failed_by_signal(j, r->signal);
        return;
    case PROCESS_TIMED_OUT:
        failed_by_timeout(j);
        return;
    case PROCESS_OUTPUT_LIMIT:
        job_failed(j, CAUSE_OUTPUT_LIMIT, slice_from_cstr(r->err.text));
        return;
    case PROCESS_CANCELLED:
        job_failed(j, CAUSE_CANCELLED, slice_from_cstr(r->err.text));
        return;
    case PROCESS_SPAWN_FAILED:
        job_failed(j, CAUSE_SPAWN, slice_from_cstr(r->err.text));
        return;
    }
}

/*
 * The output moves to the dispatch, which lives as long as verdict and record
 * point into it. That is bounded by the dispatch's arena: what does not fit there
 * is an output that is too large.
 */
static void tell_output(struct job *j, struct process_result *r)
{
    struct arena *a = &j->dispatch->arena;

    if (!arena_dup(a, buf_slice(&r->out), &j->outcome.out) ||
        !arena_dup(a, buf_slice(&r->err_out), &j->outcome.err_out)) {
        job_failed(j, CAUSE_OUTPUT_LIMIT,
                   SLICE("no memory is left for the output of this dispatch"));
    }
}

static void tell(struct job *j, struct process_result *r)
{
    struct execution *e = j->step->execution;

    tell_end(j, r);
    tell_output(j, r);
    e->duration_us = r->duration_us;
    e->stdout_bytes = r->stdout_bytes;
    e->stderr_tail = j->outcome.err_out; /* whole: the recorder redacts it before it cuts */
    e->left_behind = r->left_behind;
}

/* ---- Running -------------------------------------------------------------- */

static void on_started(void *ctx, pid_t pid, uint64_t start_ticks)
{
    const struct job *j = ctx;

    j->observer->on_pid(j->observer->ctx, j->step, pid, start_ticks);
}

static struct process_spec spec_of(struct job *j)
{
    const struct step *s = j->step;
    bool watched = j->observer && j->observer->on_pid;

    return (struct process_spec){
        .argv = j->input.argv,
        .envp = j->input.envp,
        .cwd = j->input.cwd,
        .tag = j->tag,
        .input = j->input.body,
        .timeout_ms = s->timeout_ms,
        .drain_ms = s->drain_ms,
        .stdout_limit_bytes = s->output_limit_bytes,
        .stderr_limit_bytes = s->output_limit_bytes,
        .stderr_tail_bytes = s->stderr_tail_bytes,
        .on_started = watched ? on_started : NULL,
        .ctx = j,
    };
}

static bool is_mine(const struct job *j)
{
    return j->ready && j->step->hook->type == HOOK_COMMAND;
}

void run_command(struct job *jobs, size_t n, const struct process_options *o)
{
    struct arena *a = &jobs[0].dispatch->arena;
    struct process_spec *specs = arena_alloc(a, n, sizeof(*specs));
    struct process_result *results = arena_alloc(a, n, sizeof(*results));
    size_t mine = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_mine(&jobs[i])) {
            continue;
        }
        if (!specs || !results) {
            job_failed(&jobs[i], CAUSE_INPUT, SLICE("no memory is left for this dispatch"));
            continue;
        }
        job_starts(&jobs[i]);
        specs[mine++] = spec_of(&jobs[i]);
    }
    if (mine == 0) {
        return;
    }
    process_run(specs, results, mine, jobs[0].dispatch->cancel_fd, o);
    mine = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_mine(&jobs[i])) {
            tell(&jobs[i], &results[mine]);
            process_result_done(&results[mine++]);
            job_ended(&jobs[i]);
        }
    }
}
