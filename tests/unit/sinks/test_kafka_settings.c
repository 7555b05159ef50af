#include "sinks/kafka_settings.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/cleanup.h"
#include "collector/base/config_kafka.h"
#include "tests/unit/unit.h"

#define TEN "0123456789"

static const char *const nothing[] = { NULL };

static void free_json(json_t **j)
{
    json_decref(*j);
}
#define JSON CLEANUP(free_json) json_t

/* The value of a property in a configuration made of this JSON object of properties. */
static const char *value_of(const char *properties, const char *const *extra, const char *name)
{
    static char text[100];
    JSON *p = json_loads(properties, 0, NULL);
    const struct kafka_settings set = { .properties = p };
    rd_kafka_conf_t *conf;
    size_t size = sizeof(text);
    struct err err;

    assert_non_null(p);
    assert_true(kafka_conf_new(&set, extra, &conf, &err));
    assert_int_equal(rd_kafka_conf_get(conf, name, text, &size), RD_KAFKA_CONF_OK);
    rd_kafka_conf_destroy(conf);
    return text;
}

static void nothing_said_is_the_default(void **state)
{
    (void)state;
    struct kafka_settings set;
    struct err err;

    assert_true(kafka_settings_read(NULL, &set, &err));
    assert_string_equal(set.topic_prefix, "hooktrail");
    assert_false(set.exactly_once);
    assert_true(set.create_topics);
    assert_int_equal(set.partitions, KAFKA_PARTITIONS);
    assert_int_equal(set.replication, -1);
    assert_null(set.properties);
}

static void what_is_said_is_taken(void **state)
{
    (void)state;
    JSON *j = json_pack("{s:s, s:s, s:b, s:i, s:i}", "topic_prefix", "p", "delivery",
                        "exactly-once", "create_topics", 0, "partitions", 7, "replication", 3);
    struct kafka_settings set;
    struct err err;

    assert_true(kafka_settings_read(j, &set, &err));
    assert_string_equal(set.topic_prefix, "p");
    assert_true(set.exactly_once);
    assert_false(set.create_topics);
    assert_int_equal(set.partitions, 7);
    assert_int_equal(set.replication, 3);
}

static void what_cannot_be_is_refused_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *named;
    } cases[] = {
        { "{\"delivery\":\"at-most-once\"}", "delivery: 'at-most-once'" },
        { "{\"partitions\":0}", "partitions: want a number from 1 to 10000" },
        { "{\"partitions\":10001}", "partitions" },
        { "{\"partitions\":\"3\"}", "partitions" },
        { "{\"replication\":-1}", "replication" },
        { "{\"replication\":101}", "replication" },
        { "{\"topic_prefix\":\"\"}", "topic_prefix" },
        { "{\"topic_prefix\":\"a/b\"}", "topic_prefix" },
        { "{\"topic_prefix\":\"a b\"}", "topic_prefix" },
        { "{\"topic_prefix\":\"" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "x\"}", "topic_prefix" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        JSON *j = json_loads(cases[i].json, 0, NULL);
        struct kafka_settings set;
        struct err err = { 0 };

        assert_false(kafka_settings_read(j, &set, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].named));
    }
}

static void a_plain_value_of_any_type_reaches_librdkafka(void **state)
{
    (void)state;
    assert_string_equal(value_of("{\"linger.ms\":7}", nothing, "linger.ms"), "7");
    assert_string_equal(value_of("{\"linger.ms\":\"8\"}", nothing, "linger.ms"), "8");
    assert_string_equal(
        value_of("{\"socket.keepalive.enable\":true}", nothing, "socket.keepalive.enable"), "true");
    assert_string_equal(value_of("{\"client.id\":\"mine\"}", nothing, "client.id"), "mine");
    assert_string_equal(value_of("{}", nothing, "client.id"), "hooktrail");
}

static void a_value_may_stand_in_the_environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("TEST_KAFKA_PASSWORD", "n0t-t0ld", 1), 0);
    assert_string_equal(
        value_of("{\"sasl.password\":\"env:TEST_KAFKA_PASSWORD\"}", nothing, "sasl.password"),
        "n0t-t0ld");
    assert_int_equal(unsetenv("TEST_KAFKA_PASSWORD"), 0);
}

static void what_the_driver_needs_stands_over_what_is_lent(void **state)
{
    (void)state;
    static const char *const extra[] = { "batch.size", "4000", NULL };

    assert_string_equal(value_of("{\"batch.size\":9000}", extra, "batch.size"), "4000");
}

