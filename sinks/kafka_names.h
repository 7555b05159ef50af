/*
 * kafka_names: librdkafka's threads look names up, and a client that is closed waits for
 * its threads: a lookup ends within the client's limit, so that a nameserver that says
 * nothing holds nobody.
 */
#pragma once

#include <librdkafka/rdkafka.h>

/* Have a client of this configuration look names up so; its opaque is a struct kafka_trouble. */
void kafka_names_limit(rd_kafka_conf_t *conf);
