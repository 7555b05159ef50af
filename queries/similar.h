/* similar: which names could have been meant? Pure. */
#pragma once

#include <stddef.h>

#include "collector/base/slice.h"

/*
 * How far apart two names are: 0 equal, 1 for case only, else 1 + how many bytes
 * must be added, dropped or changed; SIZE_MAX for what nobody would mix up.
 */
size_t similar_distance(struct slice a, struct slice b);
