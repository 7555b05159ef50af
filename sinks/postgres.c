#include "sinks/postgres.h"

#include <assert.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/postgres_batch.h"
#include "sinks/sql_result.h"

struct sink_postgres {
    struct sink base;
    struct postgres_batch *batch; /* owned */
};

static struct sink_postgres *from_sink(struct sink *s)
{
    assert(s->ops == &sink_postgres_ops);
    return CONTAINER_OF(s, struct sink_postgres, base);
}

static bool sink_postgres_open(const struct sink_config *cfg, struct sink **ret_sink,
                               struct err *err)
{
    const char *dsn = json_string_value(json_object_get(cfg->settings, "dsn"));
    int64_t days = json_integer_value(json_object_get(cfg->settings, "retention_days"));
    struct postgres_batch *batch;

    if (!dsn) {
        dsn = cfg->target.ptr;
    }
    if (!dsn) {
        return err_set(err, ERR_INVALID, "postgres: needs a dsn");
    }
    if (!postgres_batch_open(dsn, cfg->timeout_ms, days, &batch, err)) {
        return false;
    }

    struct sink_postgres *s = xcalloc(1, sizeof(*s));

    s->base.ops = &sink_postgres_ops;
    s->batch = batch;
    *ret_sink = &s->base;
    return true;
}

static void sink_postgres_close(struct sink *s)
{
    if (s) {
        postgres_batch_close(from_sink(s)->batch);
        free(from_sink(s));
    }
}

static bool keep_position(void *ctx, const PGresult *row)
{
    *(struct sink_position *)ctx =
        sql_position(postgres_integer(row, 0), postgres_integer(row, 1), postgres_text(row, 2));
    return false;
}

static enum sql_class read_position(struct postgres *db, struct slice journal,
                                    struct sink_position *ret, struct err *err)
{
    const struct postgres_value value = postgres_of_text(journal);

    *ret = (struct sink_position){ .next = 1 };
    return postgres_query(db,
                          "SELECT next_seq, last_seq, last_leaf FROM position WHERE journal = $1",
                          &value, 1, keep_position, ret, NULL, err);
}

static bool sink_postgres_position(struct sink *s, struct slice journal, struct sink_position *ret,
                                   struct err *err)
{
    struct postgres *db = from_sink(s)->batch->db;

    postgres_arm(db);
    return read_position(db, journal, ret, err) == SQL_DONE;
}

static enum sink_result elsewhere(struct postgres *db, const struct span *span, struct err *err)
{
    struct sink_position at;
    enum sql_class class = read_position(db, span->journal, &at, err);

    if (class != SQL_DONE) {
        return sql_result(class);
    }
    return sql_result_elsewhere(span, at.next, err);
}

static const char move_sql[] =
    "UPDATE position SET next_seq = $3, last_seq = coalesce($4, last_seq), "
    "last_leaf = coalesce($5, last_leaf) WHERE journal = $1 AND next_seq = $2";
static const char begin_sql[] =
    "INSERT INTO position (journal, next_seq, last_seq, last_leaf) VALUES ($1, $3, $4, $5) "
    "ON CONFLICT (journal) DO NOTHING";

/* From the expected value or not at all; the row's lock keeps a second writer waiting. */
static enum sink_result move_position(struct postgres *db, const struct span *span, struct err *err)
{
    const struct sink_record *last = span_last(span);
    const struct postgres_value values[] = {
        postgres_of_text(span->journal),
        postgres_of_integer((int64_t)span->from),
        postgres_of_integer((int64_t)span->to + 1),
        last ? postgres_of_integer((int64_t)last->seq) : postgres_of_null(),
        last ? postgres_of_bytes(digest_slice(&last->leaf)) : postgres_of_null(),
    };
    uint64_t moved = 0;
    enum sql_class class = postgres_query(db, move_sql, values, 5, NULL, NULL, &moved, err);

    if (class == SQL_DONE && moved == 0 && span->from == 1) {
        class = postgres_query(db, begin_sql, values, 5, NULL, NULL, &moved, err);
    }
    if (class != SQL_DONE) {
        return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
    }
    return moved > 0 ? SINK_OK : elsewhere(db, span, err);
}

