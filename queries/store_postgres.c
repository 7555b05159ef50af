/* store_postgres: the shared store, which ship or a loader writes and questions read. */
#include "queries/store.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/sql/postgres_schema.h"
#include "queries/filter.h"

struct store_postgres {
    struct store base;
    struct postgres *db; /* owned; NULL or lost: the next question connects anew */
    char *dsn;           /* owned */
    int64_t timeout_ms;
};

static struct store_postgres *of(struct store *s)
{
    return CONTAINER_OF(s, struct store_postgres, base);
}

/* That the store does not let us in is no fault of the question. */
static bool unavailable(struct err *err)
{
    err->code = err->code == ERR_INVALID ? ERR_IO : err->code;
    return false;
}

static bool connect_store(struct store_postgres *s, struct err *err)
{
    CLEANUP(postgres_closep) struct postgres *db = NULL;

    if (s->db && !s->db->lost) {
        postgres_arm(s->db);
        return true;
    }
    postgres_closep(&s->db);
    if (!postgres_open(s->dsn, POSTGRES_TO_READ, s->timeout_ms, &db, err)) {
        return unavailable(err);
    }
    postgres_arm(db);
    if (!postgres_check_schema(db, err)) {
        return unavailable(err);
    }
    s->db = TAKE_PTR(db);
    return true;
}

static void close_store(struct store *s)
{
    if (s) {
        postgres_close(of(s)->db);
        free(of(s)->dsn);
        free(of(s));
    }
}

static bool open_store(const struct store_config *cfg, struct store **ret, struct err *err)
{
    struct store_postgres *s = xcalloc(1, sizeof(*s));

    s->base.ops = &store_postgres_ops;
    s->timeout_ms = cfg->timeout_ms;
    s->dsn = xstrdup(cfg->target);
    if (!connect_store(s, err)) {
        close_store(&s->base);
        return false;
    }
    *ret = &s->base;
    return true;
}

static struct postgres_value value_of(const struct filter_bind *b)
{
    static const enum postgres_kind kinds[] = {
        [FILTER_TEXT] = POSTGRES_TEXT,
        [FILTER_INTEGER] = POSTGRES_INTEGER,
        [FILTER_MOMENT] = POSTGRES_TIME,
    };

    return (struct postgres_value){ .kind = kinds[b->kind], .text = b->text, .number = b->number };
}

/* Who gets the rows. */
struct receiver {
    store_on_row on_row;
    store_on_position on_position;
    void *ctx;
};

static bool on_record(void *ctx, const PGresult *row)
{
    const struct receiver *r = ctx;
    struct slice leaf = postgres_text(row, FILTER_LEAF);
    struct store_row record = {
        .type = record_type_from(postgres_text(row, FILTER_TYPE)),
        .id = postgres_text(row, FILTER_ID),
        .time_us = postgres_time(row, FILTER_TIME),
        .journal = postgres_text(row, FILTER_JOURNAL),
        .seq = (uint64_t)postgres_integer(row, FILTER_SEQ),
        .body = postgres_text(row, FILTER_BODY),
    };

    if (leaf.len == DIGEST_BYTES) {
        memcpy(record.leaf.bytes, leaf.ptr, DIGEST_BYTES);
    }
    return r->on_row(r->ctx, &record);
}

/* A question that ran out of time, or met a server that went away, may be asked again. */
static bool answered(enum sql_class class, struct err *err)
{
    if (class == SQL_DONE) {
        return true;
    }
    if (class == SQL_AGAIN) {
        err->code = ERR_AGAIN;
    }
    return err_wrap(err, "store");
}

static bool select_rows(struct store *store, const struct store_filter *f, store_on_row on_row,
                        void *ctx, struct err *err)
{
    struct store_postgres *s = of(store);
    struct receiver receiver = { .on_row = on_row, .ctx = ctx };
    struct postgres_value values[FILTER_BINDS];
    CLEANUP(filter_done) struct filter_query q;

    if (!filter_build(f, FILTER_NUMBER, &q)) {
        return true;
    }
    if (!connect_store(s, err)) {
        return false;
    }
    for (size_t i = 0; i < q.n_binds; i++) {
        values[i] = value_of(&q.binds[i]);
    }
    return answered(
        postgres_query(s->db, buf_cstr(&q.sql), values, q.n_binds, on_record, &receiver, NULL, err),
        err);
}

static bool on_one_position(void *ctx, const PGresult *row)
{
    const struct receiver *r = ctx;
    struct store_position p = { .journal = postgres_text(row, 0),
                                .next_seq = (uint64_t)postgres_integer(row, 1) };

    return r->on_position(r->ctx, &p);
}

static bool positions(struct store *store, store_on_position on_position, void *ctx,
                      struct err *err)
{
    struct store_postgres *s = of(store);
    struct receiver receiver = { .on_position = on_position, .ctx = ctx };

    if (!connect_store(s, err)) {
        return false;
    }
    return answered(postgres_query(s->db, "SELECT journal, next_seq FROM position ORDER BY journal",
                                   NULL, 0, on_one_position, &receiver, NULL, err),
                    err);
}

const struct store_ops store_postgres_ops = {
    .name = "postgres",
    .open = open_store,
    .select = select_rows,
    .positions = positions,
    .close = close_store,
};
