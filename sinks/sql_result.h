/*
 * sql_result: what the drivers of SQL databases tell the pump alike.
 */
#pragma once

#include "collector/sql/class.h"
#include "sinks/sink.h"

/* What the pump is to do after a call of this class. */
enum sink_result sql_result(enum sql_class class);

/*
 * The store's position is `next`, and the span does not begin there: somebody else moved it.
 * SINK_DOWN, with an error that says so: the pump asks for the position anew.
 */
enum sink_result sql_result_elsewhere(const struct span *span, uint64_t next, struct err *err);

/* Where the store stands, of its row's columns: next_seq, last_seq and last_leaf (0, empty: NULL).
 */
struct sink_position sql_position(int64_t next_seq, int64_t last_seq, struct slice last_leaf);
