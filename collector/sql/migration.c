#include "collector/sql/migration.h"

/*
 * The assembler takes a file into the program as it stands (.incbin), so that
 * SQL stays SQL: no generator, no escaping, no file to find when it runs. The
 * path counts from the top folder, where make runs; the Makefile tells make
 * that this object depends on the SQL.
 */
#define EMBED(symbol, path)                                            \
    __asm__(".pushsection .rodata\n"                                   \
            ".globl " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"  \
            ".incbin \"collector/sql/migrations/" path "\"\n.byte 0\n" \
            ".popsection\n");                                          \
    extern const char(symbol)[] __attribute__((visibility("hidden")))

EMBED(sqlite_0001_schema, "sqlite/0001_schema.sql");
EMBED(sqlite_0002_last_record, "sqlite/0002_last_record.sql");
EMBED(postgres_0001_schema, "postgres/0001_schema.sql");
EMBED(postgres_0002_last_record, "postgres/0002_last_record.sql");

const struct migration migrations_sqlite[] = {
    { 1, "schema", sqlite_0001_schema },
    { 2, "last_record", sqlite_0002_last_record },
};
const size_t migrations_sqlite_count = sizeof(migrations_sqlite) / sizeof(migrations_sqlite[0]);

const struct migration migrations_postgres[] = {
    { 1, "schema", postgres_0001_schema },
    { 2, "last_record", postgres_0002_last_record },
};
const size_t migrations_postgres_count =
    sizeof(migrations_postgres) / sizeof(migrations_postgres[0]);

bool migration_may_update(int64_t there, size_t known, struct err *err)
{
    if (there < 0) {
        return err_set(err, ERR_INVALID, "this is another program's database");
    }
    if (there <= (int64_t)known) {
        return true;
    }
    return err_set(err, ERR_INVALID,
                   "the store's schema is version %lld, this program knows up to %zu: use the "
                   "newer hooktrail that made it",
                   (long long)there, known);
}

bool migration_may_read(int64_t there, size_t known, struct err *err)
{
    if (there == 0) {
        return err_set(err, ERR_NOT_FOUND, "the store is empty (hooktrail ship fills it)");
    }
    if (there > 0 && there + 1 < (int64_t)known) {
        return err_set(err, ERR_INVALID,
                       "the store's schema is version %lld, this program reads %zu and %zu: "
                       "hooktrail ship brings it up to date",
                       (long long)there, known - 1, known);
    }
    return migration_may_update(there, known, err);
}
