#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "sinks/kafka.h"
#include "sinks/kafka_client.h"
#include "sinks/kafka_ends.h"
#include "sinks/kafka_position.h"
#include "sinks/positions.h"

/*
 * Exactly once: records and position in one transaction. Each journal has a
 * producer of its own, whose transactional id is made of sink and journal: who
 * initializes it fences an older one, and ends what that left open; only then is
 * the position read. A commit whose answer was lost is asked for again, and
 * after a restart the position tells.
 */
enum { TXN_FLUSH_MS = 1000, FLUSH_STEP_MS = 50 };

struct sink_kafka_exact {
    struct sink base;
    struct kafka_settings set;
    char name[64];    /* of the sink */
    char journal[40]; /* whose producer is open; "": none */
    struct kafka_client client;
    rd_kafka_topic_t *positions;
    struct kafka_ends ends;
    const char *state_dir; /* borrowed */
    struct arena arena;
    int64_t timeout_ms;
    uint64_t next;              /* what the topic of positions says of it */
    bool in_doubt;              /* a commit got no answer: ask again before anything else */
    uint64_t doubt_to;          /* the last sequence of that transaction */
    rd_kafka_resp_err_t failed; /* the first refusal of a message in this transaction */
};

static struct sink_kafka_exact *from_sink(struct sink *s)
{
    assert(s->ops == &sink_kafka_exact_ops);
    return CONTAINER_OF(s, struct sink_kafka_exact, base);
}

static void on_delivery(void *ctx, void *opaque, const rd_kafka_message_t *m)
{
    struct sink_kafka_exact *k = ctx;

    (void)opaque;
    if (m->err && !k->failed && m->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
        m->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) {
        k->failed = m->err;
    }
    if (!m->err) {
        kafka_ends_saw(&k->ends, rd_kafka_topic_name(m->rkt), m->partition, m->offset);
    }
}

static void close_producer(struct sink_kafka_exact *k)
{
    if (k->positions) {
        rd_kafka_topic_destroy(k->positions);
        k->positions = NULL;
    }
    kafka_client_close(&k->client);
    k->journal[0] = '\0';
    k->in_doubt = false;
}

static void exact_close(struct sink *s)
{
    if (!s) {
        return;
    }

    struct sink_kafka_exact *k = from_sink(s);

    close_producer(k);
    kafka_ends_flush(&k->ends, true);
    kafka_ends_done(&k->ends);
    arena_clear(&k->arena);
    free(k);
}

/* Take over an error object: its words to *err, what to do about it as the result. */
static enum sink_result fail(struct sink_kafka_exact *k, rd_kafka_error_t *error, const char *what,
                             struct err *err)
{
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    enum sink_result result = kafka_result_of(code);

    (void)kafka_client_fail(&k->client, code, what, err);
    if (result != SINK_BROKEN && rd_kafka_error_is_fatal(error)) {
        result = SINK_DOWN;
    }
    rd_kafka_error_destroy(error);
    return result;
}

/*
 * The topic cannot know less than was committed through it, as our file tells: then it
 * is another topic, or an older one, and what it has forgotten would be sent again.
 */
static enum sink_result check_position(struct sink_kafka_exact *k, struct slice journal,
                                       struct err *err)
{
    struct positions told;

    if (!k->state_dir || !positions_load(k->state_dir, k->name, &told, err)) {
        return k->state_dir ? SINK_BROKEN : SINK_OK;
    }

    uint64_t had = positions_get(&told, journal);

    positions_done(&told);
    if (k->next >= had) {
        return SINK_OK;
    }
    (void)err_set(err, ERR_INVALID,
                  "kafka: topic %s.positions stands at %" PRIu64 " of journal %" SLICE_FMT
                  " and stood at %" PRIu64 ": it was deleted and made anew, or lost what it had. "
                  "To send all again remove sinks/%s.positions.json of the state folder; to go on "
                  "write that number under the journal's key",
                  k->set.topic_prefix, k->next, SLICE_ARG(journal), had, k->name);
    return SINK_BROKEN;
}

/* A producer for the journal: older ones are fenced, open transactions ended, then the position. */
static enum sink_result open_producer(struct sink_kafka_exact *k, struct slice journal,
                                      struct err *err)
{
    char id[160];
    char topic[256];
    const char *const extra[] = { "enable.idempotence", "true", "transactional.id", id, NULL };
    const char *const topics[] = { topic, NULL };

