/*
 * feed: the journals of a state folder as a source of spans for one sink.
 *
 * Every journal under STATE/journals is followed, those that appear later too,
 * in turns, so that a busy one does not hold up the others. What cannot be
 * delivered (retired before this sink had it, damaged) is told once, and the
 * span that follows it moves the position past it. A journal that is an older copy of what the
 * sink knows (rejoin.h) is told, and gives nothing. Memory: one batch, or two where it reads
 * ahead.
 */
#pragma once

#include "sinks/source.h"

/* Records of a journal that this sink will never get. */
struct feed_loss {
    const char *journal;
    const char *role;
    uint64_t from, to; /* sequence numbers, both included; to 0: how many is not known */
    const char *cause; /* retired, damage */
};

struct feed_options {
    const char *state_dir;
    const char *sink;     /* for log lines */
    size_t batch_records; /* of a span at most */
    size_t batch_bytes;   /* of its records at most, but always room for one */
    bool ahead;           /* a span is asked for while the one before is on its way */
    void (*on_loss)(void *ctx, const struct feed_loss *loss); /* NULL: only logged */
    void *ctx;
};

/* Strings of *o are borrowed. Nothing is read yet. */
struct source *feed_open(const struct feed_options *o);
