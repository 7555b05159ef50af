#include "sinks/kafka.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/kafka_client.h"
#include "sinks/kafka_flight.h"

/*
 * At least once: an idempotent producer that waits for all in-sync replicas. The
 * position is the pump's, and moves over a span once each of its messages is
 * acknowledged. Messages never time out inside librdkafka: an outage is waited
 * for there, in order, and the pump's spans find in the flight what is still on
 * its way.
 */
struct sink_kafka {
    struct sink base;
    struct kafka_settings set;
    struct kafka_client client;
    struct kafka_flight *flights; /* one a journal, owned */
    struct arena arena;           /* of one record */
    int64_t timeout_ms;
};

static struct sink_kafka *from_sink(struct sink *s)
{
    assert(s->ops == &sink_kafka_ops);
    return CONTAINER_OF(s, struct sink_kafka, base);
}

static void on_delivery(void *ctx, void *opaque, const rd_kafka_message_t *m)
{
    (void)ctx;
    if (opaque) {
        kafka_entry_answered(opaque, m->err);
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
    arena_clear(&k->arena);
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
    arena_init(&k->arena, KAFKA_RECORD_BYTES);
    if (!kafka_settings_read(cfg->settings, &k->set, err) ||
        !kafka_client_open(&k->client, &k->set, extra, err) ||
        !kafka_client_record_topics(&k->client, &k->set, (int)cfg->timeout_ms, err)) {
        kafka_close(&k->base);
        return false;
    }
    *ret_sink = &k->base;
    return true;
}

/* Queue one message; a full queue is waited for. */
static rd_kafka_resp_err_t produce(struct sink_kafka *k, const struct kafka_message *m,
                                   const struct kafka_flight *f, struct kafka_entry *e,
                                   int64_t deadline_ms)
{
    for (;;) {
        rd_kafka_resp_err_t code =
            kafka_client_produce(&k->client, m, slice_from_cstr(f->journal), e->seq, e);

        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || clock_left_ms(deadline_ms) == 0) {
            return code;
        }
        (void)rd_kafka_poll(k->client.rk, 10);
    }
}

/* Send the messages of one record. A refusal by librdkafka itself is an answer, too. */
static bool send_record(struct sink_kafka *k, struct kafka_flight *f, const struct sink_record *r,
                        int64_t deadline_ms, struct err *err)
{
    struct kafka_message *list;
    size_t n;
    bool send;
    struct kafka_entry *e = kafka_flight_enter(f, r->seq, &send);

    if (!send) {
        return true;
    }
    arena_clear(&k->arena);
    if (!kafka_messages(r, &k->arena, &list, &n, err)) {
        e->failed = RD_KAFKA_RESP_ERR_INVALID_RECORD;
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        rd_kafka_resp_err_t code;

        e->pending++;
        code = produce(k, &list[i], f, e, deadline_ms);
        if (code) {
            kafka_entry_answered(e, code);
        }
        if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            return false;
        }
    }
    return true;
}

/* Serve answers until the span has all of its own, or the deadline. */
static struct kafka_standing wait_for_answers(struct sink_kafka *k, const struct kafka_flight *f,
                                              const struct span *span, int64_t deadline_ms)
{
    struct kafka_standing s = kafka_flight_standing(f, span->from, span->to);

    while (s.pending > 0 && clock_left_ms(deadline_ms) > 0) {
        (void)rd_kafka_flush(k->client.rk, clock_left_ms(deadline_ms));
        s = kafka_flight_standing(f, span->from, span->to);
    }
    return s;
}

static enum sink_result refused(struct sink_kafka *k, const struct kafka_standing *s,
                                struct err *err)
{
    enum sink_result result = kafka_result_of(s->failed);
    char what[64];

    if (err->code == ERR_INVALID && s->failed == RD_KAFKA_RESP_ERR_INVALID_RECORD) {
        return SINK_REJECT; /* we could not read the record ourselves, and have said why */
    }
    (void)snprintf(what, sizeof(what), "kafka: record %" PRIu64, s->failed_seq);
    (void)kafka_client_fail(&k->client, s->failed, what, err);
    return result;
}

static enum sink_result kafka_write(struct sink *s, const struct span *span, struct err *err)
{
    struct sink_kafka *k = from_sink(s);
    struct kafka_flight *f = kafka_flight_of(&k->flights, span->journal);
    int64_t deadline_ms = clock_mono_ms() + k->timeout_ms;
    char text[200];

    err->code = ERR_NONE;
    k->client.trouble.code = ERR_NONE;
    for (size_t i = 0; i < span->n; i++) {
        if (!send_record(k, f, &span->records[i], deadline_ms, err)) {
            (void)kafka_client_fail(&k->client, RD_KAFKA_RESP_ERR__QUEUE_FULL, "kafka", err);
            return SINK_RETRY;
        }
    }

    struct kafka_standing standing = wait_for_answers(k, f, span, deadline_ms);

    if (rd_kafka_fatal_error(k->client.rk, text, sizeof(text))) {
        (void)err_set(err, ERR_IO, "kafka: %s", text);
        return SINK_DOWN;
    }
    if (standing.failed) {
        return refused(k, &standing, err);
    }
    if (standing.pending > 0) {
        (void)kafka_client_fail(&k->client, RD_KAFKA_RESP_ERR__TIMED_OUT, "kafka", err);
        return SINK_RETRY;
    }
    kafka_flight_forget(f, span->to);
    return SINK_OK;
}

const struct sink_ops sink_kafka_ops = {
    .name = "kafka",
    .open = kafka_open,
    .write = kafka_write,
    .close = kafka_close,
};
