#include "queries/rows.h"

struct collecting {
    struct arena *arena;
    struct rows *rows;
    bool full; /* the arena's limit was reached */
};

static bool grow(struct arena *a, struct rows *rows)
{
    struct store_row *items = arena_grow(a, rows->items, &rows->cap, sizeof(*items));

    if (items) {
        rows->items = items;
    }
    return items;
}

static bool keep(struct arena *a, struct rows *rows, const struct store_row *row)
{
    struct store_row copy = *row;

    if ((rows->n == rows->cap && !grow(a, rows)) || !arena_dup(a, row->id, &copy.id) ||
        !arena_dup(a, row->journal, &copy.journal) || !arena_dup(a, row->body, &copy.body)) {
        return false;
    }
    rows->items[rows->n++] = copy;
    return true;
}

static bool on_row(void *ctx, const struct store_row *row)
{
    struct collecting *c = ctx;

    c->full = !keep(c->arena, c->rows, row);
    return !c->full;
}

bool rows_select(struct store *s, const struct store_filter *f, struct arena *a, struct rows *rows,
                 struct err *err)
{
    struct collecting c = { .arena = a, .rows = rows };

    if (!s->ops->select(s, f, on_row, &c, err)) {
        return false;
    }
    if (c.full) {
        return err_set(err, ERR_TOO_BIG,
                       "the records asked for are over %zu MiB; ask for fewer, or for less time",
                       a->limit_bytes >> 20);
    }
    return true;
}
