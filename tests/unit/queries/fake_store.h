/* fake_store: a store in memory, over records that a test wrote down. */
#pragma once

#include "queries/store.h"
#include "tests/unit/queries/fake_records.h"

/* What the store holds from now on, borrowed; journal "journal-1", all of it shipped. */
void fake_store_load(const struct fake_records *records);

/* Calls of select() from now on fail with ERR_AGAIN. */
void fake_store_break(bool broken);

extern const struct store_ops fake_store_ops;