    close_producer(k);
    (void)snprintf(id, sizeof(id), "%s.%s.%" SLICE_FMT, k->set.topic_prefix, k->name,
                   SLICE_ARG(journal));
    kafka_position_topic(&k->set, topic, sizeof(topic));
    if (!kafka_client_open(&k->client, &k->set, extra, err)) {
        return SINK_BROKEN;
    }
    if (!kafka_client_record_topics(&k->client, &k->set, (int)k->timeout_ms, err) ||
        !kafka_client_fit(&k->client, &k->set, extra, (int)k->timeout_ms, err) ||
        !kafka_client_topics(&k->client, &k->set, topics, true, (int)k->timeout_ms, err)) {
        return err->code == ERR_INVALID ? SINK_BROKEN : SINK_DOWN;
    }
    k->positions = rd_kafka_topic_new(k->client.rk, topic, NULL);

    rd_kafka_error_t *error = rd_kafka_init_transactions(k->client.rk, (int)k->timeout_ms);

    if (error) {
        return fail(k, error, "kafka: transactions cannot begin", err);
    }
    if (!kafka_position_read(&k->set, journal, k->timeout_ms, &k->next, err)) {
        return SINK_DOWN;
    }
    kafka_ends_check(&k->ends, k->client.rk, k->timeout_ms);
    if (check_position(k, journal, err) != SINK_OK) {
        return SINK_BROKEN;
    }
    (void)snprintf(k->journal, sizeof(k->journal), "%" SLICE_FMT, SLICE_ARG(journal));
    return SINK_OK;
}

static enum sink_result need_producer(struct sink_kafka_exact *k, struct slice journal,
                                      struct err *err)
{
    if (slice_equal(journal, slice_from_cstr(k->journal))) {
        return SINK_OK;
    }
    return open_producer(k, journal, err);
}

static bool exact_open(const struct sink_config *cfg, struct sink **ret_sink, struct err *err)
{
    struct sink_kafka_exact *k = xcalloc(1, sizeof(*k));

    k->base.ops = &sink_kafka_exact_ops;
    k->timeout_ms = cfg->timeout_ms;
    k->client.on_delivery = on_delivery;
    k->client.ctx = k;
    (void)snprintf(k->name, sizeof(k->name), "%s", cfg->name ? cfg->name : "kafka");
    arena_init(&k->arena, KAFKA_SPAN_BYTES);
    k->state_dir = cfg->state_dir;
    if (!kafka_settings_read(cfg->settings, &k->set, err) ||
        !kafka_ends_load(cfg->state_dir, k->name, &k->ends, err)) {
        exact_close(&k->base);
        return false;
    }
    *ret_sink = &k->base;
    return true;
}

static bool exact_position(struct sink *s, struct slice journal, uint64_t *ret_next,
                           struct err *err)
{
    struct sink_kafka_exact *k = from_sink(s);

    if (open_producer(k, journal, err) != SINK_OK) {
        return false;
    }
    *ret_next = k->next;
    return true;
}

/* Give the transaction up; what it sent is never seen. */
static enum sink_result abandon(struct sink_kafka_exact *k, enum sink_result result)
{
    rd_kafka_error_t *error = rd_kafka_abort_transaction(k->client.rk, (int)k->timeout_ms);

    if (error) {
        rd_kafka_error_destroy(error);
        return result == SINK_REJECT || result == SINK_RETRY ? SINK_DOWN : result;
    }
    return result;
}

static enum sink_result send_record(struct sink_kafka_exact *k, const struct span *span,
                                    const struct sink_record *r, int64_t deadline_ms,
                                    struct err *err)
{
    struct kafka_message *list;
    size_t n;

    arena_reset(&k->arena);

    enum sink_result result = kafka_messages(r, &k->arena, &list, &n, err);

    for (size_t i = 0; result == SINK_OK && i < n; i++) {
        rd_kafka_resp_err_t code =
            kafka_client_produce_by(&k->client, &list[i], span->journal, r->seq, NULL, deadline_ms);

        if (code) {
            (void)kafka_client_fail(&k->client, code, "kafka", err);
            result = kafka_result_of(code);
        }
    }
    return result;
}

/* The broker works on the first records while the others are made; one that is none aborts. */
static enum sink_result send_records(struct sink_kafka_exact *k, const struct span *span,
                                     int64_t deadline_ms, struct err *err)
{
    enum sink_result result = SINK_OK;

    for (size_t i = 0; result == SINK_OK && i < span->n; i++) {
        result = send_record(k, span, &span->records[i], deadline_ms, err);
        (void)rd_kafka_poll(k->client.rk, 0);
    }
    return result;
}

/* The position as a message of the transaction. */
static enum sink_result send_position(struct sink_kafka_exact *k, const struct span *span,
                                      struct err *err)
{
    char value[24];
    int n = snprintf(value, sizeof(value), "%" PRIu64, span->to + 1);
    rd_kafka_resp_err_t code =
        rd_kafka_producev(k->client.rk, RD_KAFKA_V_RKT(k->positions), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                          RD_KAFKA_V_KEY(kafka_bytes(span->journal), span->journal.len),
                          RD_KAFKA_V_VALUE(value, (size_t)n), RD_KAFKA_V_END);

