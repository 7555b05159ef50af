/* serve_store: the store that the configuration names, for commands and the server. */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/config.h"
#include "queries/store.h"

struct serve_store {
    const struct store_ops *ops;
    struct store_config config; /* strings in the arena, or the configuration's */
};

/* Find it; nothing is opened. Errors: ERR_INVALID: no such store, or its sink is not configured. */
bool serve_store_find(const struct config *c, struct arena *a, struct serve_store *ret,
                      struct err *err) MUST_CHECK;

/* Open it. Errors: the store's, but ERR_IO where there is none yet. */
bool serve_store_open(const struct serve_store *s, struct store **ret, struct err *err) MUST_CHECK;

/* For CLEANUP; accepts a NULL inside. */
void serve_store_closep(struct store **s);
