#include "collector/dispatcher/chain.h"

#include <poll.h>
#include <stdio.h>

#include "collector/base/clock.h"
#include "collector/dispatcher/runner.h"

enum { TAG_SIZE = ID_TEXT_SIZE + 12 }; /* an evaluation's id, a dot, an ordinal */

/* ---- Prepare -------------------------------------------------------------- */

static size_t count_steps(const struct chain *c)
{
    size_t n = 0;

    for (size_t w = 0; w < c->n_waves; w++) {
        n += c->waves[w].n_steps;
    }
    return n;
}

/* What is known of a step before it runs; until then it counts as short-circuited. */
static void describe(const struct step *s, uint32_t ordinal, struct execution *ret)
{
    *ret = (struct execution){
        .ordinal = ordinal,
        .hook_name = s->hook->name,
        .hook_type = s->hook->type,
        .tier = s->hook->tier,
        .decision = DECISION_SKIPPED,
        .skip_reason = s->run ? SKIP_SHORT_CIRCUIT : s->skip,
        .matcher = s->hook->matcher,
        .matcher_mode = s->matcher_mode,
        .fail_mode = s->hook->fail_mode,
    };
}

/* One row of executions a chain: the record takes them as they lie. */
static bool prepare_executions(struct arena *a, struct chain *c)
{
    struct execution *e = arena_alloc(a, count_steps(c), sizeof(*e));
    uint32_t ordinal = 0;

    if (!e) {
        return false;
    }
    for (size_t w = 0; w < c->n_waves; w++) {
        for (size_t i = 0; i < c->waves[w].n_steps; i++) {
            struct step *s = &c->waves[w].steps[i];

            s->execution = &e[ordinal];
            describe(s, ordinal++, s->execution);
        }
    }
    return true;
}

bool chain_prepare(struct dispatch *d, struct err *err)
{
    const struct contract_ops *ops = d->set->ops;

    if (!ops->open(d, err) || !ops->plan(d, err)) {
        return false;
    }
    for (size_t i = 0; i < d->n_chains; i++) {
        struct chain *c = &d->chains[i];

        c->id = id_new();
        if (count_steps(c) > 0 && !prepare_executions(&d->arena, c)) {
            return err_set(err, ERR_TOO_BIG, "no memory is left for this dispatch's hooks");
        }
    }
    return true;
}

static bool wave_runs_something(const struct wave *w)
{
    for (size_t i = 0; i < w->n_steps; i++) {
        if (w->steps[i].run) {
            return true;
        }
    }
    return false;
}

static bool runs_something(const struct chain *c)
{
    for (size_t w = 0; w < c->n_waves; w++) {
        if (wave_runs_something(&c->waves[w])) {
            return true;
        }
    }
    return false;
}

bool chain_runs_something(const struct dispatch *d)
{
    for (size_t i = 0; i < d->n_chains; i++) {
        if (runs_something(&d->chains[i])) {
            return true;
        }
    }
    return false;
}

/* ---- Jobs ----------------------------------------------------------------- */

void job_starts(const struct job *j)
{
    if (j->observer && j->observer->on_start) {
        j->observer->on_start(j->observer->ctx, j->dispatch, j->chain, j->step, j->tag);
    }
}

void job_ended(const struct job *j)
{
    if (j->observer && j->observer->on_end) {
        j->observer->on_end(j->observer->ctx, j->dispatch, j->step);
    }
}

void job_failed(struct job *j, enum cause cause, struct slice failure)
{
    j->ready = false;
    j->outcome.cause = cause;
    if (!arena_dup(&j->dispatch->arena, failure, &j->outcome.failure)) {
        j->outcome.failure = SLICE("no memory is left for this dispatch");
    }
}

static void prepare_job(struct job *j)
{
    struct dispatch *d = j->dispatch;
    char *tag = arena_alloc(&d->arena, TAG_SIZE, 1);
    struct err err;

    if (!tag) {
        job_failed(j, CAUSE_INPUT, SLICE("no memory is left for this dispatch"));
        return;
    }
    (void)snprintf(tag, TAG_SIZE, "%s.%u", j->chain->id.text, j->step->execution->ordinal);
    j->tag = tag;
    j->ready = d->set->ops->input(d, j->chain, j->step, &j->input, &err);
    if (!j->ready) {
        job_failed(j, CAUSE_INPUT, slice_from_cstr(err.text));
    }
}

/* ---- Run ------------------------------------------------------------------ */

static void write_down(const struct job *j, const struct verdict *v)
{
    struct execution *e = j->step->execution;

    e->decision = v->decision;
    e->skip_reason = SKIP_NONE;
    e->reason.text = v->reason;
    e->blank_reason = v->blank_reason;
    e->exception_type = v->exception_type;
    e->cause = v->cause;
    e->intended = v->intended;
    e->has_exit_code = j->outcome.has_exit_code;
    e->exit_code = j->outcome.exit_code;
    e->signal = j->outcome.signal;
    e->timed_out = j->outcome.timed_out;
}