static enum sink_result add_all(struct postgres_batch *b, const struct span *span, struct err *err)
{
    for (size_t i = 0; i < span->n; i++) {
        bool there = false;
        enum sink_result result = SINK_OK;

        if (span->late) { /* a person sends it again, and it may be there */
            result = postgres_batch_has(b, span->journal, &span->records[i], &there, err);
        }
        if (result == SINK_OK && !there) {
            result = postgres_batch_add(b, span->journal, &span->records[i], err);
        }
        if (result != SINK_OK) {
            return result;
        }
    }
    return SINK_OK;
}

static enum sink_result sink_postgres_write(struct sink *s, const struct span *span,
                                            struct err *err)
{
    struct postgres_batch *b = from_sink(s)->batch;
    enum sink_result result = postgres_batch_begin(b, err);

    if (result == SINK_OK && !span->late) {
        result = move_position(b->db, span, err);
    }
    if (result == SINK_OK) {
        result = add_all(b, span, err);
    }
    if (result == SINK_OK) {
        result = postgres_batch_commit(b, span->journal, err);
    }
    return result == SINK_OK ? SINK_OK : postgres_batch_abandon(b, result, err);
}

/* One machine's clock decides nothing for a database that others share. */
static const char due_sql[] =
    "SELECT (oldest.of_day - date '1970-01-01')::int8 + 1, oldest.n, $1 - today FROM "
    "(SELECT floor(extract(epoch FROM now()) / 86400)::int8 AS today) AS server LEFT JOIN "
    "hooktrail_oldest_day(date '1970-01-01' + (least($1, today) - $2)::int) AS oldest ON true";

/* What due_sql answers. */
struct due {
    int64_t before;     /* the day after the one that goes next; 0: none does */
    int64_t rows;       /* records of that one */
    int64_t days_ahead; /* of the server's clock: ours */
};

static bool keep_due(void *ctx, const PGresult *row)
{
    *(struct due *)ctx = (struct due){
        .before = postgres_integer(row, 0),
        .rows = postgres_integer(row, 1),
        .days_ahead = postgres_integer(row, 2),
    };
    return false;
}

static enum sink_result sink_postgres_cut_due(struct sink *s, int64_t now_us, struct sink_cut *ret,
                                              struct err *err)
{
    struct postgres_batch *b = from_sink(s)->batch;
    const struct postgres_value values[] = {
        postgres_of_integer(now_us / CLOCK_DAY_US),
        postgres_of_integer(b->days.retention_days),
    };
    struct due due = { 0 };
    enum sql_class class;

    *ret = (struct sink_cut){ 0 };
    if (b->days.retention_days <= 0) {
        return SINK_OK;
    }
    postgres_arm(b->db);
    class = postgres_query(b->db, due_sql, values, 2, keep_due, &due, NULL, err);
    ret->before_us = due.before * CLOCK_DAY_US;
    ret->rows = (uint64_t)due.rows;
    if (due.days_ahead < -1 || due.days_ahead > 1) {
        log_warn("our clock is not the database's: retention goes by the one that keeps more",
                 log_str("sink", s->ops->name), log_i64("days_ahead", due.days_ahead));
    }
    return sql_result(class);
}

static enum sink_result sink_postgres_cut_step(struct sink *s, const struct sink_cut *cut,
                                               bool *ret_done, struct err *err)
{
    struct postgres_batch *b = from_sink(s)->batch;
    const struct postgres_value value = postgres_of_integer(cut->before_us / CLOCK_DAY_US - 1);

    *ret_done = true; /* a day goes at once */
    postgres_days_forget(&b->days);
    postgres_arm(b->db);
    return sql_result(postgres_query(b->db,
                                     "SELECT hooktrail_drop_day(date '1970-01-01' + $1::int)",
                                     &value, 1, NULL, NULL, NULL, err));
}

const struct sink_ops sink_postgres_ops = {
    .name = "postgres",
    .batch_records = 8192, /* a commit waits for the server's disk */
    .open = sink_postgres_open,
    .position = sink_postgres_position,
    .write = sink_postgres_write,
    .cut_due = sink_postgres_cut_due,
    .cut_step = sink_postgres_cut_step,
    .close = sink_postgres_close,
};
