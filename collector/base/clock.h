/*
 * clock: what time it is, and how time is written.
 *
 * Durations come from the monotonic clock, stamps from the wall clock: a clock
 * that is set back an hour lengthens no timeout. Safe from any thread.
 */
#pragma once

#include <stdint.h>

#include "collector/base/err.h"
#include "collector/base/slice.h"

#define CLOCK_DAY_US INT64_C(86400000000)

/* Wall clock, microseconds since 1970 UTC. */
int64_t clock_now_us(void);

/* Monotonic clock; only differences mean something. */
int64_t clock_mono_us(void);
int64_t clock_mono_ms(void);

/* Milliseconds from now until the monotonic `deadline_ms`, at least 0, for poll(2). */
int clock_left_ms(int64_t deadline_ms);

enum { CLOCK_TEXT_SIZE = 28 }; /* "2026-11-30T14:22:45.000001Z" and a NUL */

/* RFC 3339 in UTC with microseconds; years outside 1970..9999 are clamped. */
void clock_format(int64_t us, char ret_text[CLOCK_TEXT_SIZE]);

/*
 * Read an RFC 3339 stamp: offset or Z, any number of fraction digits (past the
 * sixth they are dropped). False when it is none.
 */
bool clock_parse(struct slice text, int64_t *ret_us) MUST_CHECK;