/* Nobody waits for the verdict any more: the hook has none. */
static void write_cancelled(const struct job *j)
{
    const struct verdict v = {
        .decision = DECISION_CANCELLED,
        .reason = j->outcome.failure,
        .cause = CAUSE_CANCELLED,
    };

    write_down(j, &v);
}

/*
 * Everything in a wave has run, so everything is judged and folded, in order: a
 * stop is about the waves to come. A chain that was cancelled has no other
 * decision, whatever its hooks had said before.
 */
static void judge_all(struct dispatch *d, struct chain *c, const struct job *jobs, size_t n)
{
    const struct contract_ops *ops = d->set->ops;
    bool cancelled = false;

    for (size_t i = 0; i < n; i++) {
        const struct job *j = &jobs[i];
        struct verdict v = { 0 };

        if (j->outcome.cause == CAUSE_CANCELLED) {
            write_cancelled(j);
            cancelled = true;
            continue;
        }
        ops->judge(d, j->step, &j->outcome, &v);
        write_down(j, &v);
        if (ops->fold(d, c, j->step, &v) == FOLD_STOP) {
            c->stopped = true;
        }
    }
    if (cancelled) {
        c->decision = DECISION_CANCELLED;
        c->stopped = true;
    }
}

static void fail_chain(struct chain *c, struct slice reason)
{
    c->decision = DECISION_ERROR;
    c->reason = reason;
    c->stopped = true;
}

static void run_wave(struct dispatch *d, struct chain *c, const struct wave *w,
                     const struct chain_options *o)
{
    struct job *jobs = arena_alloc(&d->arena, w->n_steps, sizeof(*jobs));
    size_t n = 0;

    if (!jobs) {
        fail_chain(c, SLICE("no memory is left for this dispatch's hooks"));
        return;
    }
    for (size_t i = 0; i < w->n_steps; i++) {
        if (w->steps[i].run) {
            jobs[n] = (struct job){
                .dispatch = d, .chain = c, .step = &w->steps[i], .observer = o->observer
            };
            prepare_job(&jobs[n++]);
        }
    }
    run_command(jobs, n, o->process);
    run_http(jobs, n);
    run_prompt(jobs, n);
    judge_all(d, c, jobs, n);
}

/* True when the client has closed its socket, which is polled as process_run() does. */
static bool client_is_gone(const struct dispatch *d)
{
    struct pollfd client = { .fd = d->cancel_fd, .events = POLLRDHUP };

    return d->cancel_fd >= 0 && poll(&client, 1, 0) > 0;
}

static void run_chain(struct dispatch *d, struct chain *c, const struct chain_options *o)
{
    int64_t started_us = clock_mono_us();

    c->started_us = clock_now_us();
    for (size_t w = 0; w < c->n_waves && !c->stopped; w++) {
        if (!wave_runs_something(&c->waves[w])) {
            continue;
        }
        if (client_is_gone(d)) {
            c->decision = DECISION_CANCELLED;
            break;
        }
        run_wave(d, c, &c->waves[w], o);
    }
    c->duration_us = clock_mono_us() - started_us;
}

void chain_run(struct dispatch *d, const struct chain_options *o)
{
    for (size_t i = 0; i < d->n_chains; i++) {
        run_chain(d, &d->chains[i], o);
    }
}

/* ---- The record ----------------------------------------------------------- */

static void count_run(const struct execution *e, struct evaluation *ret)
{
    if (e->decision == DECISION_SKIPPED) {
        return;
    }
    ret->hooks_run++;
    switch (e->tier) {
    case TIER_SYSTEM:
        ret->system_hooks_run++;
        return;
    case TIER_AGENT:
        ret->agent_hooks_run++;
        return;
    case TIER_USER_GLOBAL:
        ret->user_global_hooks_run++;
        return;
    case TIER_NONE:
    case TIER_COUNT:
        return;
    }
}

/* The row that prepare_executions() made begins at the first step's. */
static struct execution *first_execution(const struct chain *c)
{
    for (size_t w = 0; w < c->n_waves; w++) {
        if (c->waves[w].n_steps > 0) {
            return c->waves[w].steps[0].execution;
        }
    }
    return NULL;
}

void chain_evaluation(struct dispatch *d, const struct chain *c, struct evaluation *ret)
{
    *ret = d->facts;
    ret->head.id = id_slice(&c->id);
    ret->head.time_us = c->started_us > 0 ? c->started_us : d->received_us;
    ret->dispatch_id = id_slice(&d->id);
    ret->source = SOURCE_DISPATCHER;
    ret->contract = slice_from_cstr(d->set->ops->name);
    ret->chain = c->kind;
    ret->duration_us = c->duration_us;
    ret->queue_us = d->queue_us;
    ret->final_decision = c->decision;
    ret->reason.text = c->reason;
    ret->allowing_hook = c->allowing_hook;
    ret->hooks_configured = c->hooks_configured;
    ret->rejection_count = c->rejection_count;
    ret->config_digest = slice_from_cstr(d->set->digest_hex);
    ret->hooks = first_execution(c);
    ret->n_hooks = ret->hooks ? count_steps(c) : 0;
    for (size_t i = 0; i < ret->n_hooks; i++) {
        count_run(&ret->hooks[i], ret);
    }
}
