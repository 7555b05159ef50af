/* small_journal: real journals in the fake folder, of small segments, and what befalls them. */
#pragma once

#include "collector/journal/journal.h"
#include "collector/journal/reader.h"

/* Open the journal of a role; journal_close() it. */
struct journal *small_journal_open(const char *role);

/* Append samples; the result is the last sequence. */
uint64_t small_journal_fill(struct journal *j, size_t n);

/* The oldest journal there. */
struct journal_info small_journal_info(void);

/* Take away its oldest segment: as a hand would, … */
void small_journal_delete_segment(void);
/* … or as retention for other sinks: it tells the mark. */
void small_journal_retire_segment(void);

/* Turn a bit of the n-th record that names its thread, in the oldest segment. */
void small_journal_damage(int n);
