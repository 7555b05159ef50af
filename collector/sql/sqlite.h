/*
 * sqlite: one SQLite file, opened to write (ship) or to read (serve, trace, why).
 *
 * What SQLite needs said once: the pragmas, a limit on every call's time, and
 * what a result code means. Statements are prepared and bound with SQLite's own
 * functions, or the few here that know slices and words.
 *
 * WAL: readers and the writer do not wait for each other. synchronous=FULL,
 * although the journal could send a lost tail again: a position that was told to
 * the outside lets the journal forget, so it must be on disk; one fsync a batch
 * is a small price. The -wal and -shm files stay after the writer, or a reader
 * without rights to the folder could not open the file.
 *
 * Time: sqlite_arm() starts the clock for the calls that follow. A lock or a
 * query that lasts beyond timeout_ms ends in SQL_AGAIN.
 * Thread: a handle belongs to one at a time.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "collector/base/err.h"
#include "collector/base/slice.h"
#include "collector/sql/class.h"

enum sqlite_mode { SQLITE_TO_READ, SQLITE_TO_WRITE };

struct sqlite {
    sqlite3 *db; /* owned */
    int64_t timeout_ms;
    int64_t deadline_ms; /* monotonic; 0: none */
};

/*
 * Open `path`. To write: the file is made where there is none. To read:
 * ERR_NOT_FOUND where there is none. Other errors: ERR_AGAIN, ERR_IO, ERR_INVALID
 * (no database), ERR_CORRUPT. *ret is released with sqlite_close().
 */
bool sqlite_open(const char *path, enum sqlite_mode mode, int64_t timeout_ms, struct sqlite **ret,
                 struct err *err) MUST_CHECK;
void sqlite_close(struct sqlite *s);   /* accepts NULL */
void sqlite_closep(struct sqlite **s); /* for CLEANUP */

/* The calls from here on end within timeout_ms. */
void sqlite_arm(struct sqlite *s);

/* Run one or several statements that give no rows. */
enum sql_class sqlite_exec(struct sqlite *s, const char *sql, struct err *err) MUST_CHECK;

/* End a transaction that failed, if there is one. What cannot be rolled back now is when s closes.
 */
void sqlite_rollback(struct sqlite *s);

/* Prepare one statement; sqlite_finalizep() releases it. */
enum sql_class sqlite_prepare(struct sqlite *s, const char *sql, sqlite3_stmt **ret,
                              struct err *err) MUST_CHECK;
void sqlite_finalizep(sqlite3_stmt **stmt); /* for CLEANUP; accepts a NULL inside */

/* One step: *ret_row tells whether there is a row. After the last row, or an error, it is reset. */
enum sql_class sqlite_step(struct sqlite *s, sqlite3_stmt *stmt, bool *ret_row, struct err *err)
    MUST_CHECK;

/* A step of a statement that gives no row. */
enum sql_class sqlite_run(struct sqlite *s, sqlite3_stmt *stmt, struct err *err) MUST_CHECK;

/*
 * Bind text that outlives the step; an empty slice or word, or no blob, is NULL ("not
 * applicable"). Binding cannot fail but by a bug: the index is checked.
 */
void sqlite_bind_slice(sqlite3_stmt *stmt, int i, struct slice text);
void sqlite_bind_word(sqlite3_stmt *stmt, int i, const char *word);
void sqlite_bind_i64(sqlite3_stmt *stmt, int i, int64_t n);
void sqlite_bind_i64_or_null(sqlite3_stmt *stmt, int i, bool present, int64_t n);
void sqlite_bind_blob(sqlite3_stmt *stmt, int i, const void *bytes, size_t n);

/* Text or blob of a column, borrowed until the next step. */
struct slice sqlite_column_slice(sqlite3_stmt *stmt, int i);
