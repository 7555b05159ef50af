/*
 * sets: the hook sets in force, one a contract, replaced while they are used.
 * Safe from any thread.
 */
#pragma once

#include <pthread.h>

#include "collector/contract/contract.h"

enum { SETS_MAX = 8 }; /* contracts that are built in, and spare */

struct sets {
    pthread_mutex_t mutex;
    struct hookset *list[SETS_MAX]; /* a reference each; NULL behind the last */
};

/* No set at all; and dropping the references to all that are there. */
void sets_init(struct sets *s);
void sets_done(struct sets *s);

/* A reference to the set of a contract; NULL when there is none. */
struct hookset *sets_get(struct sets *s, struct slice contract);

/*
 * Put a set (its reference is taken) in the place of the contract's former one.
 * True when it is another: there was none, or its digest differs.
 */
bool sets_put(struct sets *s, struct hookset *set);

/* Drop the set of a contract that is no longer configured. True: there was one. */
bool sets_drop(struct sets *s, struct slice contract);

/* How many there are. */
size_t sets_count(struct sets *s);
