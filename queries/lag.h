/* lag: how far a store is behind the journals of this machine. */
#pragma once

#include "queries/store.h"

/*
 * Count the evaluations and tool executions that are durable in a journal under state_dir
 * and not in the store yet: an answer may lack them. Journals that cannot be read are
 * logged, and not counted.
 */
bool lag_measure(struct store *s, const char *state_dir, uint64_t *ret_records, struct err *err)
    MUST_CHECK;
