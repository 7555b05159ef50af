#include "sinks/kafka_trouble.h"

#include <openssl/x509_vfy.h>

#include "tests/unit/unit.h"

#define VERIFY_FAILED                                                                             \
    "ssl://b:1/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify " \
    "failed: broker certificate could not be verified (after 4ms in state SSL_HANDSHAKE)"

static void a_report_is_told_without_what_changes_each_time(void **state)
{
    (void)state;
    static const struct {
        rd_kafka_resp_err_t code;
        int certificate;
        const char *reason;
        const char *told;
        enum err_code lasts;
    } cases[] = {
        { RD_KAFKA_RESP_ERR__TRANSPORT, X509_V_OK,
          "b:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused (after 0ms in state "
          "CONNECT, 7 identical error(s) suppressed)",
          "kafka: b:1: Connect to ipv4#1.2.3.4:1 failed: Connection refused", ERR_IO },
        { RD_KAFKA_RESP_ERR__AUTHENTICATION, X509_V_OK,
          "sasl_ssl://b:1/bootstrap: SASL authentication error: no (after 301ms in state AUTH_REQ)",
          "kafka: sasl_ssl://b:1: SASL authentication error: no; sasl.* of sinks.kafka.properties "
          "must be what the broker knows",
          ERR_INVALID },
        { RD_KAFKA_RESP_ERR__AUTHENTICATION, X509_V_OK,
          "b:1/7: SASL authentication error: Local: Broker transport failure (after 1ms in state)",
          "kafka: b:1/7: SASL authentication error: Local: Broker transport failure; "
          "security.protocol of sinks.kafka.properties must be the listener's",
          ERR_IO },
        { RD_KAFKA_RESP_ERR__SSL, X509_V_ERR_HOSTNAME_MISMATCH, VERIFY_FAILED,
          "kafka: ssl://b:1: the broker's certificate is refused: hostname mismatch; it must name "
          "the host that bootstrap.servers and the broker's advertised.listeners name",
          ERR_INVALID },
        { RD_KAFKA_RESP_ERR__SSL, X509_V_ERR_CERT_HAS_EXPIRED, VERIFY_FAILED,
          "kafka: ssl://b:1: the broker's certificate is refused: certificate has expired",
          ERR_INVALID },
        { RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, X509_V_OK, "1/1 brokers are down",
          "kafka: 1/1 brokers are down", ERR_IO },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kafka_trouble t = { 0 };
        struct err err;

        t.certificate = cases[i].certificate;
        kafka_trouble_note(&t, cases[i].code, cases[i].reason);
        assert_false(kafka_trouble_fail(&t, RD_KAFKA_RESP_ERR__TIMED_OUT, "kafka", &err));
        assert_string_equal(err.text, cases[i].told);
        assert_int_equal(err.code, cases[i].lasts);
    }
}

static void what_a_person_must_mend_is_not_displaced_by_what_follows_from_it(void **state)
{
    (void)state;
    struct kafka_trouble t = { 0 };
    struct err err;

    kafka_trouble_note(&t, RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/bootstrap: down");
    kafka_trouble_note(&t, RD_KAFKA_RESP_ERR__AUTHENTICATION, "b:1/bootstrap: wrong password");
    kafka_trouble_note(&t, RD_KAFKA_RESP_ERR__TRANSPORT, "b:2/bootstrap: Connection refused");
    kafka_trouble_note(&t, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "2/2 brokers are down");
    assert_false(kafka_trouble_fail(&t, RD_KAFKA_RESP_ERR__TRANSPORT, "kafka", &err));
    assert_non_null(strstr(err.text, "wrong password"));
    assert_int_equal(err.code, ERR_INVALID);

    kafka_trouble_clear(&t);
    kafka_trouble_note(&t, RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/bootstrap: down");
    assert_false(kafka_trouble_fail(&t, RD_KAFKA_RESP_ERR__TRANSPORT, "kafka", &err));
    assert_string_equal(err.text, "kafka: b:1: down");
    assert_int_equal(err.code, ERR_IO);
}

static void a_refusal_of_a_message_names_its_topic(void **state)
{
    (void)state;
    struct kafka_trouble t = { 0 };
    struct err err;

    kafka_trouble_note_topic(&t, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "a.audit", 2345);
    assert_false(kafka_trouble_fail(&t, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "kafka", &err));
    assert_string_equal(err.text, "kafka: Broker: Message size too large (2345 bytes to topic "
                                  "a.audit; its max.message.bytes, and message.max.bytes of "
                                  "sinks.kafka.properties, must allow them)");
    kafka_trouble_note_topic(&t, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "a.audit", 5);
    assert_false(
        kafka_trouble_fail(&t, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "kafka", &err));
    assert_string_equal(err.text, "kafka: Broker: Topic authorization failed (topic a.audit; the "
                                  "broker's rules must allow us to Describe and Write it)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_told_without_what_changes_each_time),
        cmocka_unit_test(what_a_person_must_mend_is_not_displaced_by_what_follows_from_it),
        cmocka_unit_test(a_refusal_of_a_message_names_its_topic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
