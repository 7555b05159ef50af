/*
 * rows: a journalled record as rows of the store's tables.
 *
 * Every database gets the same columns (collector/sql/migrations); what differs
 * is how a driver hands them over. A record is decoded once: it gives a row
 * of its own table, an evaluation also one for each hook that ran, and counts
 * in the roll-ups. Pure; safe from any thread.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "sinks/rollup.h"
#include "sinks/sink.h"

enum table { TABLE_EVALUATION, TABLE_EXECUTION, TABLE_TOOL, TABLE_AUDIT, TABLE_COUNT };

struct table_shape {
    const char *name;
    const char *const *columns; /* n_columns names; a row's cells are in this order */
    size_t n_columns;
};
extern const struct table_shape table_shapes[TABLE_COUNT];

enum cell_kind { CELL_NULL, CELL_TEXT, CELL_INTEGER, CELL_TIME, CELL_BYTES };

/* One value. Borrowed from the record or the arena. */
struct cell {
    enum cell_kind kind;
    struct slice text; /* TEXT: UTF-8 without NUL; BYTES: as they are */
    int64_t number;    /* INTEGER; TIME: microseconds since 1970 UTC */
};

enum { ROW_MAX_CELLS = 36 };

struct row {
    enum table table;
    struct cell cells[ROW_MAX_CELLS];
};

/* Takes a row; it is valid during the call. Anything but SINK_OK ends the record with it. */
typedef enum sink_result (*rows_on_row)(void *ctx, const struct row *row, struct err *err);

struct rows {
    struct arena arena;    /* of one record; cleared by rows_of() */
    struct buf body;       /* a derived row's id and JSON */
    struct buf identity;   /* what the rows of one evaluation share */
    struct rollup *rollup; /* borrowed; NULL: nothing is counted */
    rows_on_row on_row;
    void *ctx;
};

/* Ready for use; rows_done() releases it. */
void rows_init(struct rows *rs, struct rollup *rollup, rows_on_row on_row, void *ctx);
void rows_done(struct rows *rs);

/*
 * What stands at the head of every record, of a type that we do not know too: then
 * *ret_type is its own word. Slices point into the record or the arena.
 */
bool rows_head(const struct sink_record *r, struct arena *a, struct record_head *ret,
               struct slice *ret_type, struct err *err) MUST_CHECK;

/* Bytes that do not decode: SINK_REJECT, or SINK_BROKEN (and why) when a newer program wrote them.
 */
enum sink_result rows_not_decoded(const struct sink_record *r, struct err *err);

/*
 * The rows of one record, in order. SINK_REJECT: its bytes are no record.
 * SINK_BROKEN: it was written by a newer program than this. Else what on_row says.
 * A type that is not known (a newer program's) is filed under its own word in
 * the audit table: it is not understood, but it is not lost either.
 */
enum sink_result rows_of(struct rows *rs, struct slice journal, const struct sink_record *r,
                         struct err *err) MUST_CHECK;
