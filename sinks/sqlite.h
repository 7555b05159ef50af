/*
 * sqlite: the embedded store, one file.
 *
 * Records, derived rows, roll-ups and the position of their journal move in one
 * transaction, so each record is there exactly once, whatever dies when.
 * Settings: `path` (the file), `retention_days` (0: for ever).
 */
#pragma once

#include "sinks/sink.h"

extern const struct sink_ops sink_sqlite_ops;
