/* evaluation: one record of a chain as it was journalled, with its siblings. */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "queries/store.h"

/*
 * Append, with a newline at the end:
 * {"evaluation":{…the record…},"journal","seq","leaf",
 *  "siblings":[{…the records of the other chains of its dispatch…}]}
 * Errors: ERR_NOT_FOUND: no evaluation of that id; the store's.
 */
bool evaluation_json(struct store *s, struct slice id, struct arena *a, struct buf *out,
                     struct err *err) MUST_CHECK;
