/*
 * rows: the records that a question needs, held in an arena.
 *
 * A store hands out rows one by one; a question wants to look at them together,
 * forwards and backwards. Bodies are copied, so what a question may hold is
 * bounded by the arena it is given.
 */
#pragma once

#include "collector/base/arena.h"
#include "queries/store.h"

struct rows {
    struct store_row *items; /* slices into the arena */
    size_t n;
    size_t cap; /* places there are */
};

/*
 * All rows of the filter, copied into the arena, behind those that are in *rows.
 * Errors: the store's; ERR_TOO_BIG at the arena's limit, with what to do about it.
 */
bool rows_select(struct store *s, const struct store_filter *f, struct arena *a, struct rows *rows,
                 struct err *err) MUST_CHECK;
