#include "queries/trace.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "collector/base/plural.h"
#include "collector/base/utf8.h"

/*
 * A line an event: time, event, tool, decision, duration, what ran; below it,
 * indented, the hooks that somebody has to know of and why others did not run.
 */

enum {
    LINE_BYTES = 16 * 1024,
    CLOCK_COLUMNS = 12,
    EVENT_COLUMNS = 12,
    TOOL_COLUMNS = 24, /* MultiReplaceStringInFile */
    DECISION_COLUMNS = 11,
    DURATION_COLUMNS = 8,
    DETAIL_INDENT = 16,
    SUMMARY_AT =
        CLOCK_COLUMNS + EVENT_COLUMNS + TOOL_COLUMNS + DECISION_COLUMNS + DURATION_COLUMNS + 8,
};

static void gap_between(const struct paint *p)
{
    (void)fputs("  ", p->out);
}

static void clock_column(const struct paint *p, int64_t us)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    paint_clock(&b, us);
    paint_text(p, COLOR_DIM, buf_slice(&b), CLOCK_COLUMNS);
    gap_between(p);
}

static void duration_column(const struct paint *p, int64_t us)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    paint_duration(&b, us);
    (void)fprintf(p->out, "%*s", DURATION_COLUMNS, buf_cstr(&b));
}

/* "3 skipped (2 matcher, 1 inactive)"; nothing when none was. */
static void add_skipped(struct buf *b, const struct evaluation *e)
{
    size_t counts[SKIP_REASON_COUNT] = { 0 };
    size_t all = 0;
    const char *comma = "";

    for (size_t i = 0; i < e->n_hooks; i++) {
        if (e->hooks[i].decision == DECISION_SKIPPED) {
            counts[e->hooks[i].skip_reason]++;
            all++;
        }
    }
    if (all == 0) {
        return;
    }
    buf_addf(b, "%zu skipped (", all);
    for (int i = 1; i < SKIP_REASON_COUNT; i++) {
        if (counts[i] > 0) {
            buf_addf(b, "%s%zu %s", comma, counts[i], skip_reason_name((enum skip_reason)i));
            comma = ", ";
        }
    }
    buf_add_char(b, ')');
}

/* "2 ran, 3 skipped (…)": the end of the line, or where it is too narrow a line of its own. */
static void summary_column(const struct paint *p, const struct evaluation *e)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    if (e->hooks_run > 0) {
        buf_addf(&b, "%" PRIu32 " ran", e->hooks_run);
    }
    if (e->n_hooks > e->hooks_run && b.len_bytes > 0) {
        buf_add(&b, SLICE(", "));
    }
    add_skipped(&b, e);
    if (b.len_bytes == 0) {
        buf_add(&b, SLICE("no hooks"));
    }
    if (p->width > 0 && SUMMARY_AT + utf8_count(buf_slice(&b)) > (size_t)p->width) {
        (void)fputc('\n', p->out);
        paint_paragraph(p, COLOR_DIM, DETAIL_INDENT, buf_slice(&b));
        return;
    }
    gap_between(p);
    paint_text(p, COLOR_DIM, buf_slice(&b), 0);
    (void)fputc('\n', p->out);
}

/* "slow-check: timed out after 2.00 s, let through (failMode allow)". */
static void add_failure(struct buf *b, const struct execution *x)
{
    if (x->timed_out) {
        buf_add(b, SLICE("timed out after "));
        paint_duration(b, x->duration_us);
    } else if (x->signal > 0) {
        buf_addf(b, "ended by signal %" PRId32, x->signal);
    } else if (x->has_exit_code && x->cause == CAUSE_EXIT_CODE) {
        buf_addf(b, "failed with exit code %" PRId32, x->exit_code);
    } else {
        buf_addf(b, "failed (%s)", x->cause ? cause_name(x->cause) : "no cause told");
    }
    if (x->fail_mode.len > 0) {
        buf_addf(b, ", failMode %" SLICE_FMT, SLICE_ARG(x->fail_mode));
    }
    if (x->intended != DECISION_NONE) {
        buf_addf(b, "; its output meant %s", decision_name(x->intended));
    }
}

static void add_skip(struct buf *b, const struct execution *x)
{
    buf_addf(b, "skipped: %s", skip_reason_name(x->skip_reason));
    if (x->skip_reason == SKIP_MATCHER) {
        buf_addf(b, " '%" SLICE_FMT "'", SLICE_ARG(x->matcher));
    }
}

/* Of a failure its last words; of an ask its question, which the chain has as its reason. */
static struct slice said_by(const struct execution *x, const struct evaluation *e)
{
    if (x->decision == DECISION_ERROR) {
        return x->stderr_tail;
    }
    return x->decision == DECISION_ASK && e->final_decision == DECISION_ASK &&
                   x->reason.text.len == 0
               ? e->reason.text
               : x->reason.text;
}

