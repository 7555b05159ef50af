#include "collector/recorder/shrink.h"

#include "collector/base/utf8.h"
#include "collector/record/encode.h"

enum {
    NAME_CHARS = 256,     /* of a name, once the record must shrink */
    HOOKS_RAN_KEPT = 512, /* of the list; those that ran before those that were skipped */
    HOOKS_KEPT = 64,      /* of the list, at last */
};

static void cut_name(struct slice *name)
{
    *name = utf8_prefix(*name, NAME_CHARS);
}

static void cut_names(struct slice *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cut_name(names[i]);
    }
}

/* ---- Steps, in this order ----------------------------------------------------- */

static void drop_captured(struct evaluation *e)
{
    e->payload.captured = (struct slice){ 0 };
}

static void drop_stderr(struct evaluation *e)
{
    for (size_t i = 0; i < e->n_hooks; i++) {
        e->hooks[i].stderr_tail = (struct slice){ 0 };
    }
}

static void cut_all_names(struct evaluation *e)
{
    struct slice *const names[] = {
        &e->thread_id,       &e->run_id,    &e->call_id,       &e->user_id,
        &e->agent_name,      &e->task_id,   &e->task_run_id,   &e->execution_kind,
        &e->hook_event_type, &e->tool_name, &e->allowing_hook,
    };

    e->payload.keys = (struct slice){ 0 };
    cut_names(names, sizeof(names) / sizeof(names[0]));
    for (size_t i = 0; i < e->n_hooks; i++) {
        struct execution *x = &e->hooks[i];
        struct slice *const of_hook[] = { &x->hook_name, &x->matcher, &x->exception_type,
                                          &x->fail_mode };

        cut_names(of_hook, sizeof(of_hook) / sizeof(of_hook[0]));
    }
}

static void drop_reasons(struct evaluation *e)
{
    for (size_t i = 0; i < e->n_hooks; i++) {
        e->hooks[i].reason = (struct cut_text){ 0 };
    }
}

/* Keep hooks for which `keeps` is true, and as many others as there is room for, in order. */
static void keep_hooks(struct evaluation *e, size_t most, bool (*keeps)(const struct execution *))
{
    size_t room = most;
    size_t n = 0;

    for (size_t i = 0; i < e->n_hooks; i++) {
        room -= keeps(&e->hooks[i]) && room > 0 ? 1 : 0;
    }
    for (size_t i = 0; i < e->n_hooks && n < most; i++) {
        bool kept = keeps(&e->hooks[i]);

        if (kept || room > 0) {
            room -= kept ? 0 : 1;
            e->hooks[n++] = e->hooks[i];
        }
    }
    e->hooks_unlisted += (uint32_t)(e->n_hooks - n);
    e->n_hooks = n;
}

static bool ran(const struct execution *x)
{
    return x->decision != DECISION_SKIPPED;
}

static bool did_more_than_pass(const struct execution *x)
{
    return ran(x) && x->decision != DECISION_PASS;
}

/* Skipped hooks go first: what ran is what the record is about. */
static void drop_skipped(struct evaluation *e)
{
    keep_hooks(e, HOOKS_RAN_KEPT, ran);
}

/* The counts still tell of all hooks, and `hooks_unlisted` how many are not there. */
static void cut_hooks(struct evaluation *e)
{
    keep_hooks(e, HOOKS_KEPT, did_more_than_pass);
}

void shrink_evaluation(struct evaluation *e, struct buf *out)
{
    static void (*const steps[])(struct evaluation *) = {
        drop_captured, drop_stderr, drop_skipped, cut_all_names, drop_reasons, cut_hooks,
    };

    buf_clear(out);
    encode_evaluation(e, out);
    for (size_t i = 0; !buf_ok(out) && i < sizeof(steps) / sizeof(steps[0]); i++) {
        steps[i](e);
        buf_clear(out);
        encode_evaluation(e, out);
    }
}

void shrink_tool_execution(struct tool_execution *t, struct buf *out)
{
    struct slice *const names[] = {
        &t->thread_id,      &t->call_id,       &t->tool_name,
        &t->sub_agent_name, &t->skills_loaded, &t->skill_source,
    };

    buf_clear(out);
    encode_tool_execution(t, out);
    if (!buf_ok(out)) {
        t->tool_output = (struct slice){ 0 };
        t->tool_input = (struct slice){ 0 };
        cut_names(names, sizeof(names) / sizeof(names[0]));
        buf_clear(out);
        encode_tool_execution(t, out);
    }
}
