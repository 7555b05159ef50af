/*
 * loader: from Kafka's topics into PostgreSQL, each record once.
 *
 *     topics ──consumer group──▶ batch ──one transaction──▶ rows, roll-ups,
 *                                                           offset, last sequence
 *
 * Loaders of one group share the partitions. Where each goes on stands in the
 * database, not in Kafka: the offset moves from its expected value in the
 * transaction of its rows, so a loader that lost a partition without knowing
 * commits nothing of it. A record that was sent again under a new offset is known
 * by its journal and sequence, and dropped. Another record under a number that is taken
 * is a dead letter: its journal's state folder was restored from an older copy, and gives
 * away its numbers again. `.hook_execution` is not read: its rows are derived, as the
 * sink does.
 *
 * What retention removed unread is told, and counted in STATE/sinks/postgres.positions.json;
 * the stored offset moves past it, so that it is told once.
 *
 * What an open transaction hides is not shown to anybody: a single run waits for it, as
 * for a server that is away, and says how much it did not get.
 *
 * Between batches it cuts what the database no longer keeps (loader_cut.h).
 *
 * A rebalance drops what was read and not committed; whoever gets the partition
 * reads it again. While PostgreSQL is away nothing is read, and the group is kept.
 */
#pragma once

#include "sinks/cutting.h"
#include "sinks/kafka_settings.h"
#include "sinks/stop.h"

struct loader_options {
    const json_t *kafka;    /* settings of the `kafka` sink: properties, topic_prefix, timeout_ms */
    const json_t *postgres; /* of the `postgres` sink: dsn, retention_days, timeout_ms */
    const char *group;      /* NULL: "hooktrail-loader" */
    const char *collector;  /* our name: roll-ups of one loader are rows of their own */
    const char *state_dir;  /* dead letters */
    int64_t patience_ms;    /* once: give up when nothing could be done for so long */
    bool once;              /* end when all that is there has been loaded */
    struct stop *stop;
    cutting_on_cut on_cut; /* tells what retention removes; NULL: it is not told */
    void *ctx;             /* of on_cut */
};

/* What was done; for the log, and for whoever tests. */
struct loader_count {
    uint64_t loaded;  /* records that are now in the database */
    uint64_t dropped; /* resends of records that were there */
    uint64_t dead;    /* refused for good, or under a number that another record has */
    uint64_t lost;    /* offsets that retention removed before they were loaded */
};

/* Can it be run with these settings, as far as can be said without a server? */
bool loader_check(const struct loader_options *o, struct err *err) MUST_CHECK;

/*
 * Run until it is told to stop, or everything is loaded (`once`). What stands in the way
 * is waited for, logged, and told in STATE/sinks/postgres.positions.json. False (err): the
 * settings are unusable, or a single run gave up.
 */
bool loader_run(const struct loader_options *o, struct loader_count *ret, struct err *err)
    MUST_CHECK;
