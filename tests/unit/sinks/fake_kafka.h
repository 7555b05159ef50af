/* fake_kafka: librdkafka's own mock of a broker, which makes no topics and tells no settings. */
#pragma once

#include <jansson.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "sinks/kafka_settings.h"

struct fake_kafka;

struct fake_kafka *fake_kafka_new(void);
void fake_kafka_free(struct fake_kafka *f);
void fake_kafka_freep(struct fake_kafka **f); /* for CLEANUP */

/* For what is not below: answers with an error, brokers that are down. */
rd_kafka_mock_cluster_t *fake_kafka_cluster(struct fake_kafka *f);

/* A topic of so many partitions. */
void fake_kafka_topic(struct fake_kafka *f, const char *name, int partitions);
/* The four record topics of prefix "t". */
void fake_kafka_record_topics(struct fake_kafka *f);
/* The same and, for exactly-once, its topic of positions. */
void fake_kafka_topics(struct fake_kafka *f);

/* A sink's settings with that prefix. Owned by the fake. */
const json_t *fake_kafka_settings(struct fake_kafka *f, const char *delivery);

/* A client of the cluster, to ask it things. Owned by the fake. */
rd_kafka_t *fake_kafka_client(struct fake_kafka *f);

/* Messages that a topic of one partition has. */
int64_t fake_kafka_count(struct fake_kafka *f, const char *name);
