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
    extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(sqlite_0001_schema, "sqlite/0001_schema.sql");
EMBED(postgres_0001_schema, "postgres/0001_schema.sql");

const struct migration MIGRATIONS_SQLITE[] = {
    { 1, "schema", sqlite_0001_schema },
};
const size_t MIGRATIONS_SQLITE_COUNT = sizeof(MIGRATIONS_SQLITE) / sizeof(MIGRATIONS_SQLITE[0]);

const struct migration MIGRATIONS_POSTGRES[] = {
    { 1, "schema", postgres_0001_schema },
};
const size_t MIGRATIONS_POSTGRES_COUNT =
    sizeof(MIGRATIONS_POSTGRES) / sizeof(MIGRATIONS_POSTGRES[0]);
