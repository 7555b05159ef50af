/*
 * sqlite_state: what the two files of the sqlite driver share: the handle, the
 * prepared statements, and what a refusal means for the pump.
 */
#pragma once

#include "collector/sql/sqlite.h"
#include "sinks/rows.h"
#include "sinks/sink.h"

struct sink_sqlite {
    struct sink base;
    struct sqlite *db;
    int64_t retention_days; /* 0: for ever */
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *get_position;
    sqlite3_stmt *move_position;
    sqlite3_stmt *new_position;
    sqlite3_stmt *insert[TABLE_COUNT];
    sqlite3_stmt *add_minute[2]; /* evaluation_minute, hook_minute */
    struct rows rows;
    struct rollup rollup;
};

/* The downcast is checked: handing a driver another driver's sink is a bug. */
struct sink_sqlite *sink_sqlite_from(struct sink *s);

/* sqlite_cut.c: retention. */
enum sink_result sink_sqlite_cut_due(struct sink *s, int64_t now_us, struct sink_cut *ret,
                                     struct err *err) MUST_CHECK;
enum sink_result sink_sqlite_cut_step(struct sink *s, const struct sink_cut *cut, bool *ret_done,
                                      struct err *err) MUST_CHECK;
