/*
 * event_line: one record that a host sends, checked, completed, redacted.
 *
 * A host may send `tool_execution` and `hook_evaluation`. `id`, `collector`,
 * `time`, `schema` and `source` are filled in where they are absent; `source`
 * is "host". Counts that are absent, or 0, are those of its list of hooks; no
 * record has fewer hooks configured than run. A key that the record does not
 * have is refused, so that a misspelt one is not lost in silence. Pure but for
 * ids and the clock.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/record/types.h"

/*
 * Check `line` and append the record to journal to *out (of at most
 * RECORD_MAX_BYTES). Scratch memory comes from the arena.
 * Errors: ERR_INVALID names the key; ERR_TOO_BIG.
 */
bool event_line_read(struct slice line, const char *collector, struct arena *a, struct buf *out,
                     enum record_type *ret_type, struct err *err) MUST_CHECK;
