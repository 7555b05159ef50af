#include "collector/cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>

#include "collector/base/mem.h"
#include "collector/base/utf8.h"

enum {
    TEXT_MAX_BYTES = 64 * 1024 * 1024, /* of all cells */
    GAP = 2,                           /* blanks between columns */
    LEAST = 6,                         /* columns that are left of a cell at least */
    LEAST_LAST = 16,                   /* and of the last before others give way */
};

struct cli_cell {
    size_t from, len; /* in the table's text */
    size_t chars;
    enum color color;
};

static const char *head_text(const char *head)
{
    return head[0] == '>' || head[0] == '=' ? head + 1 : head;
}

void cli_table_init(struct cli_table *t, const struct cli *cli, const char *const *heads,
                    size_t columns)
{
    *t = (struct cli_table){ .cli = cli, .columns = columns, .heads = heads };
    buf_init(&t->text, TEXT_MAX_BYTES);
    for (size_t i = 0; i < columns; i++) {
        t->width[i] = utf8_count(slice_from_cstr(head_text(heads[i])));
    }
}

void cli_table_done(struct cli_table *t)
{
    free(t->cells);
    t->cells = NULL;
    buf_done(&t->text);
}

/* The text as cli_put() would write it, so that its width is known. */
static void add_visible(struct buf *b, struct slice text)
{
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);

    if (!f) {
        abort();
    }
    cli_put(f, text, false);
    if (fclose(f) == 0) {
        buf_add(b, (struct slice){ .ptr = out, .len = len });
    }
    free(out);
}

void cli_table_cell(struct cli_table *t, enum color color, struct slice text)
{
    if (t->n == t->cap) {
        t->cap = t->cap > 0 ? t->cap * 2 : 64;
        t->cells = xrealloc(t->cells, t->cap * sizeof(*t->cells));
    }

    struct cli_cell *c = &t->cells[t->n];
    size_t *width = &t->width[t->n % t->columns];

    *c = (struct cli_cell){ .from = t->text.len_bytes, .color = color };
    add_visible(&t->text, text);
    c->len = t->text.len_bytes - c->from;
    c->chars = utf8_count((struct slice){ .ptr = t->text.ptr + c->from, .len = c->len });
    *width = c->chars > *width ? c->chars : *width;
    t->n++;
}

void cli_table_cellf(struct cli_table *t, enum color color, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    cli_table_cell(t, color, slice_from_cstr(text));
}

/* What is to be copied, and numbers, whose first digits would be another number. */
static bool is_whole(const char *head)
{
    return head[0] == '=' || head[0] == '>';
}

/* The column that gives way: the last while it is wide, then the widest that may be cut. */
static size_t to_shrink(const struct cli_table *t, const size_t shown[CLI_TABLE_COLUMNS])
{
    size_t found = t->columns - 1;

    for (size_t i = 0; shown[t->columns - 1] <= LEAST_LAST && i < t->columns; i++) {
        bool better = is_whole(t->heads[found]) || shown[i] > shown[found];

        found = better && !is_whole(t->heads[i]) ? i : found;
    }
    return found;
}

/* The columns as wide as there is room for. */
static void fit(const struct cli_table *t, size_t shown[CLI_TABLE_COLUMNS])
{
    size_t all = GAP * (t->columns - 1);

    for (size_t i = 0; i < t->columns; i++) {
        shown[i] = t->width[i];
        all += shown[i];
    }
    for (; t->cli->width > 0 && all > t->cli->width; all--) {
        size_t i = to_shrink(t, shown);

        if (shown[i] <= LEAST || is_whole(t->heads[i])) {
            return; /* narrower helps nobody */
        }
        shown[i]--;
    }
}

/* One cell; what is wider than its column is cut. The last has no blanks behind it. */
static void put_cell(const struct cli_table *t, size_t column, size_t width, enum color color,
                     struct slice text)
{
    size_t chars = utf8_count(text);
    bool cut = chars > width;
    size_t pad = cut ? 0 : width - chars;
    bool last = column + 1 == t->columns;
    bool right = t->heads[column][0] == '>';
    struct slice shown = cut ? utf8_prefix(text, width - 1) : text;

    (void)printf("%*s%s%" SLICE_FMT "%s%s%*s", right ? (int)pad : 0, "", cli_color(t->cli, color),
                 SLICE_ARG(shown), cut ? "…" : "", color == COLOR_NONE ? "" : cli_plain(t->cli),
                 last ? 0 : (int)(GAP + (right ? 0 : pad)), "");
    if (last) {
        (void)putchar('\n');
    }
}

void cli_table_print(const struct cli_table *t)
{
    size_t shown[CLI_TABLE_COLUMNS];

    if (t->columns == 0) {
        return;
    }
    fit(t, shown);
    for (size_t i = 0; i < t->columns; i++) {
        put_cell(t, i, shown[i], COLOR_BOLD, slice_from_cstr(head_text(t->heads[i])));
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct cli_cell *c = &t->cells[i];
        size_t column = i % t->columns;

        put_cell(t, column, shown[column], c->color,
                 (struct slice){ .ptr = t->text.ptr + c->from, .len = c->len });
    }
}
