#include "collector/base/config_kafka.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static void what_is_ours_has_the_one_value_that_keeps_our_promises(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *value;
        const char *refused; /* NULL: it may be */
    } cases[] = {
        { "linger.ms", "5", NULL },
        { "no.such.thing", "5", NULL },
        { "acks", "all", NULL },
        { "acks", "-1", NULL },
        { "acks", "1", "must be all" },
        { "request.required.acks", "0", "must be all" },
        { "enable.idempotence", "true", NULL },
        { "enable.idempotence", "false", "must be true" },
        { "enable.idempotence", "-1", "must be true" },
        { "partitioner", "murmur2_random", NULL },
        { "partitioner", "random", "must not be random" },
        { "group.id", "", "must not be set: it is sinks.kafka.group" },
        { "batch.size", "1000", NULL },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = { 0 };

        assert_int_equal(kafka_property_check(cases[i].name, cases[i].value, &err),
                         !cases[i].refused);
        assert_string_equal(err.text, cases[i].refused ? cases[i].refused : "");
    }
}

/* The lines between .EX and .EE of `properties` in hooktrail.yaml(5), one after another. */
static size_t read_manual(char lines[][128], size_t most)
{
    FILE *f = fopen("deploy/hooktrail.yaml.5", "re");
    char line[512];
    bool in_properties = false;
    bool in_list = false;
    size_t n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        in_properties = strcmp(line, ".B delivery") != 0 &&
                        (in_properties || strcmp(line, ".B properties") == 0);
        in_list =
            in_properties && strcmp(line, ".EE") != 0 && (in_list || strcmp(line, ".EX") == 0);
        if (in_list && strcmp(line, ".EX") != 0) {
            assert_true(n < most);
            (void)snprintf(lines[n++], sizeof(lines[0]), "%.127s", line);
        }
    }
    (void)fclose(f);
    return n;
}

static void the_manual_tells_the_same_list(void **state)
{
    (void)state;
    enum { MOST = 64 };
    char lines[MOST][128];
    size_t n = read_manual(lines, MOST);
    const struct kafka_property *p;

    for (size_t i = 0; (p = kafka_property_at(i)) != NULL; i++) {
        char expected[128];

        (void)snprintf(expected, sizeof(expected), "%-30s %s", p->name, p->rule);
        assert_true(i < n);
        assert_string_equal(lines[i], expected);
    }
    assert_null(kafka_property_at(n));
}

static void a_name_has_its_row(void **state)
{
    (void)state;
    assert_ptr_equal(kafka_property_find("enable.idempotence"), kafka_property_at(0));
    assert_null(kafka_property_find("linger.ms"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_ours_has_the_one_value_that_keeps_our_promises),
        cmocka_unit_test(the_manual_tells_the_same_list),
        cmocka_unit_test(a_name_has_its_row),
    };

    return cmocka_run_group_tests_name("base/config_kafka", tests, NULL, NULL);
}
