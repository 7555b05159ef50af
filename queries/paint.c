#include "queries/paint.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "collector/base/utf8.h"

enum { LINE_MAX_BYTES = 64 * 1024, LEAST_WIDTH = 20 /* narrower, a paragraph is no help */ };

static const char *const escapes[] = {
    [COLOR_NONE] = "",          [COLOR_DIM] = "\033[2m",     [COLOR_BOLD] = "\033[1m",
    [COLOR_GREEN] = "\033[32m", [COLOR_YELLOW] = "\033[33m", [COLOR_RED] = "\033[31m",
    [COLOR_CYAN] = "\033[36m",
};

const char *paint_escape(enum color color)
{
    return escapes[color];
}

enum color paint_decision_color(enum decision d)
{
    switch (d) {
    case DECISION_PASS:
    case DECISION_ALLOW:
        return COLOR_GREEN;
    case DECISION_REJECT:
    case DECISION_DENY:
    case DECISION_ERROR:
        return COLOR_RED;
    case DECISION_ASK:
    case DECISION_CANCELLED:
    case DECISION_INTERRUPTED:
        return COLOR_YELLOW;
    case DECISION_SKIPPED:
        return COLOR_DIM;
    case DECISION_NONE:
    case DECISION_COUNT:
        break;
    }
    return COLOR_NONE;
}

void paint_clean(struct buf *b, struct slice text)
{
    bool in_run = false;

    while (text.len > 0) {
        size_t len = utf8_length(text);
        struct slice c = { .ptr = text.ptr, .len = len > 0 ? len : 1 };
        bool control = len == 0 || utf8_is_control(c);

        if (!control) {
            buf_add(b, c);
        } else if (!in_run) {
            buf_add_char(b, ' ');
        }
        in_run = control;
        text.ptr += c.len;
        text.len -= c.len;
    }
}

static void put(const struct paint *p, enum color color, struct slice clean)
{
    bool colored = p->color && color != COLOR_NONE && clean.len > 0;

    (void)fprintf(p->out, "%s%" SLICE_FMT "%s", colored ? escapes[color] : "", SLICE_ARG(clean),
                  colored ? PAINT_END : "");
}

void paint_text(const struct paint *p, enum color color, struct slice text, size_t columns)
{
    CLEANUP(buf_done) struct buf clean;

    buf_init(&clean, LINE_MAX_BYTES);
    paint_clean(&clean, text);
    put(p, color, buf_slice(&clean));
    for (size_t n = utf8_count(buf_slice(&clean)); n < columns; n++) {
        (void)fputc(' ', p->out);
    }
}

/* How many bytes of text go on a line of `columns`: up to a blank, or as many as fit. */
static size_t line_bytes(struct slice text, size_t columns)
{
    struct slice fits = utf8_prefix(text, columns);

    if (fits.len == text.len || text.ptr[fits.len] == ' ') {
        return fits.len;
    }
    for (size_t i = fits.len; i > 0; i--) {
        if (fits.ptr[i - 1] == ' ') {
            return i;
        }
    }
    return fits.len;
}

static struct slice without_blanks(struct slice s)
{
    while (s.len > 0 && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    return s;
}

/* One line of the text, cleaned, on as many lines of the terminal as it takes. */
static void put_wrapped(const struct paint *p, enum color color, size_t indent, struct slice line)
{
    size_t width = p->width > 0 ? (size_t)p->width : 0;
    size_t columns = width == 0                     ? SIZE_MAX
                     : width < indent + LEAST_WIDTH ? LEAST_WIDTH
                                                    : width - indent;
    struct slice rest = without_blanks(line);

    while (rest.len > 0) {
        size_t n = line_bytes(rest, columns);

        (void)fprintf(p->out, "%*s", (int)indent, "");
        put(p, color, without_blanks((struct slice){ .ptr = rest.ptr, .len = n }));
        (void)fputc('\n', p->out);
        rest = without_blanks((struct slice){ .ptr = rest.ptr + n, .len = rest.len - n });
    }
}

void paint_paragraph(const struct paint *p, enum color color, size_t indent, struct slice text)
{
    CLEANUP(buf_done) struct buf clean;
    struct slice line;

    buf_init(&clean, LINE_MAX_BYTES);
    while (text.len > 0) {
        (void)slice_cut(text, '\n', &line, &text);
        buf_clear(&clean);
        paint_clean(&clean, line);
        put_wrapped(p, color, indent, buf_slice(&clean));
    }
}

void paint_duration(struct buf *b, int64_t us)
{
    if (us < 1000) {
        buf_addf(b, "%" PRId64 " us", us);
    } else if (us < 1000000) {
        buf_addf(b, "%" PRId64 " ms", us / 1000);
    } else if (us < 60000000) {
        buf_addf(b, "%" PRId64 ".%02" PRId64 " s", us / 1000000, us / 10000 % 100);
    } else {
        buf_addf(b, "%" PRId64 " min %" PRId64 " s", us / 60000000, us / 1000000 % 60);
    }
}

void paint_clock(struct buf *b, int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    buf_addf(b, "%.12s", text + sizeof("2026-11-30T") - 1);
}

void paint_date(struct buf *b, int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    buf_addf(b, "%.10s", text);
}
