/*
 * sink_contract: what every driver must do, tested the same way for each.
 *
 * A driver's test describes its destination and calls sink_contract_run(). What
 * a destination cannot do (keep a position, refuse a record) is said there, and
 * its tests are left out by name.
 */
#pragma once

#include "sinks/sink.h"

struct sink_subject {
    const char *name; /* of the group of tests */
    const struct sink_ops *ops;
    const struct sink_config *cfg;
    /* Make the destination empty, before each test. */
    void (*reset)(void);
    /* Records of a journal at the destination now, in all. NULL: it keeps nothing. */
    uint64_t (*count)(struct slice journal);
    bool forgets;      /* it cannot tell what it has: what is sent late twice is there twice */
    bool fences;       /* a second writer ends the first for good, until a person acts */
    bool refuses_data; /* a record that is no record is SINK_REJECT */
};

/* Run every test that fits; the result is main()'s. */
int sink_contract_run(const struct sink_subject *subject);

/* Records for tests: evaluations and tool executions in turn, with hooks; `n` of them from `seq`.
 */
struct sink_samples;
struct sink_samples *sink_samples_new(uint64_t seq, size_t n);
/* The same with the time of the first; they are a second apart. */
struct sink_samples *sink_samples_at(uint64_t seq, size_t n, int64_t time_us);
const struct sink_record *sink_samples_list(const struct sink_samples *s);
void sink_samples_free(struct sink_samples *s);
void sink_samples_freep(struct sink_samples **s); /* for CLEANUP */
