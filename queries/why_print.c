#include "queries/why.h"

#include <stdio.h>

enum { LINE_BYTES = 8192, STATE_COLUMNS = 9, INDENT = 4 };

static enum color state_color(enum why_state state)
{
    static const enum color colors[] = {
        [WHY_UNKNOWN] = COLOR_YELLOW, [WHY_HOLDS] = COLOR_GREEN, [WHY_FAILS] = COLOR_RED
    };

    return colors[state];
}

static void end_line(const struct paint *p)
{
    (void)fputc('\n', p->out);
}

/* "why guard: PreToolUse of RunInTerminal, call c-7, 2026-11-30 14:22:45.001". */
static void title(const struct why *w, const struct paint *p)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, LINE_BYTES);
    buf_addf(&b, "%" SLICE_FMT, SLICE_ARG(w->event));
    if (w->tool_name.len > 0) {
        buf_addf(&b, "%s%" SLICE_FMT, b.len_bytes > 0 ? " of " : "", SLICE_ARG(w->tool_name));
    }
    if (w->call_id.len > 0) {
        buf_addf(&b, "%scall %" SLICE_FMT, b.len_bytes > 0 ? ", " : "", SLICE_ARG(w->call_id));
    }
    if (w->thread_id.len > 0) {
        buf_addf(&b, "%sthread %" SLICE_FMT, b.len_bytes > 0 ? ", " : "", SLICE_ARG(w->thread_id));
    }
    if (w->time_us > 0) {
        buf_add(&b, SLICE(", "));
        paint_date(&b, w->time_us);
        buf_add_char(&b, ' ');
        paint_clock(&b, w->time_us);
    }
    paint_text(p, COLOR_BOLD, w->hook, 0);
    (void)fputs(": ", p->out);
    paint_text(p, COLOR_NONE, buf_slice(&b), 0);
    end_line(p);
}

static void step_lines(const struct why *w, enum why_step_kind k, const struct paint *p)
{
    const struct why_step *step = &w->steps[k];

    (void)fprintf(p->out, "%d   ", (int)k + 1);
    paint_text(p, state_color(step->state), slice_from_cstr(why_state_name(step->state)),
               STATE_COLUMNS);
    paint_text(p, COLOR_BOLD, slice_from_cstr(why_step_statement(k)), 0);
    end_line(p);
    paint_paragraph(p, COLOR_NONE, INDENT + STATE_COLUMNS, step->evidence);
    if (step->state == WHY_FAILS && step->record_id.len > 0) {
        CLEANUP(buf_done) struct buf b;

        buf_init(&b, LINE_BYTES);
        buf_addf(&b, "record %" SLICE_FMT, SLICE_ARG(step->record_id));
        paint_paragraph(p, COLOR_DIM, INDENT + STATE_COLUMNS, buf_slice(&b));
    }
}

void why_print(const struct why *w, const struct paint *p)
{
    title(w, p);
    end_line(p);
    for (int k = 0; k < WHY_STEPS; k++) {
        step_lines(w, (enum why_step_kind)k, p);
    }
    end_line(p);
    paint_paragraph(p, COLOR_BOLD, 0, w->verdict);
    paint_paragraph(p, COLOR_NONE, 0, w->advice);
}
