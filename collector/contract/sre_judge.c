/* sre_judge: what became of running a hook, in the contract's words. */
#include "collector/contract/sre.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/contract/text.h"

enum { EXIT_BLOCK = 2, FAILURE_SIZE = 512 };

/* A failure's name, as the contract's telemetry has one for what threw. */
static const char *exception_of(enum cause cause)
{
    switch (cause) {
    case CAUSE_NONE:
    case CAUSE_CANCELLED:
        return "";
    case CAUSE_TIMEOUT:
        return "TimeoutException";
    case CAUSE_MALFORMED_OUTPUT:
        return "JsonException";
    case CAUSE_OUTPUT_LIMIT:
        return "OutputLimitException";
    case CAUSE_SPAWN:
        return "ProcessStartException";
    case CAUSE_SIGNAL:
    case CAUSE_EXIT_CODE:
        return "ProcessFailedException";
    case CAUSE_UNSUPPORTED:
        return "NotSupportedException";
    case CAUSE_HTTP_STATUS:
    case CAUSE_CONNECT:
    case CAUSE_TLS:
        return "HttpRequestException";
    case CAUSE_INPUT:
        return "HookInputException";
    case CAUSE_COUNT:
        break;
    }
    return "";
}

static struct slice in_words(struct dispatch *d, const char *fmt, ...) PRINTF_LIKE(2, 3);
static struct slice in_words(struct dispatch *d, const char *fmt, ...)
{
    char text[FAILURE_SIZE];
    struct slice ret;
    va_list ap;

    va_start(ap, fmt);

    int n = vsnprintf(text, sizeof(text), fmt, ap);

    va_end(ap);

    size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

    struct slice words = { .ptr = text, .len = len };

    if (!arena_dup(&d->arena, words, &ret)) {
        return SLICE("a hook failed");
    }
    return ret;
}

static struct sre_verdict *new_verdict(struct dispatch *d, struct verdict *ret)
{
    struct sre_verdict *own = ARENA_NEW(&d->arena, struct sre_verdict);

    *ret = (struct verdict){ .decision = DECISION_ERROR, .own = own };
    return own;
}

/* What was printed, where that is not what counts. */
static enum decision printed(struct dispatch *d, struct slice output)
{
    struct sre_result result;
    struct err err;

    if (text_is_blank(output)) {
        return DECISION_NONE;
    }
    if (sre_result_parse(output, &d->arena, &result, &err)) {
        return sre_result_decision(&result);
    }
    return sre_result_guess(output);
}

/* A process failure: failMode says whether it blocks. A prompt's failMode says nothing. */
static void fail(struct dispatch *d, const struct step *step, const struct outcome *o,
                 enum cause cause, struct slice reason, struct verdict *ret)
{
    const struct sre_hook *hook = step->hook->own;
    struct sre_verdict *own = new_verdict(d, ret);

    ret->cause = cause;
    ret->reason = reason;
    ret->exception_type = slice_from_cstr(exception_of(cause));
    ret->intended = printed(d, o->out);
    if (own) {
        own->not_run = step->hook->type == HOOK_PROMPT;
        own->blocks = step->hook->type == HOOK_COMMAND && hook->fail_block;
    }
}

static void judge_stderr(struct dispatch *d, const struct outcome *o, struct verdict *ret)
{
    struct slice reason = text_trim(o->err_out);
    enum decision meant = printed(d, o->out);

    (void)new_verdict(d, ret);
    ret->decision = DECISION_REJECT;
    ret->reason = reason.len > 0 ? reason : SLICE(SRE_DEFAULT_REASON);
    ret->intended = meant == DECISION_REJECT ? DECISION_NONE : meant;
}

static void judge_rejection(const struct sre_result *r, struct verdict *ret)
{
    if (r->has_reason && text_is_blank(r->reason)) {
        /* The contract's known defect: such a rejection is none. */
        ret->decision = DECISION_PASS;
        ret->blank_reason = true;
        ret->intended = DECISION_REJECT;
        return;
    }
    ret->reason = r->has_reason ? r->reason : SLICE(SRE_DEFAULT_REASON);
}

/* The question of an ask, which is never empty. */
static struct slice question_of(struct dispatch *d, const struct step *step,
                                const struct sre_result *r)
{
    if (!text_is_blank(r->question)) {
        return r->question;
    }
    if (!text_is_blank(r->reason)) {
        return r->reason;
    }
    return in_words(d, "Hook %" SLICE_FMT " asks for confirmation", SLICE_ARG(step->hook->name));
}

/* On Stop, permission decisions count for nothing; they are told all the same. */
static enum decision decide(const struct dispatch *d, const struct sre_result *r,
                            enum decision *ret_intended)
{
    const struct sre_request *request = d->own;

    *ret_intended = DECISION_NONE;
    if (request->event != SRE_STOP) {
        return sre_result_decision(r);
    }
    *ret_intended = r->permission;
    return r->rejects ? DECISION_REJECT : DECISION_PASS;
}

static void judge_result(struct dispatch *d, const struct step *step, const struct sre_result *r,
                         struct verdict *ret)
{
    struct sre_verdict *own = new_verdict(d, ret);

    ret->decision = decide(d, r, &ret->intended);
    if (own) {
        own->context = r->context;
        own->specific = r->specific;
    }
    if (ret->decision == DECISION_REJECT) {
        judge_rejection(r, ret);
    } else if (ret->decision == DECISION_DENY) {
        ret->blank_reason = r->has_reason && text_is_blank(r->reason);
        ret->reason = ret->blank_reason ? SLICE("") : r->reason;
    } else if (ret->decision == DECISION_ASK) {
        ret->reason = text_is_blank(r->reason) ? SLICE("") : r->reason;
        if (own) {
            own->question = question_of(d, step, r);
        }
    }
}

static void judge_stdout(struct dispatch *d, const struct step *step, const struct outcome *o,
                         struct verdict *ret)
{
    struct sre_result result;
    struct err err;

    if (text_is_blank(o->out)) {
        (void)new_verdict(d, ret);
        ret->decision = DECISION_PASS;
    } else if (sre_result_parse(o->out, &d->arena, &result, &err)) {
        judge_result(d, step, &result, ret);
    } else {
        fail(d, step, o, CAUSE_MALFORMED_OUTPUT,
             in_words(d, "Hook %" SLICE_FMT " failed: its output is no HookResult (%s)",
                      SLICE_ARG(step->hook->name), err.text),
             ret);
    }
}

void sre_judge(struct dispatch *d, const struct step *step, const struct outcome *o,
               struct verdict *ret)
{
    struct slice name = step->hook->name;

    if (o->cause == CAUSE_CANCELLED) {
        *ret = (struct verdict){ .decision = DECISION_CANCELLED, .cause = CAUSE_CANCELLED };
    } else if (o->cause != CAUSE_NONE && o->cause != CAUSE_EXIT_CODE) {
        fail(d, step, o, o->cause,
             in_words(d, "Hook %" SLICE_FMT " failed: %" SLICE_FMT, SLICE_ARG(name),
                      SLICE_ARG(o->failure.len > 0 ? o->failure
                                                   : slice_from_cstr(cause_name(o->cause)))),
             ret);
    } else if (o->exit_code == EXIT_BLOCK) {
        judge_stderr(d, o, ret);
    } else if (o->exit_code != 0) {
        fail(d, step, o, CAUSE_EXIT_CODE,
             in_words(d, "Hook %" SLICE_FMT " failed: exit code %d", SLICE_ARG(name), o->exit_code),
             ret);
    } else {
        judge_stdout(d, step, o, ret);
    }
}
