/*
 * loader_batch: what a loader has read and not committed yet, and how it is
 * committed: all of it; where the database refuses a record, in halves; where a message
 * is no record of ours, what is before it and what is behind it.
 * Thread: the loader's.
 */
#pragma once

#include <librdkafka/rdkafka.h>

#include "collector/base/id.h"
#include "sinks/loader.h"
#include "sinks/postgres_batch.h"

enum {
    LOADER_BATCH = 5000,                   /* messages at most */
    LOADER_BATCH_BYTES = 16 * 1024 * 1024, /* of their values */
    LOADER_PARTITIONS = 1024,              /* of all topics that one loader may get */
    LOADER_TOLD = 16, /* journals of which it is remembered that they are told */
};

/* A partition that we have, and where it goes on. */
struct loader_place {
    char topic[256];
    int32_t partition;
    int64_t next_offset; /* committed in the database */
    int64_t read_to;     /* behind the last message of the batch */
    int64_t proof;       /* the last message that was committed is here, and is read again; or -1 */
    bool anew;           /* it was not: this is to be read from its beginning */
    bool refused;        /* we may not read its topic */
    bool at_end;         /* of what we are shown */
    int64_t shown_to;    /* that end, when it was met last */
    int64_t ends_at;     /* the true one, when that was met first; -1: it was not yet */
};

struct loader_batch {
    const struct loader_options *o;
    struct postgres_batch *db;                  /* owned; NULL: not connected */
    rd_kafka_message_t *messages[LOADER_BATCH]; /* owned */
    size_t n;
    size_t bytes;
    struct loader_place places[LOADER_PARTITIONS];
    size_t n_places;
    struct arena arena;
    struct loader_count count;
    size_t unreadable; /* index of a message that is no record of ours; LOADER_BATCH: none met */
    bool unsure;       /* the last transaction failed over a number or a row that is taken */
    char told[LOADER_TOLD][ID_TEXT_SIZE]; /* journals that gave numbers twice, the latest */
    size_t n_told;                        /* ever */
    bool looks_at_all; /* whatever comes may be there already, also what is above the last sequence
                        */
};

/* The place of a message's partition; NULL when it is not ours. */
struct loader_place *loader_place_of(struct loader_batch *b, const char *topic, int32_t partition);

/* Connect if need be. */
bool loader_batch_connect(struct loader_batch *b, struct err *err) MUST_CHECK;

/* Ask the database where each place goes on; -1 where it has never been read. */
enum sink_result loader_batch_ask(struct loader_batch *b, struct err *err) MUST_CHECK;

/*
 * Whether the database has seen what stands at m, by the last sequence of its journal;
 * true where that cannot be told. It has not: the topic is another one than was read.
 */
bool loader_batch_knows(struct loader_batch *b, const struct loader_place *place,
                        const rd_kafka_message_t *m);

/* Let a place go on elsewhere than the database says. */
enum sink_result loader_batch_move(struct loader_batch *b, struct loader_place *place, int64_t to,
                                   struct err *err) MUST_CHECK;

/*
 * Commit everything; on SINK_OK the batch is empty. A record that is refused for good
 * goes to the dead letters, and the others are committed.
 */
enum sink_result loader_batch_commit(struct loader_batch *b, struct err *err) MUST_CHECK;

/* Forget what was read. */
void loader_batch_clear(struct loader_batch *b);
void loader_batch_done(struct loader_batch *b);
