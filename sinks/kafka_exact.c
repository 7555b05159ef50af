#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "sinks/kafka.h"
#include "sinks/kafka_position.h"
#include "sinks/kafka_producer.h"

/*
 * Exactly once: records and position in one transaction. Each journal has a producer
 * of its own, and those of the journals that were busy last stay open. A commit whose
 * answer was lost is asked for again, and after a restart the position tells.
 *
 * A refused record spoils its whole transaction, and the pump comes back with halves.
 * Where the record is known, a span that has it among others is refused without being
 * sent; alone it is tried, since somebody may have mended what refused it.
 */
enum {
    PRODUCERS = 4, /* collect, serve, ship, and a journal that one of them has ended */
    TXN_FLUSH_MS = 1000,
    FLUSH_STEP_MS = 50,
    POLL_EVERY = 64, /* records */
};

struct sink_kafka_exact {
    struct sink base;
    struct kafka_owner owner;
    struct kafka_producer producers[PRODUCERS];
    uint64_t uses;            /* of producers */
    char name[64];            /* of the sink */
    struct kafka_space space; /* of one record */
};

static struct sink_kafka_exact *from_sink(struct sink *s)
{
    assert(s->ops == &sink_kafka_exact_ops);
    return CONTAINER_OF(s, struct sink_kafka_exact, base);
}

static void exact_close(struct sink *s)
{
    if (!s) {
        return;
    }

    struct sink_kafka_exact *k = from_sink(s);

    for (size_t i = 0; i < PRODUCERS; i++) {
        kafka_producer_close(&k->producers[i]);
    }
    kafka_ends_flush(&k->owner.ends, true);
    kafka_ends_done(&k->owner.ends);
    kafka_space_done(&k->space);
    free(k);
}

/* The journal's producer; where it has none, that of the journal that was idle for longest. */
static struct kafka_producer *producer_of(struct sink_kafka_exact *k, struct slice journal)
{
    struct kafka_producer *p = &k->producers[0];

    for (size_t i = 0; i < PRODUCERS; i++) {
        struct kafka_producer *other = &k->producers[i];

        if (slice_equal(journal, slice_from_cstr(other->journal))) {
            other->used = ++k->uses;
            return other;
        }
        p = other->used < p->used ? other : p;
    }
    kafka_producer_close(p);
    *p = (struct kafka_producer){ .owner = &k->owner, .used = ++k->uses };
    (void)snprintf(p->journal, sizeof(p->journal), "%" SLICE_FMT, SLICE_ARG(journal));
    return p;
}

/* One that is open and in no doubt knows its position, or is fenced. */
static enum sink_result need_open(struct kafka_producer *p, struct err *err)
{
    return p->client.rk ? SINK_OK : kafka_producer_open(p, err);
}

static bool exact_open(const struct sink_config *cfg, struct sink **ret_sink, struct err *err)
{
    struct sink_kafka_exact *k = xcalloc(1, sizeof(*k));

    k->base.ops = &sink_kafka_exact_ops;
    (void)snprintf(k->name, sizeof(k->name), "%s", cfg->name ? cfg->name : "kafka");
    k->owner.sink = k->name;
    k->owner.state_dir = cfg->state_dir;
    k->owner.timeout_ms = cfg->timeout_ms;
    k->owner.late = cfg->late;
    kafka_space_init(&k->space, KAFKA_SPAN_BYTES, 0);
    if (!kafka_settings_read(cfg->settings, &k->owner.set, err) ||
        !kafka_ends_load(cfg->state_dir, k->name, &k->owner.ends, err)) {
        exact_close(&k->base);
        return false;
    }
    *ret_sink = &k->base;
    return true;
}

static bool exact_position(struct sink *s, struct slice journal, struct sink_position *ret,
                           struct err *err)
{
    struct kafka_producer *p = producer_of(from_sink(s), journal);

    if (p->in_doubt) {
        kafka_producer_close(p);
    }
    if (need_open(p, err) != SINK_OK) {
        return false;
    }
    *ret = p->at;
    return true;
}

/*
 * Give the transaction up; what it sent is never seen. What is queued goes out before, where
 * the broker is well: it takes the end of a transaction that no partition has joined yet for
 * an error that costs us the producer.
 */
static enum sink_result abandon(struct kafka_producer *p, enum sink_result result)
{
    if (result == SINK_REJECT) {
        (void)rd_kafka_flush(p->client.rk, TXN_FLUSH_MS);
    }

    rd_kafka_error_t *error = rd_kafka_abort_transaction(p->client.rk, (int)p->owner->timeout_ms);

