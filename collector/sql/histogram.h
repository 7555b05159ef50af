/*
 * histogram: the buckets in which the roll-ups count durations.
 *
 * The columns d_100us … d_more of the *_minute tables, in this order. Bucket i
 * counts durations up to histogram_bounds_us[i] and over the bound before it;
 * the last one counts the rest. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 16 };

/* Upper bounds, inclusive; the last is INT64_MAX. */
extern const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS];

/* The column of each bucket, e.g. "d_5ms". */
extern const char *const histogram_columns[HISTOGRAM_BUCKETS];

/* The bucket of a duration; a negative one counts as 0. */
size_t histogram_bucket(int64_t duration_us);
