/*
 * postgres_minutes: a batch's roll-ups added to the minutes of the store.
 *
 * Counts go by COPY into a table of the session's own, and are merged from there.
 */
#pragma once

#include "collector/sql/postgres.h"
#include "sinks/rollup.h"

/* Make the session's tables; once a connection. */
enum sql_class postgres_minutes_open(struct postgres *db, struct err *err) MUST_CHECK;

/* Add the counts to the rows of `source`, which nobody else writes meanwhile. */
enum sql_class postgres_minutes_add(struct postgres *db, struct slice source,
                                    const struct rollup *counts, struct err *err) MUST_CHECK;
