#include "sinks/kafka_producer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "sinks/kafka_position.h"
#include "sinks/positions.h"

enum {
    LIMIT_MS = 60 * 1000, /* librdkafka's transaction.timeout.ms, unless told */
    MARGIN_MS = 30 * 1000,
};

/* Opaque is the record's sequence; a position's message has 0. */
static void on_delivery(void *ctx, void *opaque, const rd_kafka_message_t *m)
{
    struct kafka_producer *p = ctx;
    uint64_t seq = kafka_opaque_seq(opaque);

    if (!m->err) {
        kafka_ends_saw(&p->owner->ends, rd_kafka_topic_name(m->rkt), m->partition, m->offset);
        return;
    }
    if (m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) {
        return;
    }
    if (!p->failed) {
        p->failed = m->err;
        p->failed_seq = seq;
    } else if (p->failed_seq != seq) {
        p->failed_seq = 0;
    }
}

void kafka_producer_close(struct kafka_producer *p)
{
    kafka_client_close(&p->client);
    p->in_doubt = false;
}

/* Only the broker's own limit makes this a fencing that nobody else did. */
static bool was_too_slow(const struct kafka_producer *p, rd_kafka_resp_err_t code)
{
    bool fenced = code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
                  code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;

    return fenced && clock_mono_ms() - p->begun_ms >= p->limit_ms;
}

enum sink_result kafka_producer_fail(struct kafka_producer *p, rd_kafka_error_t *error,
                                     const char *what, struct err *err)
{
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    enum sink_result result = kafka_result_of(code);

    if (was_too_slow(p, code)) {
        (void)err_set(err, ERR_IO, "%s: the transaction was open for longer than %" PRId64 " ms",
                      what, p->limit_ms);
        result = SINK_DOWN;
    } else {
        (void)kafka_client_fail(&p->client, code, what, err);
    }
    if (result != SINK_BROKEN && rd_kafka_error_is_fatal(error)) {
        result = SINK_DOWN;
    }
    rd_kafka_error_destroy(error);
    return result;
}

/*
 * The topic cannot know less than was committed through it, as our file tells: then it
 * is another topic, or an older one, and what it has forgotten would be sent again. What
 * at-least-once has delivered the topic does not know: then the file's position is ours,
 * and the topic's with the first transaction.
 */
static enum sink_result check_position(struct kafka_producer *p, struct err *err)
{
    const struct kafka_owner *o = p->owner;
    struct positions told;

    if (!o->state_dir || !positions_load(o->state_dir, o->sink, &told, err)) {
        return o->state_dir ? SINK_BROKEN : SINK_OK;
    }

    uint64_t had = positions_get(&told, slice_from_cstr(p->journal));
    bool here = positions_here(&told, slice_from_cstr(p->journal));

    positions_done(&told);
    if (here && p->at.next < had) {
        p->at.next = had;
    }
    if (p->at.next >= had) {
        return SINK_OK;
    }
    (void)err_set(err, ERR_INVALID,
                  "kafka: %s.positions has %" PRIu64 " of journal %s, and had %" PRIu64
                  ": stop ship; to send all again remove sinks/%s.positions.json, "
                  "to go on write the higher to it; see hooktrail.yaml(5)",
                  o->set.topic_prefix, p->at.next, p->journal, had, o->sink);
    return SINK_BROKEN;
}

/* The broker ends no transaction before we do, unless the user wants it so. */
static int64_t limit_of(const struct kafka_owner *o)
{
    return o->timeout_ms + MARGIN_MS > LIMIT_MS ? o->timeout_ms + MARGIN_MS : LIMIT_MS;
}

static int64_t limit_in_force(const struct kafka_producer *p)
{
    char text[32];

    kafka_client_property(&p->client, "transaction.timeout.ms", text, sizeof(text));
    return text[0] ? strtol(text, NULL, 10) : LIMIT_MS;
}

static enum sink_result open_client(struct kafka_producer *p, struct err *err)
{
    const struct kafka_owner *o = p->owner;
    char id[320];
    char limit[24];
    bool told = json_object_get(o->set.properties, "transaction.timeout.ms") != NULL;
    const char *const extra[] = { "enable.idempotence",
                                  "true",
                                  "transactional.id",
                                  id,
                                  told ? NULL : "transaction.timeout.ms",
                                  limit,
                                  NULL };

    (void)snprintf(id, sizeof(id), "%s.%s.%s%s", o->set.topic_prefix, o->sink, p->journal,
                   o->late ? ".late" : "");
    (void)snprintf(limit, sizeof(limit), "%" PRId64, limit_of(o));
    p->client.on_delivery = on_delivery;
    p->client.ctx = p;
    p->client.keeps_positions = true;
    if (!kafka_client_open(&p->client, &o->set, extra, err)) {
        return SINK_BROKEN;
    }
    if (!kafka_client_topics(&p->client, &o->set, (int)o->timeout_ms, err) ||
        !kafka_client_fit(&p->client, &o->set, extra, (int)o->timeout_ms, err)) {
        return err->code == ERR_INVALID ? SINK_BROKEN : SINK_DOWN;
    }
    p->limit_ms = limit_in_force(p);
    return SINK_OK;
}

/*
 * What is no error is told once. In several partitions we use the first alone and lose nothing;
 * but a person who writes a position, by its key, may hit another one, which nobody reads.
 */
static void look_once(struct kafka_owner *o, const struct kafka_client *c)
{
    if (o->looked) {
        return;
    }
    if (c->positions_parts > 1) {
        log_warn("the topic of positions should have one partition: only partition 0 is used",
                 log_str("sink", o->sink), log_str("topic", rd_kafka_topic_name(c->positions)),
                 log_i64("partitions", c->positions_parts));
    }
    kafka_ends_check(&o->ends, c->rk, o->timeout_ms);
    o->looked = true;
}

/* Fence, and read where the journal stands. */
static enum sink_result take_over(struct kafka_producer *p, struct err *err)
{
    struct kafka_owner *o = p->owner;
    rd_kafka_error_t *error;

    p->begun_ms = clock_mono_ms();
    error = rd_kafka_init_transactions(p->client.rk, (int)o->timeout_ms);
    if (error) {
        return kafka_producer_fail(p, error, "kafka: transactions cannot begin", err);
    }
    if (o->late) {
        return SINK_OK;
    }
    if (!kafka_position_read(&o->set, slice_from_cstr(p->journal), o->timeout_ms, &p->at, err)) {
        return SINK_DOWN;
    }
    look_once(o, &p->client);
    return check_position(p, err);
}

enum sink_result kafka_producer_open(struct kafka_producer *p, struct err *err)
{
    enum sink_result result;

    kafka_producer_close(p);
    result = open_client(p, err);
    if (result == SINK_OK) {
        result = take_over(p, err);
    }
    if (result != SINK_OK) {
        kafka_producer_close(p);
    }
    return result == SINK_RETRY ? SINK_DOWN : result;
}
