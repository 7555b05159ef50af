/*
 * decode: a record's line of JSON back in memory.
 *
 * Texts without escapes are slices of the line itself; the others are made in
 * the arena. Unknown keys are passed over (a newer writer), and schema versions
 * RECORD_SCHEMA and the one before it are taken.
 *
 * Errors: ERR_INVALID names the key; ERR_TOO_BIG at the arena's limit.
 * Thread: any.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/err.h"
#include "collector/record/record.h"

/* Type and head of any record. */
bool decode_head(struct slice json, struct arena *a, enum record_type *ret_type,
                 struct record_head *ret, struct err *err) MUST_CHECK;

/* A whole record of its type; the type must fit. */
bool decode_evaluation(struct slice json, struct arena *a, struct evaluation *ret, struct err *err)
    MUST_CHECK;
bool decode_tool_execution(struct slice json, struct arena *a, struct tool_execution *ret,
                           struct err *err) MUST_CHECK;
bool decode_hook_registry(struct slice json, struct arena *a, struct hook_registry *ret,
                          struct err *err) MUST_CHECK;
bool decode_gap(struct slice json, struct arena *a, struct gap *ret, struct err *err) MUST_CHECK;
bool decode_admin(struct slice json, struct arena *a, struct admin *ret, struct err *err)
    MUST_CHECK;
