/*
 * postgres_schema: is the store's schema in PostgreSQL the one that this program
 * knows? As schema.h says of SQLite: the writer brings an older one up to date,
 * several may start at once, a newer one is refused in words.
 */
#pragma once

#include "collector/sql/migration.h"
#include "collector/sql/postgres.h"

/*
 * Apply what is missing, all or nothing. On SQL_REFUSED, *err says in words what is there:
 * a newer schema, or another program's. Call postgres_arm() before.
 */
enum sql_class postgres_migrate(struct postgres *p, struct err *err) MUST_CHECK;

/* For a reader. ERR_NOT_FOUND: no schema yet; ERR_INVALID: too new, too old, or not ours. */
bool postgres_check_schema(struct postgres *p, struct err *err) MUST_CHECK;