    if (code) {
        (void)kafka_client_fail(&k->client, code, "kafka: position", err);
    }
    return kafka_result_of(code);
}

static enum sink_result committed(struct sink_kafka_exact *k, const struct span *span)
{
    k->in_doubt = false;
    k->next = span->late ? k->next : span->to + 1;
    kafka_ends_flush(&k->ends, false);
    return SINK_OK;
}

/*
 * The broker wants the transaction aborted; because a message was refused, if one was.
 * The producer has lost count of its sequences then: the next span gets a new one.
 */
static enum sink_result refused(struct sink_kafka_exact *k, rd_kafka_error_t *error,
                                struct err *err)
{
    enum sink_result result = fail(k, error, "kafka: commit", err);

    k->in_doubt = false;
    if (k->failed) {
        (void)kafka_client_fail(&k->client, k->failed, "kafka", err);
        result = kafka_result_of(k->failed);
    }
    if (result == SINK_REJECT) {
        close_producer(k); /* who opens the next one ends this transaction */
        return SINK_REJECT;
    }
    return abandon(k, result == SINK_OK ? SINK_RETRY : result);
}

/* Commit, as often as it may still succeed within the deadline. */
static enum sink_result commit(struct sink_kafka_exact *k, const struct span *span,
                               int64_t deadline_ms, struct err *err)
{
    for (;;) {
        rd_kafka_error_t *error =
            rd_kafka_commit_transaction(k->client.rk, clock_left_ms(deadline_ms) + TXN_FLUSH_MS);

        if (!error) {
            return committed(k, span);
        }
        if (rd_kafka_error_txn_requires_abort(error)) {
            return refused(k, error, err);
        }
        if (!rd_kafka_error_is_retriable(error)) {
            return fail(k, error, "kafka: commit", err);
        }
        if (clock_left_ms(deadline_ms) == 0) {
            k->in_doubt = true;
            k->doubt_to = span->to;
            (void)fail(k, error, "kafka: commit", err);
            return SINK_RETRY;
        }
        rd_kafka_error_destroy(error);
    }
}

/* A commit waits long for what was refused meanwhile: look before. */
static enum sink_result flush_all(struct sink_kafka_exact *k, int64_t deadline_ms, struct err *err)
{
    while (!k->failed && rd_kafka_outq_len(k->client.rk) > 0 && clock_left_ms(deadline_ms) > 0) {
        (void)rd_kafka_flush(k->client.rk, FLUSH_STEP_MS);
    }
    if (kafka_result_of(k->failed) != SINK_REJECT) {
        return SINK_OK;
    }
    (void)kafka_client_fail(&k->client, k->failed, "kafka", err);
    close_producer(k);
    return SINK_REJECT;
}

/* One transaction, from begin to commit. */
static enum sink_result transact(struct sink_kafka_exact *k, const struct span *span,
                                 int64_t deadline_ms, struct err *err)
{
    rd_kafka_error_t *error = rd_kafka_begin_transaction(k->client.rk);
    enum sink_result result;

    if (error) {
        return fail(k, error, "kafka: begin", err) == SINK_BROKEN ? SINK_BROKEN : SINK_DOWN;
    }
    k->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    kafka_trouble_clear(&k->client.trouble);
    result = send_records(k, span, deadline_ms, err);
    if (result == SINK_OK && !span->late) {
        result = send_position(k, span, err);
    }
    if (result != SINK_OK) {
        return abandon(k, result);
    }
    result = flush_all(k, deadline_ms, err);
    return result == SINK_OK ? commit(k, span, deadline_ms, err) : result;
}

static enum sink_result exact_write(struct sink *s, const struct span *span, struct err *err)
{
    struct sink_kafka_exact *k = from_sink(s);
    int64_t deadline_ms = clock_mono_ms() + k->timeout_ms;
    enum sink_result result = need_producer(k, span->journal, err);

    if (result != SINK_OK) {
        return result == SINK_RETRY ? SINK_DOWN : result;
    }
    if (k->in_doubt && k->doubt_to == span->to) {
        return commit(k, span, deadline_ms, err);
    }
    if (k->in_doubt) {
        (void)err_set(err, ERR_AGAIN, "kafka: a commit is in doubt, its position is read anew");
        return SINK_DOWN;
    }
    if (!span->late && span->from != k->next) {
        (void)err_set(err, ERR_AGAIN,
                      "kafka: the position of journal %" SLICE_FMT " is %" PRIu64 ", not %" PRIu64
                      "; going on from there",
                      SLICE_ARG(span->journal), k->next, span->from);
        return SINK_DOWN;
    }
    return transact(k, span, deadline_ms, err);
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
