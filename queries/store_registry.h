/* store_registry: the stores that are built in, by name. Adding one is one line. Pure. */
#pragma once

#include "queries/store.h"

/* The store called `name`; NULL when there is none. */
const struct store_ops *store_find(struct slice name);

/* Names for messages: "sqlite, postgres". */
const char *store_names(void);
