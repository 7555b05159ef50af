/* sre_telemetry: an evaluation as the contract's rows in Application Insights. */
#include "collector/contract/sre.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/utf8.h"

/* The contract has words for these alone; a chain that ended otherwise has no row. */
static bool has_row(const struct evaluation *e)
{
    return e->hooks_run > 0 &&
           (e->final_decision == DECISION_PASS || e->final_decision == DECISION_ALLOW ||
            e->final_decision == DECISION_REJECT || e->final_decision == DECISION_DENY ||
            e->final_decision == DECISION_ASK);
}

static bool has_row_of_its_own(const struct execution *x)
{
    return x->decision == DECISION_ALLOW || x->decision == DECISION_REJECT ||
           x->decision == DECISION_DENY || x->decision == DECISION_ASK ||
           x->decision == DECISION_ERROR;
}

static void set_text(json_t *dimensions, const char *name, struct slice text)
{
    struct buf clean;

    if (text.len == 0) {
        return;
    }

    json_t *value = json_stringn(text.ptr, text.len);

    if (!value) {
        /* Not UTF-8: read it back from the form that every text here has. */
        buf_init(&clean, 6 * text.len + 2);
        buf_add_json_string(&clean, text);
        value = json_loadb(clean.ptr, clean.len_bytes, JSON_DECODE_ANY, NULL);
        buf_done(&clean);
    }
    (void)json_object_set_new(dimensions, name, value);
}

static void set_number(json_t *dimensions, const char *name, int64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, n);
    (void)json_object_set_new(dimensions, name, json_string(text));
}

/* Cut as the contract cuts: 256 characters and an ellipsis, unless the record was cut already. */
static void set_reason(json_t *dimensions, const struct cut_text *reason)
{
    struct slice head = utf8_prefix(reason->text, RECORD_REASON_CHARS);
    struct buf cut;

    if (reason->chars > 0 || head.len == reason->text.len) {
        set_text(dimensions, "Reason", reason->text);
        return;
    }
    buf_init(&cut, head.len + sizeof("…"));
    buf_add(&cut, head);
    buf_add(&cut, SLICE("…"));
    set_text(dimensions, "Reason", buf_slice(&cut));
    buf_done(&cut);
}

static json_t *common(const struct evaluation *e)
{
    json_t *dimensions = json_object();

    set_text(dimensions, "ThreadId", e->thread_id);
    set_text(dimensions, "HookEventType", e->hook_event_type);
    set_text(dimensions, "ToolName", e->tool_name);
    set_text(dimensions, "AgentName", e->agent_name);
    return dimensions;
}

static void send_row(const struct evaluation *e, const char *name, json_t *dimensions,
                     on_telemetry_row on_row, void *ctx)
{
    struct telemetry_row row = {
        .time_us = e->head.time_us,
        .name = name,
        .dimensions = dimensions,
    };

    on_row(ctx, &row);
    json_decref(dimensions);
}

static void send_evaluation(const struct evaluation *e, on_telemetry_row on_row, void *ctx)
{
    json_t *d = common(e);

    set_text(d, "FinalDecision", slice_from_cstr(decision_name(e->final_decision)));
    set_number(d, "HooksConfigured", e->hooks_configured);
    set_number(d, "HooksRun", e->hooks_run);
    set_number(d, "SystemHooksRun", e->system_hooks_run);
    set_number(d, "AgentHooksRun", e->agent_hooks_run);
    set_number(d, "UserGlobalHooksRun", e->user_global_hooks_run);
    set_text(d, "AllowingHook", e->allowing_hook);
    set_number(d, "RejectionCount", e->rejection_count);
    set_number(d, "DurationMs", e->duration_us / 1000);
    send_row(e, "AgentHookEvaluation", d, on_row, ctx);
}

static void send_execution(const struct evaluation *e, const struct execution *x,
                           on_telemetry_row on_row, void *ctx)
{
    json_t *d = common(e);

    set_text(d, "HookName", x->hook_name);
    set_text(d, "HookType", slice_from_cstr(hook_type_name(x->hook_type)));
    set_text(d, "Tier", slice_from_cstr(tier_name(x->tier)));
    set_text(d, "Decision", slice_from_cstr(decision_name(x->decision)));
    set_reason(d, &x->reason);
    set_text(d, "ExceptionType", x->exception_type);
    set_number(d, "DurationMs", x->duration_us / 1000);
    send_row(e, "AgentHookExecution", d, on_row, ctx);
}

void sre_telemetry(const struct evaluation *e, on_telemetry_row on_row, void *ctx)
{
    if (!has_row(e)) {
        return;
    }
    send_evaluation(e, on_row, ctx);
    for (size_t i = 0; i < e->n_hooks; i++) {
        if (has_row_of_its_own(&e->hooks[i])) {
            send_execution(e, &e->hooks[i], on_row, ctx);
        }
    }
}
