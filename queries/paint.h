/*
 * paint: text for people on a terminal, or in a file.
 *
 * What is printed comes from agents and tools: a control character in it could
 * move the cursor, rename the window or hide a line, so none gets through.
 * Columns are counted in code points.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "collector/base/buf.h"
#include "collector/base/slice.h"
#include "collector/record/types.h"

struct paint {
    FILE *out;
    bool color; /* ANSI colours */
    int width;  /* columns; 0: no limit (no terminal), lines are neither cut nor wrapped */
};

enum color { COLOR_NONE, COLOR_DIM, COLOR_BOLD, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_CYAN };

#define PAINT_END "\033[0m" /* of any colour */

/* The escape sequence that begins a colour; "" of none. */
const char *paint_escape(enum color color);

/* The colour in which a decision is shown everywhere. */
enum color paint_decision_color(enum decision d);

/* Append text without its control characters; each run of them becomes a blank. */
void paint_clean(struct buf *b, struct slice text);

/* Print text in a colour, cleaned, in at least `columns` columns (blanks follow). */
void paint_text(const struct paint *p, enum color color, struct slice text, size_t columns);

/*
 * Print text as a paragraph whose lines begin with `indent` blanks, broken at
 * blanks where the width asks for it. Newlines in it begin a new line.
 */
void paint_paragraph(const struct paint *p, enum color color, size_t indent, struct slice text);

/* A duration in few characters: "870 us", "14 ms", "2.04 s", "3 min 12 s". */
void paint_duration(struct buf *b, int64_t us);

/* "HH:MM:SS.mmm", and "YYYY-MM-DD", in UTC. */
void paint_clock(struct buf *b, int64_t us);
void paint_date(struct buf *b, int64_t us);
