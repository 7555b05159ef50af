/*
 * adopt: find the journal that a role wrote last, see how it was left, and go on
 * with it, or begin another one that tells what is missing.
 * Thread: before the writer's begins.
 */
#pragma once

#include "collector/journal/journal_impl.h"

/* Fill j's journal: the last one, or a new one. */
bool adopt_last(struct journal *j, struct journal_recovery *ret, struct err *err) MUST_CHECK;

/* What a mark says of the folder `dir` and of j; journal and generation are the caller's. */
bool adopt_describe(struct journal *j, const char *dir, struct format_mark *ret, struct err *err)
    MUST_CHECK;
