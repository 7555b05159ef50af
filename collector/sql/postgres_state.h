/* postgres_state: what the files of the postgres module share. */
#pragma once

#include "collector/sql/postgres.h"

/* Wait until the socket is ready; SQL_LOST when the time is over. */
enum sql_class postgres_wait(struct postgres *p, short events, struct err *err) MUST_CHECK;

/* What an SQLSTATE means (PostgreSQL manual, "Error Codes"). */
enum sql_class postgres_class(const char *sqlstate);
