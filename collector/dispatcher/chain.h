/*
 * chain: run the chains of one dispatch, whatever the contract.
 *
 *     dispatch_init ─▶ chain_prepare (open, plan) ─▶ chain_run ─▶ ops->reply ─▶ dispatch_done
 *
 * Every hook of the plan ends with its struct execution filled: run, or skipped
 * and why. A wave's steps run side by side and are folded in order; once fold
 * says stop, what is left is skipped as `short_circuit`. A cancelled chain
 * becomes `cancelled`, one that cannot be run `error`; a chain never waits
 * longer than the sum of its steps' limits.
 * Thread: the worker that owns the dispatch.
 */
#pragma once

#include "collector/contract/contract.h"
#include "collector/process/process.h"

/* Told before and after each hook; the recorder keeps its in-flight slots by it. */
struct chain_observer {
    /* Before the hook is started. `tag` is its PROCESS_TAG. */
    void (*on_start)(void *ctx, struct dispatch *d, const struct chain *c, const struct step *s,
                     const char *tag);
    /* The process exists. */
    void (*on_pid)(void *ctx, const struct step *s, pid_t pid, uint64_t start_ticks);
    /* It has ended, by itself or not. */
    void (*on_end)(void *ctx, struct dispatch *d, const struct step *s);
    void *ctx;
};

struct chain_options {
    const struct process_options *process;
    const struct chain_observer *observer; /* NULL: nobody */
};

/*
 * Open the request and plan its chains.
 * Errors: ERR_INVALID: refused, nothing ran, the text names the key.
 */
bool chain_prepare(struct dispatch *d, struct err *err) MUST_CHECK;

/* True when at least one step would run something. */
bool chain_runs_something(const struct dispatch *d);

/* Run all chains, in order. Never fails as a whole: the outcome is in the chains. */
void chain_run(struct dispatch *d, const struct chain_options *o);

/*
 * The evaluation of chain c, from the dispatch's facts and what its steps did;
 * not redacted yet. Slices point into the dispatch's arena.
 */
void chain_evaluation(struct dispatch *d, const struct chain *c, struct evaluation *ret);
