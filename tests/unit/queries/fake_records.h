/* fake_records: a journal's worth of records that a test writes down. */
#pragma once

#include "collector/record/record.h"
#include "sinks/sink.h"

enum { FAKE_RECORDS_MAX = 128 };

struct fake_records {
    struct sink_record items[FAKE_RECORDS_MAX]; /* numbered from 1 on */
    char *owned[FAKE_RECORDS_MAX];
    size_t n;
};

void fake_records_done(struct fake_records *r);

/* Each is encoded as the collector would; an empty id becomes "id-N", an empty time N seconds. */
void fake_records_evaluation(struct fake_records *r, struct evaluation e);
void fake_records_tool(struct fake_records *r, struct tool_execution t);
void fake_records_registry(struct fake_records *r, struct hook_registry h);
void fake_records_gap(struct fake_records *r, struct gap g);

enum { FAKE_BASE_S = 1764511200 }; /* 2025-11-30T14:00:00Z: second 0 of the tests */

/* Microseconds of `seconds` after the base. */
int64_t fake_time(int64_t seconds);

/* A hook of everybody's that did not run; its matcher is a regular expression. */
struct execution fake_skipped(const char *name, enum skip_reason reason, const char *matcher);