/* Each row of the list: what the user must not say is refused, all else reaches librdkafka. */
static void what_is_ours_is_refused_by_its_name_and_all_else_is_the_users(void **state)
{
    (void)state;
    const struct kafka_property *p;

    for (size_t i = 0; (p = kafka_property_at(i)) != NULL; i++) {
        JSON *j = json_pack("{s:s}", p->name, p->never ? p->never : "4000");
        const struct kafka_settings set = { .properties = j };
        rd_kafka_conf_t *conf = NULL;
        struct err err = { 0 };

        assert_int_equal(kafka_conf_new(&set, nothing, &conf, &err), p->free);
        if (p->free) {
            rd_kafka_conf_destroy(conf);
            continue;
        }
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.text, p->name));
        assert_non_null(strstr(err.text, p->rule));
    }
}

static void a_reference_hides_nothing_that_is_ours(void **state)
{
    (void)state;
    JSON *j = json_pack("{s:s}", "partitioner", "env:TEST_KAFKA_PARTITIONER");
    const struct kafka_settings set = { .properties = j };
    rd_kafka_conf_t *conf;
    struct err err = { 0 };

    assert_int_equal(setenv("TEST_KAFKA_PARTITIONER", "random", 1), 0);
    assert_false(kafka_conf_new(&set, nothing, &conf, &err));
    assert_non_null(strstr(err.text, "properties.partitioner: must not be random"));
    assert_int_equal(unsetenv("TEST_KAFKA_PARTITIONER"), 0);
}

static void a_property_that_breaks_a_promise_or_is_none_is_refused_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *named;
    } cases[] = {
        { "{\"acks\":\"1\"}", "properties.acks: must be all" },
        { "{\"acks\":1}", "properties.acks: must be all" },
        { "{\"request.required.acks\":\"0\"}", "properties.request.required.acks: must be all" },
        { "{\"enable.idempotence\":false}", "properties.enable.idempotence: must be true" },
        { "{\"transactional.id\":\"x\"}", "properties.transactional.id: must not be set" },
        { "{\"enable.auto.commit\":true}", "properties.enable.auto.commit: must not be set" },
        { "{\"delivery.report.only.error\":true}",
          "properties.delivery.report.only.error: must be false" },
        { "{\"linger.ms\":[1]}", "properties.linger.ms: want a plain value" },
        { "{\"linger.ms\":null}", "properties.linger.ms: want a plain value" },
        { "{\"linger.ms\":\"soon\"}", "properties.linger.ms: " },
        { "{\"no.such.thing\":\"1\"}", "properties.no.such.thing: " },
        { "{\"sasl.password\":\"env:TEST_KAFKA_UNSET\"}", "properties.sasl.password" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        JSON *p = json_loads(cases[i].json, 0, NULL);
        const struct kafka_settings set = { .properties = p };
        rd_kafka_conf_t *conf;
        struct err err = { 0 };

        assert_false(kafka_conf_new(&set, nothing, &conf, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].named));
    }
}

static void the_one_value_of_a_property_of_ours_is_allowed(void **state)
{
    (void)state;
    assert_string_equal(value_of("{\"acks\":\"all\"}", nothing, "acks"), "-1");
    assert_string_equal(value_of("{\"acks\":-1}", nothing, "acks"), "-1");
    assert_string_equal(value_of("{\"enable.idempotence\":true}", nothing, "enable.idempotence"),
                        "true");
    assert_string_equal(value_of("{\"partitioner\":\"murmur2\"}", nothing, "partitioner"),
                        "murmur2");
}

static void properties_that_do_not_go_together_make_no_client(void **state)
{
    (void)state;
    static const char *const extra[] = { "enable.idempotence", "true", NULL };
    JSON *p = json_pack("{s:i}", "max.in.flight.requests.per.connection", 100);
    const struct kafka_settings set = { .properties = p };
    rd_kafka_conf_t *conf;
    struct err err = { 0 };

    assert_true(kafka_conf_new(&set, extra, &conf, &err));
    assert_null(kafka_new(RD_KAFKA_PRODUCER, conf, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, "max.in.flight"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said_is_the_default),
        cmocka_unit_test(what_is_said_is_taken),
        cmocka_unit_test(what_cannot_be_is_refused_by_its_name),
        cmocka_unit_test(a_plain_value_of_any_type_reaches_librdkafka),
        cmocka_unit_test(a_value_may_stand_in_the_environment),
        cmocka_unit_test(what_the_driver_needs_stands_over_what_is_lent),
        cmocka_unit_test(what_is_ours_is_refused_by_its_name_and_all_else_is_the_users),
        cmocka_unit_test(a_reference_hides_nothing_that_is_ours),
        cmocka_unit_test(a_property_that_breaks_a_promise_or_is_none_is_refused_by_its_name),
        cmocka_unit_test(the_one_value_of_a_property_of_ours_is_allowed),
        cmocka_unit_test(properties_that_do_not_go_together_make_no_client),
    };

    return cmocka_run_group_tests_name("sinks/kafka_settings", tests, NULL, NULL);
}
