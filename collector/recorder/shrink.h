/*
 * shrink: encode a record, whatever its size, into RECORD_MAX_BYTES.
 *
 * Over the limit it loses content in steps, the least needed first: it is never
 * lost as a whole. Thread: the worker that owns the record.
 */
#pragma once

#include "collector/base/buf.h"
#include "collector/record/record.h"

/* *out holds the record afterwards, and nothing else. *e is what was written. */
void shrink_evaluation(struct evaluation *e, struct buf *out);
void shrink_tool_execution(struct tool_execution *t, struct buf *out);
