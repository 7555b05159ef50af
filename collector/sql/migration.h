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

struct migration {
    int version; /* from 1 */
    const char *name;
    const char *sql; /* several statements; they run in one transaction */
};

extern const struct migration migrations_sqlite[];
extern const size_t migrations_sqlite_count; /* also the newest version we know */
extern const struct migration migrations_postgres[];
extern const size_t migrations_postgres_count;
