#include "sinks/kafka_trouble.h"

#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/slice.h"
#include "sinks/kafka_names.h"

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    (void)rk;
    kafka_trouble_note(opaque, (rd_kafka_resp_err_t)code, reason);
}

/* Decides nothing: OpenSSL's answer stands, and librdkafka would not tell which it was. */
/* NOLINTNEXTLINE(readability-non-const-parameter,readability-function-size): librdkafka's type */
static int on_certificate(rd_kafka_t *rk, const char *broker, int32_t id, int *x509_error,
                          int depth, const char *bytes, size_t n, char *text, size_t size,
                          void *opaque)
{
    struct kafka_trouble *t = opaque;

    (void)rk;
    (void)broker;
    (void)id;
    (void)depth;
    (void)bytes;
    (void)n;
    if (*x509_error == X509_V_OK) {
        return 1;
    }
    t->certificate = *x509_error;
    (void)snprintf(text, size, "%s", X509_verify_cert_error_string(*x509_error));
    return 0;
}

void kafka_trouble_listen(struct kafka_trouble *t, rd_kafka_conf_t *conf, int timeout_ms)
{
    kafka_trouble_clear(t);
    t->lookup_ms = timeout_ms;
    kafka_names_limit(conf);
    rd_kafka_conf_set_opaque(conf, t);
    rd_kafka_conf_set_error_cb(conf, on_error);
    (void)rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate);
}

void kafka_trouble_clear(struct kafka_trouble *t)
{
    t->text[0] = '\0';
    t->down = false;
    t->lasting = false;
    t->certificate = X509_V_OK;
}

/* librdkafka words what is wrong with us and what is wrong with the line alike. */
static bool is_of_the_line(const char *reason)
{
    return strstr(reason, "Local: ") || strstr(reason, "isconnected");
}

static const char *advice_for(const struct kafka_trouble *t, rd_kafka_resp_err_t code, bool lasting)
{
    if (lasting && code == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
        return "; sasl.* of sinks.kafka.properties must be what the broker knows";
    }
    if (lasting && (t->certificate == X509_V_ERR_HOSTNAME_MISMATCH ||
                    t->certificate == X509_V_ERR_IP_ADDRESS_MISMATCH)) {
        return "; it must name the host that bootstrap.servers and the broker's "
               "advertised.listeners name";
    }
    if (lasting && (t->certificate == X509_V_ERR_CERT_HAS_EXPIRED ||
                    t->certificate == X509_V_ERR_CERT_NOT_YET_VALID)) {
        return "";
    }
    if (lasting) {
        return "; ssl.ca.location of sinks.kafka.properties must name who signed it";
    }
    if (code == RD_KAFKA_RESP_ERR__SSL || code == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
        return "; security.protocol of sinks.kafka.properties must be the listener's";
    }
    return "";
}

/* "PLACE: WORDS" without what changes from one attempt to the next. */
static struct slice without_details(const char *reason, struct slice *ret_place)
{
    struct slice all = slice_from_cstr(reason);
    const char *after = strstr(reason, " (after ");
    const char *colon = strstr(reason, ": ");
    const char *bootstrap = strstr(reason, "/bootstrap: ");

    if (after) {
        all.len = (size_t)(after - reason);
    }
    if (!colon || (after && colon > after)) {
        *ret_place = (struct slice){ 0 };
        return all;
    }
    *ret_place = (struct slice){ reason, (size_t)((bootstrap ? bootstrap : colon) - reason) };
    return (struct slice){ colon + 2, all.len - (size_t)(colon + 2 - reason) };
}

void kafka_trouble_note(struct kafka_trouble *t, rd_kafka_resp_err_t code, const char *reason)
{
    bool certificate =
        code == RD_KAFKA_RESP_ERR__SSL && strstr(reason, "certificate verify failed");
    bool lasting =
        certificate || (code == RD_KAFKA_RESP_ERR__AUTHENTICATION && !is_of_the_line(reason));
    const char *advice = advice_for(t, code, lasting);
    struct slice place;
    struct slice words = without_details(reason, &place);

    t->down = t->down || code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
    /* That all brokers are down says less than why. */
    if (t->text[0] && (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || (t->lasting && !lasting))) {
        return;
    }
    if (certificate && t->certificate != X509_V_OK) {
        words = slice_from_cstr(X509_verify_cert_error_string(t->certificate));
    }
    t->lasting = lasting;
    (void)snprintf(t->text, sizeof(t->text), "%.*s%s%s%.*s%s", (int)place.len,
                   place.ptr ? place.ptr : "", place.len > 0 ? ": " : "",
                   certificate ? "the broker's certificate is refused: " : "", (int)words.len,
                   words.ptr, advice);
}

void kafka_trouble_note_topic(struct kafka_trouble *t, rd_kafka_resp_err_t code, const char *topic,
                              size_t bytes)
{
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE && bytes > 0) {
        (void)snprintf(t->text, sizeof(t->text),
                       "%zu bytes to topic %s; its max.message.bytes, and message.max.bytes of "
                       "sinks.kafka.properties, must allow them",
                       bytes, topic);
    }
    if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
        (void)snprintf(t->text, sizeof(t->text),
                       "topic %s; the broker's rules must allow us to Describe and Write it",
                       topic);
    }
}

bool kafka_trouble_fail(const struct kafka_trouble *t, rd_kafka_resp_err_t code, const char *what,
                        struct err *err)
{
    enum err_code lasting = t->lasting ? ERR_INVALID : ERR_IO;

    if (!t->text[0]) {
        return err_set(err, ERR_IO, "%s: %s", what, rd_kafka_err2str(code));
    }
    /* That there was no answer says less than why. */
    if (code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__TIMED_OUT ||
        code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        return err_set(err, lasting, "%s: %s", what, t->text);
    }
    return err_set(err, lasting, "%s: %s (%s)", what, rd_kafka_err2str(code), t->text);
}
