/*
 * loader_seen: the sequences of one journal that are known to be in the database.
 *
 * A sorted list: what comes in order is appended, and a batch has some thousands.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loader_seen {
    uint64_t *list; /* owned, ascending */
    size_t n;
    size_t cap;
};

/* One that is there already is not added again; done() frees the list, not the struct. */
bool loader_seen_has(const struct loader_seen *s, uint64_t seq);
void loader_seen_add(struct loader_seen *s, uint64_t seq);
void loader_seen_done(struct loader_seen *s);
