#include "sinks/kafka.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/kafka_client.h"
#include "sinks/kafka_ends.h"
#include "sinks/kafka_flight.h"

/*
 * At least once: an idempotent producer that waits for all in-sync replicas. The
 * position is the pump's, and moves over a span once each of its messages is
 * acknowledged. Messages never time out inside librdkafka: an outage is waited
 * for there, in order, and the pump's spans find in the flight what is still on
 * its way.
 */

enum {
    CHUNK_RECORDS = 64,      /* their messages are still in the cache when they are sent */
    KEEP_BYTES = 256 * 1024, /* of a usual chunk's messages, from one to the next */
};

struct sink_kafka {
    struct sink base;
    struct kafka_settings set;
    struct kafka_client client;
    struct kafka_ends ends;
    struct kafka_flight *flights; /* one a journal, owned */
    struct kafka_space space;     /* of one chunk */
    int64_t timeout_ms;
};

static struct sink_kafka *from_sink(struct sink *s)
{
    assert(s->ops == &sink_kafka_ops);
    return CONTAINER_OF(s, struct sink_kafka, base);
}

static void on_delivery(void *ctx, void *opaque, const rd_kafka_message_t *m)
{
    struct sink_kafka *k = ctx;

    if (opaque) {
        kafka_entry_answered(opaque, m->err);
    }
    if (!m->err) {
        kafka_ends_saw(&k->ends, rd_kafka_topic_name(m->rkt), m->partition, m->offset);
    }
}

static void kafka_close(struct sink *s)
{
    if (!s) {
        return;
    }

    struct sink_kafka *k = from_sink(s);

    kafka_client_close(&k->client);
    for (const struct kafka_flight *f = k->flights; f; f = f->next) {
        if (f->resent > 0) {
            log_info("records were sent to Kafka again", log_str("journal", f->journal),
                     log_i64("records", (int64_t)f->resent));
        }
    }
    kafka_flights_free(k->flights);
    kafka_ends_flush(&k->ends, true);
    kafka_ends_done(&k->ends);
    kafka_space_done(&k->space);
    free(k);
}

static bool kafka_open(const struct sink_config *cfg, struct sink **ret_sink, struct err *err)
{
    static const char *const extra[] = { "enable.idempotence", "true", "acks", "all",
                                         "message.timeout.ms", "0",    NULL };
    struct sink_kafka *k = xcalloc(1, sizeof(*k));

    k->base.ops = &sink_kafka_ops;
    k->timeout_ms = cfg->timeout_ms;
    k->client.on_delivery = on_delivery;
    k->client.ctx = k;
    kafka_space_init(&k->space, KAFKA_SPAN_BYTES, KEEP_BYTES);
    if (!kafka_settings_read(cfg->settings, &k->set, err) ||
        !kafka_ends_load(cfg->state_dir, cfg->name, &k->ends, err) ||
        !kafka_client_open(&k->client, &k->set, extra, err) ||
        !kafka_client_topics(&k->client, &k->set, (int)cfg->timeout_ms, err) ||
        !kafka_client_fit(&k->client, &k->set, extra, (int)cfg->timeout_ms, err)) {
        kafka_close(&k->base);
        return false;
    }
    kafka_ends_check(&k->ends, k->client.rk, cfg->timeout_ms);
    *ret_sink = &k->base;
    return true;
}

/* A record whose messages are made and not sent yet. */
struct outgoing {
    uint64_t seq;
    struct kafka_message *list;
    size_t n;
};

/* Some records of a span, and those of them that are to be sent. */
struct chunk {
    const struct sink_record *records;
    size_t n_records;
    struct outgoing list[CHUNK_RECORDS];
    size_t n;
};

/* Make the messages of a chunk; of records that are on their way already there are none. */
static enum sink_result prepare(struct sink_kafka *k, struct kafka_flight *f, struct chunk *c,
                                struct err *err)
{
    enum sink_result result = SINK_OK;

    arena_reset(&k->space.arena);
    for (size_t i = 0; result == SINK_OK && i < c->n_records; i++) {
        const struct sink_record *r = &c->records[i];

        if (kafka_flight_wants(f, r->seq)) {
            struct outgoing *o = &c->list[c->n++];

            o->seq = r->seq;
            result = kafka_messages(r, &k->space, &o->list, &o->n, err);
        }
    }
    return result;
}

/* Send the messages of one record. A refusal by librdkafka itself is an answer, too. */
static enum sink_result send_record(struct sink_kafka *k, struct kafka_flight *f,
                                    const struct outgoing *o, int64_t deadline_ms, struct err *err)
{
    bool send;
    struct kafka_entry *e = kafka_flight_enter(f, o->seq, &send);

    assert(send);
    for (size_t i = 0; i < o->n; i++) {
        rd_kafka_resp_err_t code;

        kafka_entry_sent(e);
        code = kafka_client_produce_by(&k->client, &o->list[i], slice_from_cstr(f->journal), e,
                                       deadline_ms);
        if (code) {
            kafka_entry_answered(e, code);
        }
        if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            (void)kafka_client_fail(&k->client, code, "kafka", err);
            return SINK_RETRY;
        }
    }
    return SINK_OK;
}

