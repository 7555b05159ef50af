/*
 * near_miss: what its author probably meant by a matcher that did not match.
 *
 * A matcher is compared with the whole tool name, with regard to case; most that
 * never fire were written as a prefix, in other case, as a glob, or for the
 * tool's arguments. Pure.
 */
#pragma once

#include "collector/base/arena.h"

/*
 * One sentence on why `pattern` did not match `tool` and what to write instead,
 * in the arena; never empty.
 */
struct slice near_miss(struct slice pattern, struct slice tool, struct arena *a);
