#include "queries/evaluation.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "collector/record/decode.h"
#include "queries/rows.h"

/* The chains of one dispatch run one after the other, within less than that. */
#define DISPATCH_US CLOCK_DAY_US

/*
 * The evaluations of one dispatch: each chain has one. They are looked for where
 * they can be, in their thread at their time: stores find nothing by a dispatch's id.
 */
static bool select_dispatch(struct store *s, const struct store_row *row, struct arena *a,
                            struct rows *ret, struct err *err)
{
    struct evaluation e;

    if (!decode_evaluation(row->body, a, &e, err)) {
        return err_wrap(err, "record %" SLICE_FMT, SLICE_ARG(row->id));
    }
    if (e.dispatch_id.len == 0) {
        return true;
    }

    struct store_filter f = {
        .types = 1U << RECORD_HOOK_EVALUATION,
        .dispatch_id = e.dispatch_id,
        .thread_id = e.thread_id,
        .from_us = row->time_us > DISPATCH_US ? row->time_us - DISPATCH_US : 0,
        .to_us = row->time_us + DISPATCH_US,
    };

    return rows_select(s, &f, a, ret, err);
}

static void add_siblings(struct buf *out, const struct rows *all, struct slice id)
{
    const char *comma = "";

    buf_add(out, SLICE(",\"siblings\":["));
    for (size_t i = 0; i < all->n; i++) {
        if (!slice_equal(all->items[i].id, id)) {
            buf_add(out, slice_from_cstr(comma));
            buf_add(out, all->items[i].body);
            comma = ",";
        }
    }
    buf_add_char(out, ']');
}

bool evaluation_json(struct store *s, struct slice id, struct arena *a, struct buf *out,
                     struct err *err)
{
    struct store_filter f = { .types = 1U << RECORD_HOOK_EVALUATION, .id = id };
    struct rows found = { 0 };
    struct rows all = { 0 };
    char leaf[DIGEST_HEX_SIZE];

    if (!rows_select(s, &f, a, &found, err)) {
        return false;
    }
    if (found.n == 0) {
        return err_set(err, ERR_NOT_FOUND, "no evaluation '%" SLICE_FMT "'", SLICE_ARG(id));
    }

    const struct store_row *row = &found.items[0];

    if (!select_dispatch(s, row, a, &all, err)) {
        return false;
    }
    digest_hex(&row->leaf, leaf);
    buf_add(out, SLICE("{\"evaluation\":"));
    buf_add(out, row->body);
    buf_addf(out, ",\"journal\":\"%" SLICE_FMT "\",\"seq\":%" PRIu64 ",\"leaf\":\"%s\"",
             SLICE_ARG(row->journal), row->seq, leaf);
    add_siblings(out, &all, row->id);
    buf_add(out, SLICE("}\n"));
    return true;
}
