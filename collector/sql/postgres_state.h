/* postgres_state: what the files of the postgres module share. */
#pragma once

#include "collector/sql/postgres.h"

/* Wait until the socket is ready; SQL_LOST when the time is over. */
enum sql_class postgres_wait(struct postgres *p, short events, struct err *err) MUST_CHECK;

/*
 * A connection to where the dsn says, within timeout_ms, whatever libpq waits for. `host` is
 * told where nothing more is known. Errors: as postgres_open().
 */
bool postgres_dial(const char *dsn, const char *host, int64_t timeout_ms, struct postgres **ret,
                   struct err *err) MUST_CHECK;

/* What an SQLSTATE means (PostgreSQL manual, "Error Codes"). */
enum sql_class postgres_class(const char *sqlstate);

/* A refusal's words, as *err, and what they mean. */
enum sql_class postgres_refused(struct postgres *p, const PGresult *result, struct err *err)
    MUST_CHECK;

/* The connection is in doubt: SQL_LOST, with libpq's words. */
enum sql_class postgres_gone(struct postgres *p, struct err *err);
