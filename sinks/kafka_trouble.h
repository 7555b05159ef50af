/*
 * kafka_trouble: what librdkafka last complained of, in words for who must mend it.
 *
 * librdkafka reports trouble (authentication, TLS, unreachable brokers) beside
 * the calls that suffer from it. The latest report is kept, so that a time-out can
 * say why; one that a person must mend is not displaced by those that follow from
 * it. What differs from one attempt to the next (how long it took) is left out:
 * an incident is told once.
 * Thread: the client's; only `certificate` is written by librdkafka's own.
 */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

#include "collector/base/err.h"

struct kafka_trouble {
    char text[ERR_TEXT_SIZE]; /* "": none since it was last cleared */
    bool down;                /* no broker can be reached */
    bool lasting;             /* credentials, a certificate: trying again cannot help */
    _Atomic int
        certificate; /* why the broker's was refused last, as OpenSSL counts; 0: it was not */
    int lookup_ms;   /* how long librdkafka's threads look for a name; kafka_names.h */
};

/*
 * Hear what a client of this configuration complains of; *t becomes the client's opaque.
 * It looks for a name at most timeout_ms long.
 */
void kafka_trouble_listen(struct kafka_trouble *t, rd_kafka_conf_t *conf, int timeout_ms);

/* Forget it: what is tried now may go well. */
void kafka_trouble_clear(struct kafka_trouble *t);

/* One report: librdkafka's code and its words. */
void kafka_trouble_note(struct kafka_trouble *t, rd_kafka_resp_err_t code, const char *reason);

/* A message was refused: which topic's, and of how many bytes (0: not known). */
void kafka_trouble_note_topic(struct kafka_trouble *t, rd_kafka_resp_err_t code, const char *topic,
                              size_t bytes);

/*
 * Fill *err: `what` failed with `code`, because of the trouble if there is any.
 * ERR_INVALID where a person must act, else ERR_IO. False.
 */
bool kafka_trouble_fail(const struct kafka_trouble *t, rd_kafka_resp_err_t code, const char *what,
                        struct err *err);
