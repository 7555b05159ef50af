/*
 * histogram: the buckets in which the roll-ups count durations.
 *
 * The columns d_100us … d_more of the *_minute tables, in this order. Bucket i
 * counts durations up to HISTOGRAM_BOUNDS_US[i] and over the bound before it;
 * the last one counts the rest. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 16 };

/* Upper bounds, inclusive; the last is INT64_MAX. */
extern const int64_t HISTOGRAM_BOUNDS_US[HISTOGRAM_BUCKETS];

/* The column of each bucket, e.g. "d_5ms". */
extern const char *const HISTOGRAM_COLUMNS[HISTOGRAM_BUCKETS];

/* The bucket of a duration; a negative one counts as 0. */
size_t histogram_bucket(int64_t duration_us);
