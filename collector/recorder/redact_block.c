/*
 * Values that stand below or between their name, and not beside it:
 *
 *     password:              password: |            <password>SECRET</password>
 *       SECRET                 SECRET, all lines
 *
 * Whether a hit is one is decided before its end is looked for, so that no line
 * is walked more than once for nothing.
 */
#include <string.h>

#include "collector/recorder/redact_name.h"
#include "collector/recorder/redact_part.h"

#define BLANKS " \t"
#define LINE_ENDS "\r\n"

static bool is_secret(struct slice text, const struct run *r)
{
    return redact_is_secret_name(redact_between(text, r->name, r->to));
}

/* ---- YAML --------------------------------------------------------------------- */

/* The offset of the next line when nothing but blanks is left of this one; 0: there is more. */
static size_t next_line(struct slice text, size_t i)
{
    i = redact_span(text, i, BLANKS);
    if (redact_at(text, i) == '\r') {
        i++;
    }
    return i < text.len && text.ptr[i] == '\n' ? i + 1 : 0;
}

/* How deep the key at `at` stands; the dash of a list counts as a blank. */
static size_t depth_of(struct slice text, size_t at)
{
    size_t start = at;

    while (start > 0 && text.ptr[start - 1] != '\n') {
        start--;
    }
    return redact_span(text, start, " \t-") - start;
}

/* The first line from *line on that is not blank, and the offset of its first letter. */
static size_t first_letter(struct slice text, size_t *line)
{
    size_t next = next_line(text, *line);

    while (next > 0) {
        *line = next;
        next = next_line(text, *line);
    }
    return redact_span(text, *line, BLANKS);
}

/* The end of the lines that stand deeper than `depth`, or are items of a list beside it. */
static size_t block_end(struct slice text, size_t line, size_t depth, bool list)
{
    size_t end = line;

    while (line < text.len) {
        size_t first = first_letter(text, &line);
        size_t column = first - line;

        if (first >= text.len ||
            (column <= depth && !(list && column == depth && text.ptr[first] == '-'))) {
            break;
        }
        end = redact_until(text, first, LINE_ENDS);
        line = redact_until(text, end, "\n");
        line += line < text.len ? 1 : 0;
    }
    return end;
}

/* `name: …` in the line at i: a mapping, whose names speak for themselves. */
static bool is_mapping(struct slice text, size_t i)
{
    size_t end = redact_until(text, i, LINE_ENDS);

    for (; i < end; i++) {
        if (text.ptr[i] == ':' && (i + 1 == end || strchr(BLANKS, text.ptr[i + 1]))) {
            return true;
        }
    }
    return false;
}

size_t redact_value_below(struct slice text, const struct run *r, size_t from)
{
    size_t line = next_line(text, from);

    if (line == 0) {
        return from;
    }

    size_t first = first_letter(text, &line);

    return first - line > depth_of(text, r->from) && !is_mapping(text, first) ? first : from;
}

bool redact_find_block(struct slice text, const struct run *r, struct span *ret)
{
    size_t i = redact_span(text, redact_skip_quote(text, r->to), BLANKS);

    if (redact_at(text, i) != ':' || !is_secret(text, r)) {
        return false;
    }
    i = redact_span(text, i + 1, BLANKS);

    bool marked = redact_at(text, i) == '|' || redact_at(text, i) == '>';
    size_t line = next_line(text, marked ? redact_span(text, i + 1, "+-0123456789") : i);

    if (line == 0) {
        return false;
    }

    size_t depth = depth_of(text, r->from);
    size_t first = first_letter(text, &line);
    bool list = redact_at(text, first) == '-' && redact_at(text, first + 1) == ' ';
    bool deep = first - line > depth || (list && first - line == depth);

    if (!deep || !(marked || (list && !is_mapping(text, first)))) {
        return false;
    }
    first += list && !marked ? 2 : 0;
    if (redact_begins_reference(redact_from(text, first))) {
        return false;
    }
    *ret = (struct span){ .from = first, .to = block_end(text, line, depth, list && !marked) };
    return ret->to > ret->from;
}

/* ---- XML ---------------------------------------------------------------------- */

/* Is r the name in a tag that opens: <name or <prefix:name? */
static bool opens_tag(struct slice text, const struct run *r)
{
    enum { PREFIX_MAX = 64 };
    size_t i = r->from;
    size_t least = i > PREFIX_MAX ? i - PREFIX_MAX : 0;

    if (i > 0 && text.ptr[i - 1] == ':') {
        i--;
        while (i > least && redact_is_run(text.ptr[i - 1])) {
            i--;
        }
    }
    return i > 0 && text.ptr[i - 1] == '<';
}

/* The offset behind the tag that r names; 0 when it is none, or has no content. */
static size_t behind_tag(struct slice text, const struct run *r)
{
    if (!opens_tag(text, r)) {
        return 0;
    }

    size_t end = redact_until(text, r->to, "<>");
    char next = redact_at(text, r->to);

    return redact_at(text, end) == '>' && text.ptr[end - 1] != '/' &&
                   (end == r->to || strchr(" \t\r\n", next))
               ? end + 1
               : 0;
}

/* Without its end mark the whole rest of the text counts. */
static size_t cdata_end(struct slice text, size_t from)
{
    const char *at = memmem(text.ptr + from, text.len - from, "]]>", 3);

    return at ? (size_t)(at - text.ptr) : text.len;
}

bool redact_find_element(struct slice text, const struct run *r, struct span *ret)
{
    size_t from = behind_tag(text, r);

    if (from == 0 || !is_secret(text, r)) {
        return false;
    }
    if (slice_starts_with(redact_from(text, from), SLICE("<![CDATA["))) {
        from += 9;
        if (redact_begins_reference(redact_from(text, from))) {
            return false;
        }
        *ret = (struct span){ .from = from, .to = cdata_end(text, from) };
        return ret->to > from;
    }

    size_t to = redact_until(text, from, "<");
    struct slice value = redact_between(text, from, to);

    *ret = (struct span){ .from = from, .to = to };
    return redact_at(text, to) == '<' && redact_at(text, to + 1) == '/' &&
           redact_span(value, 0, " \t\r\n") < value.len && !redact_is_reference(value);
}
