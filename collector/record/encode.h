/*
 * encode: a record as one line of JSON, the only writer of records there is.
 *
 * The keys stand in the order of the JSON Schemas beside this file
 * (collector/record/schemas/), so equal records are equal bytes. Reasons are
 * cut to RECORD_REASON_CHARS and the cut is told. Texts have passed redaction
 * already (recorder); what is no UTF-8 or a NUL becomes U+FFFD here.
 * Thread: any; a buf belongs to one.
 *
 * Errors: none. A record that passes RECORD_MAX_BYTES leaves buf_ok() false.
 */
#pragma once

#include "collector/base/buf.h"
#include "collector/record/record.h"

/* Append the record, without a newline. */
void encode_evaluation(const struct evaluation *e, struct buf *out);
void encode_tool_execution(const struct tool_execution *t, struct buf *out);
void encode_hook_registry(const struct hook_registry *r, struct buf *out);
void encode_gap(const struct gap *g, struct buf *out);
void encode_admin(const struct admin *a, struct buf *out);

/*
 * The row that sinks derive for hook e->hooks[i], which ran: a `hook_execution`
 * with the evaluation's identity, which encode_identity() made once for all of
 * them. The members of a hook that was decoded are its own bytes: change none of it
 * before.
 */
void encode_identity(const struct evaluation *e, struct buf *out);
void encode_hook_execution(const struct evaluation *e, size_t i, struct slice identity,
                           struct buf *out);

/* The same of a hook's own object in the record, `json`. */
void encode_execution_row(struct slice evaluation_id, uint32_t ordinal, struct slice identity,
                          struct slice json, struct buf *out);

/* The id of that row, as text: the evaluation's, a dot, the ordinal. */
void encode_execution_id(struct slice evaluation_id, uint32_t ordinal, struct buf *out);
