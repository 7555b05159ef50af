#include "tests/unit/dispatcher/fake_contract.h"

#include <string.h>

enum { MIB = 1024 * 1024, TAIL_BYTES = 16 };

static bool fake_open(struct dispatch *d, struct err *err)
{
    if (slice_equal(d->request, SLICE("refuse"))) {
        return err_set(err, ERR_INVALID, "refused");
    }
    d->facts.thread_id = SLICE("thread-1");
    return true;
}

static const struct fake_set *set_of(const struct dispatch *d)
{
    return d->set->own;
}

static void plan_step(const struct dispatch *d, size_t i, struct step *ret)
{
    const struct fake_step *f = &set_of(d)->steps[i];

    *ret = (struct step){
        .hook = &d->set->hooks[i],
        .run = f->skip == SKIP_NONE,
        .skip = f->skip,
        .matcher_mode = MATCHER_ANY,
        .timeout_ms = f->timeout_ms > 0 ? f->timeout_ms : 10000,
        .drain_ms = 100,
        .output_limit_bytes = f->output_limit > 0 ? f->output_limit : MIB,
        .stderr_tail_bytes = TAIL_BYTES,
    };
}

/* Room for as many chains, waves and steps as there are hooks is always enough. */
static bool fake_plan(struct dispatch *d, struct err *err)
{
    const struct fake_set *set = set_of(d);
    struct step *steps = arena_alloc(&d->arena, set->n + 1, sizeof(*steps));

    (void)err;
    d->chains = arena_alloc(&d->arena, set->n + 1, sizeof(*d->chains));
    d->n_chains = set->n > 0 ? set->steps[set->n - 1].chain + 1 : 0;
    for (size_t i = 0; i < d->n_chains; i++) {
        d->chains[i].kind = CHAIN_ALL;
        d->chains[i].waves = arena_alloc(&d->arena, set->n, sizeof(struct wave));
    }
    for (size_t i = 0; i < set->n; i++) {
        struct chain *c = &d->chains[set->steps[i].chain];
        struct wave *w = &c->waves[set->steps[i].wave];

        plan_step(d, i, &steps[i]);
        w->steps = w->n_steps > 0 ? w->steps : &steps[i];
        w->n_steps++;
        c->n_waves = set->steps[i].wave + 1;
        c->hooks_configured++;
    }
    return true;
}

static bool fake_input(struct dispatch *d, const struct chain *chain, const struct step *step,
                       struct hook_input *ret, struct err *err)
{
    static const char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
    const struct fake_step *f = &set_of(d)->steps[step->hook - d->set->hooks];
    const char **argv = arena_alloc(&d->arena, 4, sizeof(*argv));

    (void)chain;
    if (f->input_fails || !argv) {
        return err_set(err, ERR_IO, "no room for the input");
    }
    argv[0] = f->script[0] == '/' ? f->script : "/bin/sh";
    argv[1] = f->script[0] == '/' ? NULL : "-c";
    argv[2] = f->script;
    *ret = (struct hook_input){ .argv = argv, .envp = envp, .body = d->request };
    return true;
}

static void fake_judge(struct dispatch *d, const struct step *step, const struct outcome *outcome,
                       struct verdict *ret)
{
    static const enum decision by_exit[] = { DECISION_PASS, DECISION_REJECT, DECISION_DENY };

    (void)d;
    (void)step;
    if (outcome->cause != CAUSE_NONE) {
        *ret = (struct verdict){ .decision = DECISION_ERROR,
                                 .cause = outcome->cause,
                                 .reason = outcome->failure };
        return;
    }
    *ret =
        (struct verdict){ .decision = by_exit[outcome->exit_code % 3], .reason = outcome->err_out };
}

static enum fold_result fake_fold(struct dispatch *d, struct chain *chain, const struct step *step,
                                  const struct verdict *verdict)
{
    (void)d;
    (void)step;
    if (verdict->decision == DECISION_ERROR || chain->decision == DECISION_DENY) {
        return FOLD_GO_ON;
    }
    chain->rejection_count += verdict->decision == DECISION_REJECT;
    if (verdict->decision != DECISION_PASS || chain->decision == DECISION_NONE) {
        chain->decision = verdict->decision;
        chain->reason = verdict->reason;
    }
    return verdict->decision == DECISION_DENY ? FOLD_STOP : FOLD_GO_ON;
}

static const struct contract_ops fake_ops = {
    .name = "fake",
    .open = fake_open,
    .plan = fake_plan,
    .input = fake_input,
    .judge = fake_judge,
    .fold = fake_fold,
};

void fake_set_init(struct fake_set *f, const struct fake_step *steps, size_t n)
{
    *f = (struct fake_set){ .steps = steps, .n = n };
    arena_init(&f->set.arena, MIB);
    f->set.ops = &fake_ops;
    f->set.own = f;
    f->set.n_hooks = n;
    f->set.hooks = arena_alloc(&f->set.arena, n + 1, sizeof(*f->set.hooks));
    memset(f->set.digest_hex, 'd', sizeof(f->set.digest_hex) - 1);
    for (size_t i = 0; i < n; i++) {
        f->set.hooks[i] = (struct hook){
            .name = slice_from_cstr(steps[i].name),
            .type = steps[i].type == HOOK_NONE ? HOOK_COMMAND : steps[i].type,
            .tier = steps[i].tier,
            .matcher = SLICE("*"),
            .fail_mode = SLICE("allow"),
        };
    }
}

void fake_set_done(struct fake_set *f)
{
    arena_clear(&f->set.arena);
}
