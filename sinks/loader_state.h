/*
 * loader_state: what the parts of the loader share; for them alone.
 */
#pragma once

#include "sinks/backoff.h"
#include "sinks/kafka_trouble.h"
#include "sinks/loader_batch.h"
#include "sinks/loader_cut.h"
#include "sinks/positions.h"

struct loader {
    const struct loader_options *o;
    struct kafka_settings set;
    rd_kafka_t *rk;
    struct loader_batch batch;
    struct backoff backoff;
    bool placed;         /* the consumer stands where the database says */
    bool asked;          /* the group has given us partitions (perhaps none) */
    int64_t progress_ms; /* monotonic: something was loaded, or nothing was to load */
    char told[ERR_TEXT_SIZE];
    struct kafka_trouble kafka;
    struct err refused; /* why the group gives us nothing; ERR_NONE: it does, or nobody said */
    struct loader_cut cut;
    struct positions state; /* what `status` shows of us */
};
