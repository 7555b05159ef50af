/*
 * filter: a store_filter as one SQL statement, for every database alike.
 *
 * The tables and columns are the migrations' (collector/sql/migrations), which
 * all databases share; a dialect tells where they differ. Values never stand in
 * the text: they are bound, in the order of `binds`.
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
    FILTER_BINDS = 64,   /* three tables, each condition once a table */
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

/* Where databases differ. */
struct filter_dialect {
    bool numbered; /* $1, $2, … instead of ? */
    /* Before and behind a bound name: true when body's list of hooks has one of that name. */
    const char *considers_before;
    const char *considers_behind;
};

struct filter_bind {
    bool is_text;
    bool is_time;      /* number is microseconds since 1970 UTC */
    struct slice text; /* borrowed from the filter */
    int64_t number;
};

struct filter_query {
    struct buf sql;
    struct filter_bind binds[FILTER_BINDS];
    size_t n_binds;
};

/* Build; release with filter_done(). False when no table can hold such records: no rows. */
bool filter_build(const struct store_filter *f, const struct filter_dialect *d,
                  struct filter_query *ret) MUST_CHECK;
void filter_done(struct filter_query *q);
