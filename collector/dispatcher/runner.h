/*
 * runner: run the hooks of one wave, each kind in its way.
 *
 * A job is one step that runs: its input, and the outcome that a runner fills.
 * A runner returns when all of its jobs are done; it judges nothing.
 */
#pragma once

#include "collector/dispatcher/chain.h"

struct job {
    struct dispatch *dispatch;
    const struct chain *chain;
    struct step *step;
    const struct chain_observer *observer; /* NULL: nobody */
    const char *tag;                       /* its PROCESS_TAG */
    struct hook_input input;
    bool ready; /* there is an input, and no outcome yet */
    struct outcome outcome;
};

/* Run the command hooks among n jobs side by side; others are passed over. */
void run_command(struct job *jobs, size_t n, const struct process_options *o);

/* The same for HTTP hooks, and for prompt hooks. */
void run_http(struct job *jobs, size_t n);
void run_prompt(struct job *jobs, size_t n);

/* Tell the observer, if any, that the hook is about to start, or has ended. */
void job_starts(const struct job *j);
void job_ended(const struct job *j);

/* The job failed, before it could run or since. `failure` is copied. */
void job_failed(struct job *j, enum cause cause, struct slice failure);