    if (error) {
        rd_kafka_error_destroy(error);
        return result == SINK_REJECT || result == SINK_RETRY ? SINK_DOWN : result;
    }
    return result;
}

/* One that the broker would refuse is not sent: its refusal would cost the producer. */
static rd_kafka_resp_err_t send_message(struct kafka_producer *p, const struct kafka_message *m,
                                        uint64_t seq, int64_t deadline_ms)
{
    struct slice journal = slice_from_cstr(p->journal);

    if (kafka_client_too_large(&p->client, m, journal, clock_left_ms(deadline_ms))) {
        kafka_client_refused(&p->client, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, m);
        return RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    }
    /* Its number as the pointer: an answer may come when the span is gone. */
    return kafka_client_produce_by(&p->client, m, journal, kafka_opaque(seq), deadline_ms);
}

static enum sink_result send_record(struct sink_kafka_exact *k, struct kafka_producer *p,
                                    const struct sink_record *r, int64_t deadline_ms,
                                    struct err *err)
{
    struct kafka_message *list;
    size_t n;

    arena_reset(&k->space.arena);

    enum sink_result result = kafka_messages(r, &k->space, &list, &n, err);

    for (size_t i = 0; result == SINK_OK && i < n; i++) {
        rd_kafka_resp_err_t code = send_message(p, &list[i], r->seq, deadline_ms);

        if (code) {
            (void)kafka_client_fail(&p->client, code, "kafka", err);
            result = kafka_result_of(code);
        }
    }
    return result;
}

/* The broker works on the first records while the others are made; one that is none aborts. */
static enum sink_result send_records(struct sink_kafka_exact *k, struct kafka_producer *p,
                                     const struct span *span, int64_t deadline_ms, struct err *err)
{
    enum sink_result result = SINK_OK;

    for (size_t i = 0; result == SINK_OK && i < span->n; i++) {
        result = send_record(k, p, &span->records[i], deadline_ms, err);
        if (result == SINK_REJECT) {
            p->bad_seq = span->records[i].seq;
        }
        if (i % POLL_EVERY == 0) {
            (void)rd_kafka_poll(p->client.rk, 0);
        }
    }
    return result;
}

/* The position as a message of the transaction. */
static enum sink_result send_position(struct kafka_producer *p, const struct span *span,
                                      struct err *err)
{
    char value[KAFKA_POSITION_SIZE];
    struct sink_position then = p->at;

    sink_position_move(&then, span);

    size_t n = kafka_position_format(&then, value);
    rd_kafka_resp_err_t code = rd_kafka_producev(
        p->client.rk, RD_KAFKA_V_RKT(p->client.positions), RD_KAFKA_V_PARTITION(0),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(p->journal, strlen(p->journal)),
        RD_KAFKA_V_VALUE(value, n), RD_KAFKA_V_END);

    if (code) {
        (void)kafka_client_fail(&p->client, code, "kafka: position", err);
    }
    return kafka_result_of(code);
}

/*
 * The first refusal of a message is what became of the span. The producer has lost count
 * of its sequences: the next span gets a new one, and who opens that ends this transaction.
 */
static enum sink_result refused_message(struct kafka_producer *p, struct err *err)
{
    (void)kafka_client_fail(&p->client, p->failed, "kafka", err);
    p->bad_seq = p->failed_seq;
    kafka_producer_close(p);
    return SINK_REJECT;
}

/* The broker wants the transaction aborted; because a message was refused, if one was. */
static enum sink_result refused(struct kafka_producer *p, rd_kafka_error_t *error, struct err *err)
{
    enum sink_result result = kafka_producer_fail(p, error, "kafka: commit", err);

    p->in_doubt = false;
    if (kafka_result_of(p->failed) == SINK_REJECT) {
        return refused_message(p, err);
    }
    if (p->failed) {
        (void)kafka_client_fail(&p->client, p->failed, "kafka", err);
        result = kafka_result_of(p->failed);
    }
    return abandon(p, result == SINK_OK || result == SINK_REJECT ? SINK_RETRY : result);
}

static enum sink_result committed(struct kafka_producer *p, const struct span *span)
{
    p->in_doubt = false;
    if (!span->late) {
        sink_position_move(&p->at, span);
    }
    kafka_ends_flush(&p->owner->ends, false);
    return SINK_OK;
}

