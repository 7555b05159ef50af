#include "sinks/loader_look.h"

#include <assert.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/journal/format.h"
#include "sinks/deadletter.h"
#include "sinks/sql_result.h"

enum {
    SQL_BYTES = 2048,
    DIGITS_BYTES = 1024 * 1024, /* of the numbers of one batch */
};

/* By time, which has an index and stays what it is where a day is an edge (postgres_days.h). */
static const char of_that_time[] = "time BETWEEN $2 AND $3 AND seq BETWEEN $4 AND $5";

/* The key begins with the day: told every day that there is, it finds a few numbers at once. */
static const char of_any_time[] =
    "day = ANY (ARRAY(SELECT DISTINCT of_day FROM hooktrail_days_before('infinity'))) "
    "AND seq = ANY (string_to_array($2, ',')::bigint[])";

/* The question, and what is known of the answer. */
struct look {
    const struct loader_question *q;
    struct loader_known *known;
};

static bool keep_number(void *ctx, const PGresult *row)
{
    struct slice bytes = postgres_text(row, 1);
    struct digest leaf = { { 0 } };

    memcpy(leaf.bytes, bytes.ptr, bytes.len < DIGEST_BYTES ? bytes.len : DIGEST_BYTES);
    loader_known_add(ctx, (uint64_t)postgres_integer(row, 0), &leaf);
    return true;
}

static enum loader_number_is is(const struct look *l, const struct loader_asked *a)
{
    return loader_known_as(l->known, a->seq, &a->leaf);
}

/* Who has the numbers of the journal, $1, in the tables of records. */
static enum sink_result look_where(const struct look *l, const char *where,
                                   const struct postgres_value *values, size_t n, struct err *err)
{
    static const enum table tables[] = { TABLE_EVALUATION, TABLE_TOOL, TABLE_AUDIT };
    CLEANUP(buf_done) struct buf sql;

    buf_init(&sql, SQL_BYTES);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        buf_addf(&sql, "%sSELECT seq, leaf FROM %s WHERE journal = $1 AND %s",
                 i > 0 ? " UNION ALL " : "", table_shapes[tables[i]].name, where);
    }
    buf_add_char(&sql, '\0');
    assert(buf_ok(&sql));
    return sql_result(
        postgres_query(l->q->db->db, sql.ptr, values, n, keep_number, l->known, NULL, err));
}

static enum sink_result look_then(const struct look *l, struct err *err)
{
    int64_t from_us = INT64_MAX, to_us = INT64_MIN;
    uint64_t from_seq = UINT64_MAX, to_seq = 0;

    for (size_t i = 0; i < l->q->n; i++) {
        const struct loader_asked *a = &l->q->asked[i];

        from_us = a->time_us < from_us ? a->time_us : from_us;
        to_us = a->time_us > to_us ? a->time_us : to_us;
        from_seq = a->seq < from_seq ? a->seq : from_seq;
        to_seq = a->seq > to_seq ? a->seq : to_seq;
    }

    const struct postgres_value values[] = {
        postgres_of_text(l->q->journal),
        postgres_of_time(from_us),
        postgres_of_time(to_us),
        postgres_of_integer((int64_t)from_seq),
        postgres_of_integer((int64_t)to_seq),
    };

    return look_where(l, of_that_time, values, 5, err);
}

/* Those that are free as far as we know; another record of any time may have them. */
static enum sink_result look_ever(const struct look *l, struct err *err)
{
    CLEANUP(buf_done) struct buf numbers;

    buf_init(&numbers, DIGITS_BYTES);
    for (size_t i = 0; i < l->q->n; i++) {
        if (is(l, &l->q->asked[i]) == LOADER_NUMBER_FREE) {
            buf_addf(&numbers, "%s%llu", numbers.len_bytes > 0 ? "," : "",
                     (unsigned long long)l->q->asked[i].seq);
        }
    }
    assert(buf_ok(&numbers)); /* LOADER_BATCH times twenty digits */
    if (numbers.len_bytes == 0) {
        return SINK_OK;
    }

    const struct postgres_value values[] = { postgres_of_text(l->q->journal),
                                             postgres_of_text(buf_slice(&numbers)) };

    return look_where(l, of_any_time, values, 2, err);
}

static enum deadletter_fate keep_letter(void *ctx, struct deadletter *d)
{
    const struct look *l = ctx;

    if (d->seq > 0 && slice_equal(d->journal, l->q->journal)) {
        struct digest leaf = format_leaf(d->record);

        loader_known_add(l->known, d->seq, &leaf);
    }
    return DEADLETTER_KEEP;
}

/* Only where a record is not stored: the file may be large. */
static enum sink_result look_into_letters(struct look *l, struct err *err)
{
    struct deadletter_count count;

    for (size_t i = 0; i < l->q->n; i++) {
        if (is(l, &l->q->asked[i]) != LOADER_NUMBER_ITS) {
            return deadletter_walk(l->q->state_dir, "postgres", false, keep_letter, l, &count, err)
                       ? SINK_OK
                       : SINK_RETRY;
        }
    }
    return SINK_OK;
}

static void pass_what_retention_removed(const struct look *l)
{
    for (size_t i = 0; i < l->q->n; i++) {
        const struct loader_asked *a = &l->q->asked[i];
        bool is_kept = a->time_us / CLOCK_DAY_US >= postgres_days_of(&l->q->db->days, a->time_us);

        if (a->seen && !is_kept && is(l, a) == LOADER_NUMBER_FREE) {
            loader_known_add(l->known, a->seq, &a->leaf);
        }
    }
}

enum sink_result loader_look(const struct loader_question *q, struct loader_known *known,
                             struct err *err)
{
    struct look l = { q, known };
    enum sink_result result = look_then(&l, err);

    if (result == SINK_OK) {
        result = look_ever(&l, err);
    }
    if (result == SINK_OK) {
        result = look_into_letters(&l, err);
    }
    if (result == SINK_OK) {
        pass_what_retention_removed(&l);
    }
    return result;
}
