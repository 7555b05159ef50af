/*
 * migration: the numbered steps that make a store's schema.
 *
 * Each is a file, collector/sql/migrations/DATABASE/NUMBER_NAME.sql, and is
 * part of the program: a store is made and brought up to date by the binary
 * alone. A new file is added to the list in migration.c, which is in order and
 * without holes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/err.h"

struct migration {
    int version; /* from 1 */
    const char *name;
    const char *sql; /* several statements; they run in one transaction */
};

extern const struct migration migrations_sqlite[];
extern const size_t migrations_sqlite_count; /* also the newest version we know */
extern const struct migration migrations_postgres[];
extern const size_t migrations_postgres_count;

/*
 * Whether a store of version `there` (0: empty; -1: another program's) may be brought up to date by
 * a program that knows versions up to `known`, and whether it may be read: this version and the one
 * before. The error says what to do about it.
 */
bool migration_may_update(int64_t there, size_t known, struct err *err) MUST_CHECK;
bool migration_may_read(int64_t there, size_t known, struct err *err) MUST_CHECK;
