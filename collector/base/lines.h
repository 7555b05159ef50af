/*
 * lines: on which line of its file each key of a JSON tree stood.
 *
 * jansson's true, false and null are one object each, so a line cannot hang on
 * a value: it hangs on the mapping and the key in it.
 * Not thread-safe while it is filled.
 */
#pragma once

#include <jansson.h>

#include "collector/base/arena.h"

struct lines_entry;

struct lines {
    struct lines_entry *entries; /* owned: open addressing, `cap` of them, a power of two */
    size_t cap;
    size_t used;
    struct arena keys;
};

/* An empty table whose keys take at most limit_bytes. */
void lines_init(struct lines *l, size_t limit_bytes);
void lines_done(struct lines *l);

/*
 * Remember the line of `key` in object. Of two of the same place the first stays.
 * False when the keys pass the limit.
 */
bool lines_put(struct lines *l, const json_t *object, const char *key, size_t line) MUST_CHECK;

/* The line, or 0. */
size_t lines_get(const struct lines *l, const json_t *object, const char *key);
