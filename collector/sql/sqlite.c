#include "collector/sql/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"

enum {
    STEPS_BETWEEN_LOOKS = 1000, /* of SQLite's machine: well under a millisecond */
    LOCK_PAUSE_MS = 5,          /* between two tries for a lock */
    FILE_MODE = 0640,           /* as a group may be let read the store */
};

/* Sizes are those of a role that stays under 40 MB: 8 MB of cache, 16 MB of WAL. */
static const char write_pragmas[] = "PRAGMA journal_mode = WAL;"
                                    "PRAGMA synchronous = FULL;"
                                    "PRAGMA cache_size = -8192;"
                                    "PRAGMA wal_autocheckpoint = 4000;"
                                    "PRAGMA journal_size_limit = 67108864;"
                                    "PRAGMA temp_store = MEMORY;";
static const char read_pragmas[] = "PRAGMA query_only = 1;"
                                   "PRAGMA cache_size = -4096;"
                                   "PRAGMA temp_store = MEMORY;";

/* What a result code asks of us, and the code that struct err carries for it. */
static enum sql_class classify(int code, enum err_code *ret)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
        *ret = ERR_AGAIN;
        return SQL_AGAIN;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
        *ret = ERR_IO;
        return SQL_LOST;
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        *ret = ERR_INVALID;
        return SQL_DATA;
    case SQLITE_CONSTRAINT:
        *ret = ERR_INVALID;
        /* A row that is there already is no fault of its values: two write one journal. */
        return code == SQLITE_CONSTRAINT_PRIMARYKEY ? SQL_REFUSED : SQL_DATA;
    case SQLITE_CORRUPT:
        *ret = ERR_CORRUPT;
        return SQL_REFUSED;
    default:
        *ret = ERR_INVALID;
        return SQL_REFUSED;
    }
}

/* What the last failed call on s means; fills *err with SQLite's own words. */
static enum sql_class fault(struct sqlite *s, struct err *err)
{
    int code = sqlite3_extended_errcode(s->db);
    enum err_code err_code;
    enum sql_class class = classify(code, &err_code);

    if ((code & 0xff) == SQLITE_INTERRUPT) {
        (void)err_set(err, ERR_AGAIN, "took longer than %lld ms", (long long)s->timeout_ms);
    } else {
        (void)err_set(err, err_code, "%s", sqlite3_errmsg(s->db));
    }
    return class;
}

static bool late(const struct sqlite *s)
{
    return s->deadline_ms != 0 && clock_mono_ms() >= s->deadline_ms;
}

/* SQLite asks during long work; an answer other than 0 ends it. */
static int on_progress(void *ctx)
{
    return late(ctx) ? 1 : 0;
}

/* SQLite asks while another process has the lock; 0 gives up. */
static int on_busy(void *ctx, int tries)
{
    (void)tries;
    if (late(ctx)) {
        return 0;
    }
    (void)usleep(LOCK_PAUSE_MS * 1000);
    return 1;
}

void sqlite_arm(struct sqlite *s)
{
    s->deadline_ms = s->timeout_ms > 0 ? clock_mono_ms() + s->timeout_ms : 0;
}

enum sql_class sqlite_exec(struct sqlite *s, const char *sql, struct err *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? SQL_DONE : fault(s, err);
}

void sqlite_rollback(struct sqlite *s)
{
    if (!sqlite3_get_autocommit(s->db)) {
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
}

/* SQLite would make the file for everybody to read. */
static bool make_file(const char *path, struct err *err)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);

    return fd >= 0 || err_errno(err, errno, "%s", path);
}

static bool look_for_file(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) == 0) {
        return true;
    }
    if (errno == ENOENT) {
        return err_set(err, ERR_NOT_FOUND, "%s: there is no store yet (hooktrail ship makes it)",
                       path);
    }
    return err_errno(err, errno, "%s", path);
}

