/*
 * budget: one limit on memory that many threads share.
 *
 * The output of all hooks that run at once comes out of one budget, so that a
 * hundred chatty hooks cannot exhaust what one may not. Safe from any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "collector/base/cleanup.h"

struct budget {
    size_t limit_bytes;
    _Atomic size_t used_bytes;
};

/* Set bytes aside. False, and nothing changed, when that would pass the limit. */
bool budget_take(struct budget *b, size_t bytes) MUST_CHECK;

/* Give back what budget_take() set aside. */
void budget_give(struct budget *b, size_t bytes);