/* Made as a whole first, so that of a chunk with a record that is none nothing is sent. */
static enum sink_result send_chunk(struct sink_kafka *k, struct kafka_flight *f, struct chunk *c,
                                   int64_t deadline_ms, struct err *err)
{
    enum sink_result result = prepare(k, f, c, err);

    for (size_t i = 0; result == SINK_OK && i < c->n; i++) {
        result = send_record(k, f, &c->list[i], deadline_ms, err);
    }
    (void)rd_kafka_poll(k->client.rk, 0);
    return result;
}

/* Order within a key: what was cut off by a full queue is answered before more is sent. */
static enum sink_result mend(struct sink_kafka *k, const struct kafka_flight *f, uint64_t to,
                             int64_t deadline_ms, struct err *err)
{
    while (kafka_flight_torn(f, to)) {
        if (clock_left_ms(deadline_ms) == 0) {
            (void)kafka_client_fail(&k->client, RD_KAFKA_RESP_ERR__TIMED_OUT, "kafka", err);
            return SINK_RETRY;
        }
        (void)rd_kafka_poll(k->client.rk, clock_left_ms(deadline_ms));
    }
    return SINK_OK;
}

/*
 * The broker works on one chunk while the next is made. What was sent before a chunk
 * failed is in the flight, and is not sent again when the span comes again, in halves.
 */
static enum sink_result send_span(struct sink_kafka *k, struct kafka_flight *f,
                                  const struct span *span, int64_t deadline_ms, struct err *err)
{
    enum sink_result result = mend(k, f, span->to, deadline_ms, err);

    for (size_t at = 0; result == SINK_OK && at < span->n; at += CHUNK_RECORDS) {
        size_t left = span->n - at;
        struct chunk c;

        c.records = span->records + at;
        c.n_records = left < CHUNK_RECORDS ? left : CHUNK_RECORDS;
        c.n = 0;
        result = send_chunk(k, f, &c, deadline_ms, err);
    }
    return result;
}

/*
 * Serve answers until the span has all of its own, or the deadline. While more is on its way
 * the messages fill their batches; at the end nobody lingers.
 */
static void wait_for_answers(struct sink_kafka *k, const struct kafka_flight *f,
                             const struct span *span, int64_t deadline_ms)
{
    while (kafka_flight_waits(f, span->to) && clock_left_ms(deadline_ms) > 0) {
        if (f->last->seq > span->to) {
            (void)rd_kafka_poll(k->client.rk, clock_left_ms(deadline_ms));
        } else {
            (void)rd_kafka_flush(k->client.rk, clock_left_ms(deadline_ms));
        }
    }
}

static enum sink_result refused(struct sink_kafka *k, const struct kafka_standing *s,
                                struct err *err)
{
    enum sink_result result = kafka_result_of(s->failed);
    char what[64];

    (void)snprintf(what, sizeof(what), "kafka: record %" PRIu64, s->failed_seq);
    (void)kafka_client_fail(&k->client, s->failed, what, err);
    return result;
}

/* What the answers to a span's messages mean; those of a record that is given up, too. */
static enum sink_result judge(struct sink_kafka *k, const struct kafka_standing *standing,
                              struct err *err)
{
    char text[200];
    enum sink_result refusal = kafka_result_of(standing->failed);

    if (rd_kafka_fatal_error(k->client.rk, text, sizeof(text))) {
        (void)err_set(err, ERR_IO, "kafka: %s", text);
        return SINK_DOWN;
    }
    /* Only a record whose messages are all answered can be given up. */
    if (standing->failed && (standing->pending == 0 || refusal != SINK_REJECT)) {
        return refused(k, standing, err);
    }
    if (standing->pending > 0) {
        (void)kafka_client_fail(&k->client, RD_KAFKA_RESP_ERR__TIMED_OUT, "kafka", err);
        return SINK_RETRY;
    }
    return SINK_OK;
}

static bool kafka_begin(struct sink *s, const struct span *span)
{
    struct sink_kafka *k = from_sink(s);
    struct kafka_flight *f = kafka_flight_of(&k->flights, span->journal);
    struct err ignored;

    return send_span(k, f, span, clock_mono_ms() + k->timeout_ms, &ignored) == SINK_OK;
}

/* Send what is not on its way yet, and see that all of it arrives. */
static enum sink_result deliver(struct sink_kafka *k, struct kafka_flight *f,
                                const struct span *span, struct err *err)
{
    int64_t deadline_ms = clock_mono_ms() + k->timeout_ms;
    enum sink_result result = send_span(k, f, span, deadline_ms, err);

    if (result != SINK_OK) {
        return result;
    }
    wait_for_answers(k, f, span, deadline_ms);

    struct kafka_standing standing = kafka_flight_standing(f, span->from, span->to);

    return judge(k, &standing, err);
}

static enum sink_result kafka_write(struct sink *s, const struct span *span, struct err *err)
{
    struct sink_kafka *k = from_sink(s);
    struct kafka_flight *f = kafka_flight_of(&k->flights, span->journal);
    enum sink_result result;

    err->code = ERR_NONE;
    kafka_trouble_clear(&k->client.trouble);
    result = span->n > 0 ? deliver(k, f, span, err) : SINK_OK;
    if (result == SINK_OK) {
        kafka_flight_forget(f, span->to);
        kafka_ends_flush(&k->ends, false);
    }
    return result;
}

const struct sink_ops sink_kafka_ops = {
    .name = "kafka",
    .batch_records = 5000, /* two spans are on their way: few enough for the caches */
    .open = kafka_open,
    .begin = kafka_begin,
    .write = kafka_write,
    .close = kafka_close,
};