/* Commit, as often as it may still succeed within the deadline. */
static enum sink_result commit(struct kafka_producer *p, const struct span *span,
                               int64_t deadline_ms, struct err *err)
{
    for (;;) {
        rd_kafka_error_t *error =
            rd_kafka_commit_transaction(p->client.rk, clock_left_ms(deadline_ms) + TXN_FLUSH_MS);

        if (!error) {
            return committed(p, span);
        }
        if (rd_kafka_error_txn_requires_abort(error)) {
            return refused(p, error, err);
        }
        if (!rd_kafka_error_is_retriable(error)) {
            return kafka_producer_fail(p, error, "kafka: commit", err);
        }
        if (clock_left_ms(deadline_ms) == 0) {
            p->in_doubt = true;
            p->doubt_to = span->to;
            (void)kafka_producer_fail(p, error, "kafka: commit", err);
            return SINK_RETRY;
        }
        rd_kafka_error_destroy(error);
    }
}

/* A commit waits long for what was refused meanwhile: look before. */
static enum sink_result flush_all(struct kafka_producer *p, int64_t deadline_ms, struct err *err)
{
    while (!p->failed && rd_kafka_outq_len(p->client.rk) > 0 && clock_left_ms(deadline_ms) > 0) {
        (void)rd_kafka_flush(p->client.rk, FLUSH_STEP_MS);
    }
    return kafka_result_of(p->failed) == SINK_REJECT ? refused_message(p, err) : SINK_OK;
}

/*
 * One transaction, from begin to commit. The position goes first: its partition joins
 * the transaction with the others then, and not in a request of its own at the end.
 */
static enum sink_result transact(struct sink_kafka_exact *k, struct kafka_producer *p,
                                 const struct span *span, int64_t deadline_ms, struct err *err)
{
    rd_kafka_error_t *error = rd_kafka_begin_transaction(p->client.rk);
    enum sink_result result;

    if (error) {
        result = kafka_producer_fail(p, error, "kafka: begin", err);
        return result == SINK_BROKEN ? SINK_BROKEN : SINK_DOWN;
    }
    p->begun_ms = clock_mono_ms();
    p->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    p->failed_seq = 0;
    kafka_trouble_clear(&p->client.trouble);
    result = span->late ? SINK_OK : send_position(p, span, err);
    if (result == SINK_OK) {
        result = send_records(k, p, span, deadline_ms, err);
    }
    if (result != SINK_OK) {
        return abandon(p, result);
    }
    result = flush_all(p, deadline_ms, err);
    return result == SINK_OK ? commit(p, span, deadline_ms, err) : result;
}

/* A refused record among others: known without asking again. */
static bool has_bad(const struct kafka_producer *p, const struct span *span)
{
    return span->n > 1 && p->bad_seq >= span->from && p->bad_seq <= span->to;
}

static enum sink_result deliver(struct sink_kafka_exact *k, struct kafka_producer *p,
                                const struct span *span, struct err *err)
{
    int64_t deadline_ms = clock_mono_ms() + p->owner->timeout_ms;

    if (has_bad(p, span)) {
        (void)err_set(err, ERR_INVALID, "kafka: record %" PRIu64 " is refused", p->bad_seq);
        return SINK_REJECT;
    }

    enum sink_result result = need_open(p, err);

    if (result != SINK_OK) {
        return result;
    }
    if (p->in_doubt && p->doubt_to == span->to) {
        return commit(p, span, deadline_ms, err);
    }
    if (p->in_doubt) {
        (void)err_set(err, ERR_AGAIN, "kafka: a commit is in doubt, its position is read anew");
        return SINK_DOWN;
    }
    if (!span->late && span->from != p->at.next) {
        (void)err_set(err, ERR_AGAIN,
                      "kafka: the position of journal %" SLICE_FMT " is %" PRIu64 ", not %" PRIu64
                      "; going on from there",
                      SLICE_ARG(span->journal), p->at.next, span->from);
        return SINK_DOWN;
    }
    return transact(k, p, span, deadline_ms, err);
}

static enum sink_result exact_write(struct sink *s, const struct span *span, struct err *err)
{
    struct sink_kafka_exact *k = from_sink(s);
    struct kafka_producer *p = producer_of(k, span->journal);
    enum sink_result result = deliver(k, p, span, err);

    if (result == SINK_DOWN || result == SINK_BROKEN) {
        kafka_producer_close(p); /* what it knows of the position may be wrong */
    }
    return result;
}

const struct sink_ops sink_kafka_exact_ops = {
    .name = "kafka",
    .batch_records = 10000, /* a transaction costs the broker some round trips */
    .linger_ms = 1000,
    .open = exact_open,
    .position = exact_position,
    .write = exact_write,
    .close = exact_close,
};

const struct sink_ops *sink_kafka_driver(const json_t *settings)
{
    const char *delivery = json_string_value(json_object_get(settings, "delivery"));

    return delivery && strcmp(delivery, "exactly-once") == 0 ? &sink_kafka_exact_ops
                                                             : &sink_kafka_ops;
}