/* "deny in 14 ms: Not permitted." */
static void add_outcome(struct buf *b, const struct execution *x, const struct evaluation *e)
{
    struct slice said = said_by(x, e);

    if (x->decision == DECISION_ERROR) {
        add_failure(b, x);
    } else {
        buf_addf(b, "%s in ", decision_name(x->decision));
        paint_duration(b, x->duration_us);
    }
    if (x->blank_reason) {
        buf_add(b, SLICE(" (its reason was blank, so it counted for nothing)"));
    }
    if (x->left_behind > 0) {
        buf_addf(b, ", left %" PRIu32 " process%s behind", x->left_behind,
                 x->left_behind == 1 ? "" : "es");
    }
    if (said.len > 0) {
        buf_addf(b, ": %" SLICE_FMT, SLICE_ARG(said));
    }
}

static void hook_line(const struct paint *p, const struct evaluation *e, const struct execution *x,
                      bool all)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    buf_addf(&b, "%" SLICE_FMT "  ", SLICE_ARG(x->hook_name));
    if (all) {
        buf_addf(&b, "%s  ", tier_name(x->tier));
    }
    if (x->decision == DECISION_SKIPPED) {
        add_skip(&b, x);
    } else {
        add_outcome(&b, x, e);
    }
    if (x->matcher_mode == MATCHER_EXACT_FALLBACK) {
        buf_add(&b, SLICE(" (pattern unusable, compared as an exact string)"));
    }
    paint_paragraph(p, paint_decision_color(x->decision), DETAIL_INDENT, buf_slice(&b));
}

/* Without --all: the hooks that decided something, failed, rejected in vain, or left a process. */
static bool is_notable(const struct execution *x)
{
    return (x->decision != DECISION_PASS && x->decision != DECISION_SKIPPED) || x->blank_reason ||
           x->left_behind > 0;
}

static void evaluation_details(const struct paint *p, const struct evaluation *e, bool all)
{
    bool told = false;

    for (size_t i = 0; i < e->n_hooks; i++) {
        if (all || is_notable(&e->hooks[i])) {
            hook_line(p, e, &e->hooks[i], all);
            told = true;
        }
    }
    if (!told && e->reason.text.len > 0) {
        paint_paragraph(p, paint_decision_color(e->final_decision), DETAIL_INDENT, e->reason.text);
    }
}

static void evaluation_lines(const struct paint *p, const struct evaluation *e, bool all)
{
    CLEANUP(buf_done) struct buf event;

    buf_init(&event, LINE_BYTES);
    buf_addf(&event, "%" SLICE_FMT, SLICE_ARG(e->hook_event_type));
    if (e->chain == CHAIN_PROMPT || e->chain == CHAIN_COMMAND) {
        buf_addf(&event, "/%s", chain_kind_name(e->chain));
    }
    clock_column(p, e->head.time_us);
    paint_text(p, COLOR_CYAN, buf_slice(&event), EVENT_COLUMNS);
    gap_between(p);
    paint_text(p, COLOR_BOLD, e->tool_name, TOOL_COLUMNS);
    gap_between(p);
    paint_text(p, paint_decision_color(e->final_decision),
               slice_from_cstr(decision_name(e->final_decision)), DECISION_COLUMNS);
    duration_column(p, e->duration_us);
    summary_column(p, e);
    evaluation_details(p, e, all);
}

static struct slice tool_outcome(const struct tool_execution *t)
{
    if (t->phase == PHASE_START || !t->has_succeeded) {
        return (struct slice){ 0 };
    }
    return t->tool_succeeded ? SLICE("succeeded") : SLICE("failed");
}

static void tool_line(const struct paint *p, const struct tool_execution *t)
{
    enum color color = t->has_succeeded && !t->tool_succeeded ? COLOR_RED : COLOR_DIM;
    struct slice outcome = tool_outcome(t);

    clock_column(p, t->head.time_us);
    paint_text(p, COLOR_DIM, t->phase == PHASE_START ? SLICE("tool starts") : SLICE("tool ends"),
               EVENT_COLUMNS);
    gap_between(p);
    paint_text(p, COLOR_BOLD, t->tool_name, TOOL_COLUMNS);
    if (outcome.len > 0) {
        gap_between(p);
        paint_text(p, color, outcome, 0);
    }
    if (t->call_id.len > 0) {
        (void)fputs("  call ", p->out);
        paint_text(p, COLOR_DIM, t->call_id, 0);
    }
    (void)fputc('\n', p->out);
}