static bool open_handle(struct sqlite *s, const char *path, enum sqlite_mode mode, struct err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX |
                (mode == SQLITE_TO_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
    int keep = 1;

    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
        (void)fault(s, err);
        return false;
    }
    (void)sqlite3_extended_result_codes(s->db, 1);
    (void)sqlite3_busy_handler(s->db, on_busy, s);
    sqlite3_progress_handler(s->db, STEPS_BETWEEN_LOOKS, on_progress, s);
    /* Also of a reader that closes last: the next one may have no right to make the files. */
    (void)sqlite3_file_control(s->db, NULL, SQLITE_FCNTL_PERSIST_WAL, &keep);
    return sqlite_exec(s, mode == SQLITE_TO_WRITE ? write_pragmas : read_pragmas, err) == SQL_DONE;
}

bool sqlite_open(const char *path, enum sqlite_mode mode, int64_t timeout_ms, struct sqlite **ret,
                 struct err *err)
{
    if (!(mode == SQLITE_TO_WRITE ? make_file(path, err) : look_for_file(path, err))) {
        return false;
    }

    CLEANUP(sqlite_closep) struct sqlite *s = xcalloc(1, sizeof(*s));

    s->timeout_ms = timeout_ms;
    sqlite_arm(s);
    if (!open_handle(s, path, mode, err)) {
        return err_wrap(err, "%s", path);
    }
    *ret = TAKE_PTR(s);
    return true;
}

void sqlite_close(struct sqlite *s)
{
    if (s) {
        (void)sqlite3_close_v2(s->db);
        free(s);
    }
}

void sqlite_closep(struct sqlite **s)
{
    sqlite_close(*s);
    *s = NULL;
}

enum sql_class sqlite_prepare(struct sqlite *s, const char *sql, sqlite3_stmt **ret,
                              struct err *err)
{
    int code = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

    return code == SQLITE_OK ? SQL_DONE : fault(s, err);
}

void sqlite_finalizep(sqlite3_stmt **stmt)
{
    (void)sqlite3_finalize(*stmt);
    *stmt = NULL;
}

enum sql_class sqlite_step(struct sqlite *s, sqlite3_stmt *stmt, bool *ret_row, struct err *err)
{
    int code = sqlite3_step(stmt);
    enum sql_class class = SQL_DONE;

    *ret_row = code == SQLITE_ROW;
    if (code != SQLITE_ROW) {
        if (code != SQLITE_DONE) {
            class = fault(s, err); /* before the reset, which may forget it */
        }
        (void)sqlite3_reset(stmt);
    }
    return class;
}

enum sql_class sqlite_run(struct sqlite *s, sqlite3_stmt *stmt, struct err *err)
{
    bool row;
    enum sql_class class = sqlite_step(s, stmt, &row, err);

    assert(!row);
    return class;
}

/* A wrong index or a statement that was not reset: bugs, not errors. */
static void bound(int code)
{
    assert(code == SQLITE_OK || code == SQLITE_TOOBIG);
}

void sqlite_bind_slice(sqlite3_stmt *stmt, int i, struct slice text)
{
    if (text.len == 0) {
        bound(sqlite3_bind_null(stmt, i));
        return;
    }
    bound(sqlite3_bind_text64(stmt, i, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8));
}

void sqlite_bind_word(sqlite3_stmt *stmt, int i, const char *word)
{
    sqlite_bind_slice(stmt, i, slice_from_cstr(word));
}

void sqlite_bind_i64(sqlite3_stmt *stmt, int i, int64_t n)
{
    bound(sqlite3_bind_int64(stmt, i, n));
}

void sqlite_bind_i64_or_null(sqlite3_stmt *stmt, int i, bool present, int64_t n)
{
    bound(present ? sqlite3_bind_int64(stmt, i, n) : sqlite3_bind_null(stmt, i));
}

void sqlite_bind_blob(sqlite3_stmt *stmt, int i, const void *bytes, size_t n)
{
    bound(sqlite3_bind_blob64(stmt, i, bytes, n, SQLITE_STATIC));
}

struct slice sqlite_column_slice(sqlite3_stmt *stmt, int i)
{
    const void *bytes = sqlite3_column_blob(stmt, i); /* of a text: its UTF-8 */

    return (struct slice){ .ptr = bytes, .len = (size_t)sqlite3_column_bytes(stmt, i) };
}
