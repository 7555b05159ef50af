/*
 * store: the database that questions are asked of, whichever it is.
 *
 * SQLite and PostgreSQL answer one set of calls; both are opened read-only. A
 * question is a filter over records; answers come row by row, oldest first, as
 * the exact bytes that were journalled. Tests of one set run against both.
 * Thread: a store belongs to one at a time.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "collector/base/digest.h"
#include "collector/base/err.h"
#include "collector/record/types.h"

struct store; /* a driver's struct begins with struct store_base */

/* Conditions that all must hold; an empty slice, a zero and a NULL mean: any. */
struct store_filter {
    unsigned types; /* bits 1 << enum record_type */
    struct slice id;
    struct slice dispatch_id;
    struct slice thread_id;
    struct slice call_id;
    struct slice tool_name;
    struct slice event; /* hook_event_type */
    struct slice contract;
    struct slice config_digest;
    int64_t from_us; /* time, inclusive */
    int64_t to_us;   /* exclusive; 0: no end */
    bool newest_first;
    uint32_t limit; /* rows at most; 0: the store's own limit (10 000) */
};

/* One record. Slices are valid during on_row only. */
struct store_row {
    enum record_type type;
    struct slice id;
    int64_t time_us;
    struct slice journal;
    uint64_t seq;
    struct digest leaf;
    struct slice body; /* the record's JSON */
};

/* Return false to stop. */
typedef bool (*store_on_row)(void *ctx, const struct store_row *row);

/* How far a journal has been loaded. */
struct store_position {
    struct slice journal;
    uint64_t next_seq;
};
typedef bool (*store_on_position)(void *ctx, const struct store_position *p);

struct store_config {
    const char *target; /* SQLite: the file; PostgreSQL: the dsn */
    int64_t timeout_ms; /* limit of each call; reaching it is ERR_AGAIN */
};

struct store_ops {
    const char *name; /* sqlite, postgres */
    /* ERR_NOT_FOUND: no database there yet; ERR_INVALID: its schema is newer than we know. */
    bool (*open)(const struct store_config *cfg, struct store **ret, struct err *err) MUST_CHECK;
    bool (*select)(struct store *s, const struct store_filter *f, store_on_row on_row, void *ctx,
                   struct err *err) MUST_CHECK;
    bool (*positions)(struct store *s, store_on_position on_position, void *ctx, struct err *err)
        MUST_CHECK;
    void (*close)(struct store *s); /* accepts NULL */
};

struct store {
    const struct store_ops *ops;
};

extern const struct store_ops store_sqlite_ops;
extern const struct store_ops store_postgres_ops;
