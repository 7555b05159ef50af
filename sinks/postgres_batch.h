/*
 * postgres_batch: records on their way into PostgreSQL, in one transaction.
 *
 * Rows go by COPY while the next are made (postgres_rows.h), each into its day's
 * partition (postgres_days.h); roll-ups are counted meanwhile and merged at the end
 * (postgres_minutes.h). What else belongs into the transaction (a position) its user
 * does with `db` between begin and commit.
 *
 *     begin ─▶ (the user's own statements) ─▶ add … add ─▶ commit | abandon
 *
 * Used by the sink, and by the loader. Thread: one.
 */
#pragma once

#include "collector/sql/postgres.h"
#include "sinks/postgres_days.h"
#include "sinks/postgres_rows.h"
#include "sinks/rows.h"

struct postgres_batch {
    struct postgres *db; /* owned */
    struct rows rows;
    struct rollup rollup;
    struct postgres_rows made;
    struct postgres_days days;
};

/*
 * Connect, bring the schema up to date, make partitions ahead. The dsn may name a
 * file or an environment variable (config_secret()). postgres_batch_close() accepts NULL.
 */
bool postgres_batch_open(const char *dsn, int64_t timeout_ms, int64_t retention_days,
                         struct postgres_batch **ret, struct err *err) MUST_CHECK;
void postgres_batch_close(struct postgres_batch *b);

/* Begin a transaction. */
enum sink_result postgres_batch_begin(struct postgres_batch *b, struct err *err) MUST_CHECK;

/* Add one record's rows, and count it. */
enum sink_result postgres_batch_add(struct postgres_batch *b, struct slice journal,
                                    const struct sink_record *r, struct err *err) MUST_CHECK;

/*
 * Whether the record's row is there already, added in this transaction or before it:
 * what was sent again, by a person or a producer, must not be there twice.
 */
enum sink_result postgres_batch_has(struct postgres_batch *b, struct slice journal,
                                    const struct sink_record *r, bool *ret_there, struct err *err)
    MUST_CHECK;

/*
 * Send what is left, and hear what became of all rows. Whoever writes more in the transaction
 * than records does it after this: the next statement would hear of a row that is refused.
 */
enum sink_result postgres_batch_send(struct postgres_batch *b, struct err *err) MUST_CHECK;

/*
 * Send what is left, merge the roll-ups as rows of `source` (a journal's id, or a
 * loader's name: sources never wait for each other), commit.
 */
enum sink_result postgres_batch_commit(struct postgres_batch *b, struct slice source,
                                       struct err *err) MUST_CHECK;

/*
 * Roll back, and forget what was added; what the result `why` then means. A partition that
 * somebody dropped under us is no reason to stop: SINK_RETRY, the next batch makes it
 * anew. SINK_RETRY of a connection in doubt, which is left as it is, is SINK_DOWN.
 */
enum sink_result postgres_batch_abandon(struct postgres_batch *b, enum sink_result why,
                                        struct err *err) MUST_CHECK;