static void gap_line(const struct paint *p, const struct trace_event *e)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    clock_column(p, e->at_us);
    if (e->gap.known) {
        buf_addf(&b, "GAP: %" PRIu64 " record%s lost (%" SLICE_FMT ")", e->gap.lost,
                 e->gap.lost == 1 ? " was" : "s were", SLICE_ARG(e->gap.cause));
    } else {
        buf_addf(&b, "GAP: records may be missing (%" SLICE_FMT ")", SLICE_ARG(e->gap.cause));
    }
    if (e->gap.last_us > e->at_us) {
        buf_add(&b, SLICE(", until "));
        paint_clock(&b, e->gap.last_us);
    }
    paint_text(p, COLOR_YELLOW, buf_slice(&b), 0);
    (void)fputc('\n', p->out);
}

/* Whose loop the coming events are of, when that changes. */
static void agent_line(const struct paint *p, const struct evaluation *e)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    buf_addf(&b, "%s %" SLICE_FMT, e->child ? "child agent" : "agent", SLICE_ARG(e->agent_name));
    paint_text(p, COLOR_BOLD, buf_slice(&b), 0);
    (void)fputc('\n', p->out);
}

static void date_line(const struct paint *p, int64_t us)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    paint_date(&b, us);
    paint_text(p, COLOR_DIM, buf_slice(&b), 0);
    (void)fputc('\n', p->out);
}

/* A tool execution of a dispatch that stands in the trace itself says nothing new. */
static bool is_told_by_evaluation(const struct trace_event *e)
{
    return e->type == RECORD_TOOL_EXECUTION && e->tool.dispatch_id.len > 0 &&
           (!e->tool.has_succeeded || e->tool.tool_succeeded);
}

static void event_lines(const struct paint *p, const struct trace_event *e, bool all)
{
    if (e->type == RECORD_HOOK_EVALUATION) {
        evaluation_lines(p, &e->evaluation, all);
    } else if (e->type == RECORD_GAP) {
        gap_line(p, e);
    } else if (all || !is_told_by_evaluation(e)) {
        tool_line(p, &e->tool);
    }
}

struct tally {
    size_t blocked; /* reject and deny, where that stops something: a call, or its result */
    size_t held;    /* the same at Stop: the agent goes on */
    size_t asked;
    size_t failed; /* hooks */
    size_t timed_out;
};

static struct tally count(const struct trace *t)
{
    struct tally tally = { 0 };

    for (size_t i = 0; i < t->n; i++) {
        const struct evaluation *e = &t->events[i].evaluation;

        if (t->events[i].type != RECORD_HOOK_EVALUATION) {
            continue;
        }
        bool refused = e->final_decision == DECISION_DENY || e->final_decision == DECISION_REJECT;
        bool is_stop = slice_equal(e->hook_event_type, SLICE("Stop"));

        tally.blocked += refused && e->blocking && !is_stop;
        tally.held += refused && e->blocking && is_stop;
        tally.asked += e->final_decision == DECISION_ASK;
        for (size_t k = 0; k < e->n_hooks; k++) {
            tally.timed_out += e->hooks[k].timed_out;
            tally.failed += e->hooks[k].decision == DECISION_ERROR && !e->hooks[k].timed_out;
        }
    }
    return tally;
}

static void header_lines(const struct paint *p, const struct trace *t)
{
    CLEANUP(buf_done) struct buf b;
    struct tally tally = count(t);

    buf_init(&b, LINE_BYTES);
    paint_text(p, COLOR_BOLD, SLICE("thread "), 0);
    paint_text(p, COLOR_BOLD, t->thread, 0);
    buf_addf(&b, "  %zu evaluation%s in ", t->evaluations, plural(t->evaluations));
    paint_duration(&b, t->to_us - t->from_us);
    buf_addf(&b, ": %zu blocked, %zu held, %zu asked, %zu hook%s failed, %zu timed out",
             tally.blocked, tally.held, tally.asked, tally.failed, plural(tally.failed),
             tally.timed_out);
    paint_text(p, COLOR_NONE, buf_slice(&b), 0);
    (void)fputc('\n', p->out);
}

static void more_line(const struct paint *p, const struct trace *t)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    buf_add(&b, SLICE("There is more: --from "));
    paint_date(&b, t->next_us);
    buf_add_char(&b, 'T');
    paint_clock(&b, t->next_us);
    buf_add(&b, SLICE("Z, or a higher --limit"));
    paint_text(p, COLOR_YELLOW, buf_slice(&b), 0);
    (void)fputc('\n', p->out);
}

void trace_print(const struct trace *t, const struct paint *p, bool all)
{
    struct slice agent = { 0 };
    int64_t day = -1;

    header_lines(p, t);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_event *e = &t->events[i];

        if (e->at_us / CLOCK_DAY_US != day) {
            day = e->at_us / CLOCK_DAY_US;
            date_line(p, e->at_us);
        }
        if (e->type == RECORD_HOOK_EVALUATION && !slice_equal(e->evaluation.agent_name, agent)) {
            agent = e->evaluation.agent_name;
            agent_line(p, &e->evaluation);
        }
        event_lines(p, e, all);
    }
    if (t->truncated) {
        more_line(p, t);
    }
}
