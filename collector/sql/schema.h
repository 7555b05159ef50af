/*
 * schema: is the store's schema the one that this program knows?
 *
 * The writer brings an older schema up to date; several may start at once. A
 * schema that is newer than the program is refused, by writers and readers: it
 * may mean other things. A reader takes the version before its own, so that it
 * can be updated first.
 */
#pragma once

#include "collector/sql/migration.h"
#include "collector/sql/sqlite.h"

/*
 * Apply what is missing, all or nothing. On SQL_REFUSED, *err says in words what
 * is there: a newer schema, or another program's database.
 */
enum sql_class sqlite_migrate(struct sqlite *s, struct err *err) MUST_CHECK;

/* As sqlite_migrate() with a list of the caller's: for tests of migrations. */
enum sql_class sqlite_migrate_with(struct sqlite *s, const struct migration *list, size_t n,
                                   struct err *err) MUST_CHECK;

/* For a reader. ERR_NOT_FOUND: no schema yet; ERR_INVALID: too new, too old, or not ours. */
bool sqlite_check_schema(struct sqlite *s, struct err *err) MUST_CHECK;
