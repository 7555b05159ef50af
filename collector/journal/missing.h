/*
 * missing: segments that are not there although retention did not remove them.
 *
 * Retention tells the mark what it removes before it does (format.h), so that
 * whatever else takes a file away leaves a hole that can be told.
 */
#pragma once

#include <stdint.h>

#include "collector/journal/folder.h"
#include "collector/journal/mark.h"

/* Records of a journal that are gone with their segments, from the oldest on. */
struct missing {
    uint64_t from; /* 0: none is */
    uint64_t to;
};

/* What is missing before the segments `s`; all of them, where there are none. */
struct missing missing_before(const struct mark *mark, const struct folder_segments *s);

/* How many records that are; 0: none. */
uint64_t missing_count(struct missing m);
