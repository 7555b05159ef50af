/*
 * filter: a store_filter as one SQL statement, for every database alike.
 *
 * The tables and columns are the migrations' (collector/sql/migrations), which
 * all databases share. Values never stand in the text: they are bound, in the
 * order of `binds`.
 *
 *     SELECT type, id, time, journal, seq, leaf, body
 *     FROM (one SELECT a table that can hold such records, UNION ALL) …
 *     ORDER BY time, id LIMIT n
 */
#pragma once

#include "collector/base/buf.h"
#include "queries/store.h"

enum {
    FILTER_ROWS = 10000, /* where the filter has no limit */
    FILTER_BINDS = 40,   /* three tables, each condition and limit once a table, and one limit */
};

/* Columns of the answer, in order. `type` is the record's own word. */
enum filter_column {
    FILTER_TYPE,
    FILTER_ID,
    FILTER_TIME, /* microseconds */
    FILTER_JOURNAL,
    FILTER_SEQ,
    FILTER_LEAF, /* 32 bytes */
    FILTER_BODY,
};

/* How a database writes the place of a bound value. */
enum filter_mark { FILTER_QUESTION_MARK /* ? */, FILTER_NUMBER /* $1, $2, … */ };

struct filter_bind {
    enum filter_kind { FILTER_TEXT, FILTER_INTEGER, FILTER_MOMENT } kind;
    struct slice text; /* borrowed from the filter */
    int64_t number;    /* of FILTER_MOMENT: microseconds since 1970 UTC */
};

struct filter_query {
    struct buf sql;
    struct filter_bind binds[FILTER_BINDS];
    size_t n_binds;
};

/* Build; release with filter_done(). False when no table can hold such records: no rows. */
bool filter_build(const struct store_filter *f, enum filter_mark mark, struct filter_query *ret)
    MUST_CHECK;
void filter_done(struct filter_query *q);
