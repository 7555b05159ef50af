#include "sinks/kafka_client.h"

#include <stdio.h>
#include <sys/socket.h>

#include "collector/base/clock.h"

enum { CLOSE_MS = 1000 };

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    struct kafka_client *c =
        CONTAINER_OF((struct kafka_trouble *)opaque, struct kafka_client, trouble);

    (void)rk;
    if (m->err) {
        kafka_trouble_note_topic(&c->trouble, m->err, rd_kafka_topic_name(m->rkt), m->len);
    }
    if (c->on_delivery) {
        c->on_delivery(c->ctx, m->_private, m);
    }
}

bool kafka_client_open(struct kafka_client *c, const struct kafka_settings *set,
                       const char *const *extra, struct err *err)
{
    rd_kafka_conf_t *conf;

    c->rk = NULL;
    c->broker = -1;
    (void)snprintf(c->prefix, sizeof(c->prefix), "%s", set->topic_prefix);
    if (!kafka_conf_new(set, extra, &conf, err)) {
        return false;
    }
    kafka_trouble_listen(&c->trouble, conf, set->timeout_ms);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    c->rk = kafka_new(RD_KAFKA_PRODUCER, conf, err);
    return c->rk;
}

static void close_topic(rd_kafka_topic_t **topic)
{
    if (*topic) {
        rd_kafka_topic_destroy(*topic);
        *topic = NULL;
    }
}

void kafka_client_close(struct kafka_client *c)
{
    if (!c->rk) {
        return;
    }
    (void)rd_kafka_purge(c->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_flush(c->rk, CLOSE_MS);
    for (int i = 0; i < KAFKA_TOPICS; i++) {
        close_topic(&c->topics[i]);
    }
    close_topic(&c->positions);
    rd_kafka_destroy_flags(c->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    c->rk = NULL;
}

void kafka_client_property(const struct kafka_client *c, const char *name, char *ret, size_t size)
{
    size_t n = size;

    if (rd_kafka_conf_get(rd_kafka_conf(c->rk), name, ret, &n) != RD_KAFKA_CONF_OK) {
        ret[0] = '\0';
    }
    ret[size - 1] = '\0';
}

/* Nobody answered, and nothing more is known: at least who was asked. */
static bool no_answer(const struct kafka_client *c, rd_kafka_resp_err_t code, const char *what,
                      struct err *err)
{
    char servers[120];

    kafka_client_property(c, "bootstrap.servers", servers, sizeof(servers));
    return err_set(err, ERR_IO, "%s: %s (bootstrap.servers: %s)", what, rd_kafka_err2str(code),
                   servers);
}

bool kafka_client_fail(struct kafka_client *c, rd_kafka_resp_err_t code, const char *what,
                       struct err *err)
{
    char any[sizeof(c->prefix) + 2];

    if (!c->trouble.text[0] && c->rk &&
        (code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT)) {
        return no_answer(c, code, what, err);
    }
    if (!c->trouble.text[0]) { /* a transaction does not tell which */
        (void)snprintf(any, sizeof(any), "%s.*", c->prefix);
        kafka_trouble_note_topic(&c->trouble, code, any, 0);
    }
    return kafka_trouble_fail(&c->trouble, code, what, err);
}

enum sink_result kafka_result_of(rd_kafka_resp_err_t code)
{
    /* Not a switch over the enum: librdkafka has some hundred and fifty codes. */
    static const struct {
        rd_kafka_resp_err_t code;
        enum sink_result result;
    } table[] = {
        { RD_KAFKA_RESP_ERR_NO_ERROR, SINK_OK },
        { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, SINK_REJECT },
        { RD_KAFKA_RESP_ERR_INVALID_MSG, SINK_REJECT },
        { RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, SINK_REJECT },
        { RD_KAFKA_RESP_ERR_INVALID_RECORD, SINK_REJECT },
        { RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, SINK_REJECT },
        { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR__FENCED, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_PRODUCER_FENCED, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, SINK_BROKEN },
        { RD_KAFKA_RESP_ERR__FATAL, SINK_DOWN },
        { RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, SINK_DOWN },
        { RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, SINK_DOWN },
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].code == code) {
            return table[i].result;
        }
    }
    return SINK_RETRY;
}

void *kafka_opaque(uint64_t seq)
{
    return (void *)(uintptr_t)seq; /* NOLINT(performance-no-int-to-ptr): never followed */
}

uint64_t kafka_opaque_seq(const void *opaque)
{
    return (uint64_t)(uintptr_t)opaque;
}

void *kafka_bytes(struct slice bytes)
{
    union {
        const char *in;
        void *out;
    } pointer = { .in = bytes.ptr };

    return pointer.out;
}

void kafka_client_refused(struct kafka_client *c, rd_kafka_resp_err_t code,
                          const struct kafka_message *m)
{
    kafka_trouble_note_topic(&c->trouble, code, rd_kafka_topic_name(c->topics[m->topic]),
                             m->value.len);
}

rd_kafka_resp_err_t kafka_client_produce(struct kafka_client *c, const struct kafka_message *m,
                                         struct slice journal, void *opaque)
{
    rd_kafka_headers_t *headers = kafka_headers(m, journal);
    rd_kafka_resp_err_t code = rd_kafka_producev(
        c->rk, RD_KAFKA_V_RKT(c->topics[m->topic]), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(kafka_bytes(m->key), m->key.len),
        RD_KAFKA_V_VALUE(kafka_bytes(m->value), m->value.len), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);

    if (code) {
        rd_kafka_headers_destroy(headers);
        kafka_client_refused(c, code, m);
    }
    return code;
}

rd_kafka_resp_err_t kafka_client_produce_by(struct kafka_client *c, const struct kafka_message *m,
                                            struct slice journal, void *opaque, int64_t deadline_ms)
{
    for (;;) {
        rd_kafka_resp_err_t code = kafka_client_produce(c, m, journal, opaque);

        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || clock_left_ms(deadline_ms) == 0) {
            return code;
        }
        (void)rd_kafka_poll(c->rk, 10);
    }
}
