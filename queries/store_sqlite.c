/* store_sqlite: the embedded store, which ship writes and questions read. */
#include "queries/store.h"

#include <string.h>

#include "collector/base/mem.h"
#include "collector/sql/schema.h"
#include "collector/sql/sqlite.h"
#include "queries/filter.h"

struct store_sqlite {
    struct store base;
    struct sqlite *db; /* owned */
};

static struct store_sqlite *of(struct store *s)
{
    return CONTAINER_OF(s, struct store_sqlite, base);
}

static bool open_store(const struct store_config *cfg, struct store **ret, struct err *err)
{
    CLEANUP(sqlite_closep) struct sqlite *db = NULL;

    if (!sqlite_open(cfg->target, SQLITE_TO_READ, cfg->timeout_ms, &db, err)) {
        return false;
    }
    sqlite_arm(db);
    if (!sqlite_check_schema(db, err)) {
        return err_wrap(err, "%s", cfg->target);
    }

    struct store_sqlite *s = xcalloc(1, sizeof(*s));

    s->base.ops = &store_sqlite_ops;
    s->db = TAKE_PTR(db);
    *ret = &s->base;
    return true;
}

static void bind_all(sqlite3_stmt *stmt, const struct filter_query *q)
{
    for (size_t i = 0; i < q->n_binds; i++) {
        if (q->binds[i].kind == FILTER_TEXT) {
            sqlite_bind_slice(stmt, (int)i + 1, q->binds[i].text);
        } else {
            sqlite_bind_i64(stmt, (int)i + 1, q->binds[i].number);
        }
    }
}

static struct store_row row_of(sqlite3_stmt *stmt)
{
    struct slice leaf = sqlite_column_slice(stmt, FILTER_LEAF);
    struct store_row row = {
        .type = record_type_from(sqlite_column_slice(stmt, FILTER_TYPE)),
        .id = sqlite_column_slice(stmt, FILTER_ID),
        .time_us = sqlite3_column_int64(stmt, FILTER_TIME),
        .journal = sqlite_column_slice(stmt, FILTER_JOURNAL),
        .seq = (uint64_t)sqlite3_column_int64(stmt, FILTER_SEQ),
        .body = sqlite_column_slice(stmt, FILTER_BODY),
    };

    if (leaf.len == DIGEST_BYTES) {
        memcpy(row.leaf.bytes, leaf.ptr, DIGEST_BYTES);
    }
    return row;
}

/* Steps until the last row, or until on_row has had enough. */
static bool hand_out(struct sqlite *db, sqlite3_stmt *stmt, store_on_row on_row, void *ctx,
                     struct err *err)
{
    for (;;) {
        bool there = false;

        if (sqlite_step(db, stmt, &there, err) != SQL_DONE) {
            return err_wrap(err, "store");
        }
        if (!there) {
            return true;
        }

        struct store_row row = row_of(stmt);

        if (!on_row(ctx, &row)) {
            return true;
        }
    }
}

static bool select_rows(struct store *s, const struct store_filter *f, store_on_row on_row,
                        void *ctx, struct err *err)
{
    struct sqlite *db = of(s)->db;
    CLEANUP(filter_done) struct filter_query q;
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;

    if (!filter_build(f, FILTER_QUESTION_MARK, &q)) {
        return true;
    }
    sqlite_arm(db);
    if (sqlite_prepare(db, buf_cstr(&q.sql), &stmt, err) != SQL_DONE) {
        return err_wrap(err, "store");
    }
    bind_all(stmt, &q);
    return hand_out(db, stmt, on_row, ctx, err);
}

static bool positions(struct store *s, store_on_position on_position, void *ctx, struct err *err)
{
    struct sqlite *db = of(s)->db;
    CLEANUP(sqlite_finalizep) sqlite3_stmt *stmt = NULL;

    sqlite_arm(db);
    if (sqlite_prepare(db, "SELECT journal, next_seq FROM position ORDER BY journal", &stmt, err) !=
        SQL_DONE) {
        return err_wrap(err, "store");
    }
    for (;;) {
        bool there = false;

        if (sqlite_step(db, stmt, &there, err) != SQL_DONE) {
            return err_wrap(err, "store");
        }
        if (!there) {
            return true;
        }

        struct store_position p = { .journal = sqlite_column_slice(stmt, 0),
                                    .next_seq = (uint64_t)sqlite3_column_int64(stmt, 1) };

        if (!on_position(ctx, &p)) {
            return true;
        }
    }
}

static void close_store(struct store *s)
{
    if (s) {
        sqlite_close(of(s)->db);
        free(of(s));
    }
}

const struct store_ops store_sqlite_ops = {
    .name = "sqlite",
    .open = open_store,
    .select = select_rows,
    .positions = positions,
    .close = close_store,
};
