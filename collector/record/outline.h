/*
 * outline: of a record what it takes to pass its bytes on.
 *
 * A destination that keeps records as they are needs who they are about, and the rows that
 * are derived from the hooks that ran. These are put together from the record's own bytes:
 * its other members are checked as JSON, and not looked at. Thread: any.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/record/types.h"

/* A hook that ran. */
struct outline_hook {
    uint32_t ordinal;  /* place in the evaluation's list, from 0 */
    struct slice json; /* its object */
};

/* Slices lie in the record, in the arena where that has escapes. Empty: there is none. */
struct outline {
    struct slice type; /* also one that only a newer program knows */
    struct slice id;
    struct slice collector;
    struct slice time; /* RFC 3339 */
    struct slice thread_id;
    struct slice task_run_id;
    struct slice user_id;
    struct outline_hook *ran; /* in order, in the arena */
    size_t n_ran;
};

/*
 * The outline of a record that the journal has as `type`. Of an evaluation *identity, which
 * is cleared, gets what encode_identity() makes, in the record's own spelling.
 * Errors: ERR_INVALID names the key, as decode.h's; ERR_TOO_BIG at a limit.
 */
bool outline_read(struct slice json, enum record_type type, struct arena *a, struct buf *identity,
                  struct outline *ret, struct err *err) MUST_CHECK;
