#include "collector/base/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "tests/unit/unit.h"

static char dir[64];
static char file[128];
static struct faults faults;

static int begin(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/test_config.XXXXXX");
    faults_init(&faults);
    if (!mkdtemp(dir)) {
        return -1;
    }
    (void)snprintf(file, sizeof(file), "%s/h.yaml", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    faults_done(&faults);
    (void)unlink(file);
    return rmdir(dir);
}

static void put(const char *path, const char *text)
{
    CLEANUP(fs_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_true(fs_write_all(fd, slice_from_cstr(text), &err));
}

/* The configuration that `text` is, with the state folder /s. */
static struct config *load(const char *text)
{
    const struct config_options o = { .file = file, .state = "/s" };

    put(file, text);
    return config_load(&o, &faults);
}

static const char *text_at(const json_t *tree, const char *section, const char *key)
{
    return json_string_value(json_object_get(json_object_get(tree, section), key));
}

static void an_empty_file_has_the_defaults(void **state)
{
    (void)state;
    struct config *c = load("");

    assert_non_null(c);
    assert_string_equal(c->state, "/s");
    assert_null(c->sre.hooks);
    assert_string_equal(c->collect.listen[0], "unix:/s/collect.sock");
    assert_null(c->collect.listen[1]);
    assert_false(c->collect.durability_write);
    assert_false(c->collect.on_unrecorded_deny);
    assert_int_equal(c->collect.record_wait_ms, 250);
    assert_int_equal(c->collect.workers, 64);
    assert_int_equal(c->collect.output_budget_bytes, 64 * 1024 * 1024);
    assert_int_equal(c->journal.keep_hours, 24);
    assert_int_equal(c->journal.quota_mb, 4096);
    assert_false(c->journal.when_full_drop);
    assert_int_equal(c->n_sinks, 1);
    assert_string_equal(c->sinks[0].name, "sqlite");
    assert_string_equal(json_string_value(json_object_get(c->sinks[0].settings, "path")),
                        "/s/hooktrail.db");
    assert_string_equal(c->serve.listen[0], "tcp:127.0.0.1:8417");
    assert_string_equal(c->serve.store, "sqlite");
    assert_int_equal(faults.warnings, 0);
    config_free(c);
}

static void values_of_the_file_count_and_tell_their_line(void **state)
{
    (void)state;
    struct config *c = load("collector: box\n"
                            "contracts:\n"
                            "  sre: {hooks: hooks.yaml}\n"
                            "  oscova: {handlers: /h.yaml, secrets: STATE/s.yaml}\n"
                            "collect:\n"
                            "  listen: [unix, \"unix:x.sock\", \"tcp:[::1]:0\"]\n"
                            "  durability: write\n"
                            "  left_behind: end\n"
                            "journal: {when_full: drop_new}\n");
    char origin[160];

    assert_non_null(c);
    assert_string_equal(c->collector, "box");
    (void)snprintf(origin, sizeof(origin), "%s/hooks.yaml", dir);
    assert_string_equal(c->sre.hooks, origin);
    assert_string_equal(c->oscova.hooks, "/h.yaml");
    assert_string_equal(c->oscova.secrets, "/s/s.yaml");
    (void)snprintf(origin, sizeof(origin), "unix:%s/x.sock", dir);
    assert_string_equal(c->collect.listen[1], origin);
    assert_string_equal(c->collect.listen[2], "tcp:[::1]:0");
    assert_true(c->collect.durability_write);
    assert_true(c->collect.left_behind_end);
    assert_true(c->journal.when_full_drop);
    (void)snprintf(origin, sizeof(origin), "%s:7", file);
    assert_string_equal(text_at(c->origins, "collect", "durability"), origin);
    assert_string_equal(text_at(c->origins, "collect", "workers"), "default");
    assert_string_equal(json_string_value(json_object_get(c->origins, "state")), "--state");
    config_free(c);
}

/* A key whose lines were all taken out: as absent, as everywhere. */
static void a_key_without_anything_is_as_none(void **state)
{
    (void)state;
    struct config *c = load("sinks:\ncollect:\ncontracts:\n");

    assert_non_null(c);
    assert_int_equal(c->n_sinks, 1);
    assert_string_equal(c->sinks[0].name, "sqlite");
    config_free(c);
}

static void sinks_keep_the_order_of_the_file(void **state)
{
    (void)state;
    struct config *c =
        load("sinks:\n"
             "  kafka: {properties: {bootstrap.servers: k, linger.ms: 5, enable: true, acks: -1,"
             " enable.idempotence: true, partitioner: 'env:NOWHERE'}}\n"
             "  'null':\n"
             "  sqlite: {retention_days: 7}\n");

    assert_non_null(c);
    assert_int_equal(c->n_sinks, 3);
    assert_string_equal(c->sinks[0].name, "kafka");
    assert_string_equal(c->sinks[1].name, "null");
    assert_string_equal(c->sinks[2].name, "sqlite");

    const json_t *properties = json_object_get(c->sinks[0].settings, "properties");

    assert_string_equal(json_string_value(json_object_get(properties, "linger.ms")), "5");
    assert_string_equal(json_string_value(json_object_get(properties, "enable")), "true");
    config_free(c);
}

static void what_cannot_be_meant_is_a_fault_with_line_and_key(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        size_t line;
        const char *key;
        const char *text;
    } cases[] = {
        { "x: 1\ncolector: a\n", 2, "colector", "did you mean 'collector'?" },
        { "collect:\n  wrokers: 1\n", 2, "collect.wrokers", "did you mean 'workers'?" },
        { "collect:\n  zzz: 1\n", 2, "collect.zzz", "allowed are: listen, durability" },
        { "collect: 5\n", 1, "collect", "must be a mapping, not a number" },
        { "collect: {workers: 0}\n", 1, "collect.workers", "from 1 to 1024, not 0" },
        { "collect: {workers: 1025}\n", 1, "collect.workers", "not 1025" },
        { "collect: {workers: '5'}\n", 1, "collect.workers", "not '5'" },
        { "collect: {workers: 1.5}\n", 1, "collect.workers", "whole number" },
        { "collect: {workers: }\n", 1, "collect.workers", "not empty" },
        { "collect: {durability: sync}\n", 1, "collect.durability", "fsync, write, not 'sync'" },
        { "collect: {capture_payload: yes}\n", 1, "collect.capture_payload", "true or false" },
        { "collect: {listen: unix}\n", 1, "collect.listen", "a list, not 'unix'" },
        { "collect: {listen: [5]}\n", 1, "collect.listen", "entry 1 must be" },
        { "collect: {listen: ['tcp:8416']}\n", 1, "collect.listen", "tcp:HOST:PORT" },
        { "collect: {listen: ['tcp:a:65536']}\n", 1, "collect.listen", "tcp:HOST:PORT" },
        { "collect: {listen: ['tcp:::1:80']}\n", 1, "collect.listen", "in brackets" },
        { "collect: {listen: ['http://a']}\n", 1, "collect.listen", "must be unix" },
        { "collect: {listen: [unix, unix]}\n", 1, "collect.listen", "stands twice" },
        { "collect: {tls_cert: c.pem}\n", 1, "collect.tls_cert", "needs tls_key" },
        { "contracts:\n  sre: {}\n", 2, "contracts.sre.hooks", "is missing" },
        { "contracts: {sre: {hooks: ''}}\n", 1, "contracts.sre.hooks", "a path" },
        { "contracts: {sree: {hooks: a}}\n", 1, "contracts.sree", "did you mean 'sre'?" },
        { "sinks:\n  postgres:\n", 2, "sinks.postgres.dsn", "is missing" },
        { "sinks:\n  postgres: {dsn: 'host=a prt=4'}\n", 2, "sinks.postgres.dsn", "'port'?" },
        { "sinks: {postgres: {dsn: 'postgres://u:p@h/d?prt=4'}}\n", 1, "sinks.postgres.dsn",
          "unknown keyword; did you mean 'port'?" },
        { "sinks: {postgres: {dsn: 'sslmode=requre'}}\n", 1, "sinks.postgres.dsn",
          "sslmode must be one of disable, " },
        { "sinks:\n  kafka:\n    properties: {}\n", 3, "sinks.kafka.properties",
          "bootstrap.servers is missing" },
        { "sinks:\n  kafka:\n    properties:\n      bootstrap.servers: k\n      acks: 1\n", 5,
          "sinks.kafka.properties.acks", "must be all" },
        { "sinks:\n  kafka: {properties: {bootstrap.servers: k, group.id: g}}\n", 2,
          "sinks.kafka.properties.group.id", "must not be set: it is sinks.kafka.group" },
        { "sinks: {}\n", 1, "sinks", "names no sink" },
        { "sinks: {kafka: {properties: [1]}}\n", 1, "sinks.kafka.properties", "a mapping" },
        { "serve: {store: postgres}\n", 1, "serve.store", "no sink 'postgres'" },
        { "serve: {store: kafka}\n", 1, "serve.store", "one of sqlite, postgres" },
        { "state: \"a\\nb\"\n", 1, "state", "a path" },
        { "- a\n", 1, NULL, "a mapping of keys" },
        { "a: 1\n---\nb: 1\n", 3, NULL, "one document" },
        { "a: [\n", 2, NULL, "not YAML" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_null(load(cases[i].yaml));

        const struct fault *last = NULL;

        for (const struct fault *f = faults.first; f; f = f->next) {
            last = f;
        }
        if (!last) {
            fail_msg("no fault is told of %s", cases[i].yaml);
            return;
        }

        assert_string_equal(last->file, file);
        assert_int_equal(last->line, cases[i].line);
        assert_int_equal(last->key == NULL, cases[i].key == NULL);
        if (last->key) {
            assert_string_equal(last->key, cases[i].key);
        }
        if (!strstr(last->text, cases[i].text)) {
            fail_msg("'%s' does not say '%s'", last->text, cases[i].text);
        }
        faults_done(&faults);
    }
}

static void all_faults_are_told_at_once(void **state)
{
    (void)state;

    assert_null(load("x: 1\ncollect: {workers: 0, queue: 0}\nserve: {max_rows: a}\n"));
    assert_int_equal(faults.errors, 4);
}

static void a_port_open_to_others_without_tls_is_a_warning(void **state)
{
    (void)state;
    struct config *c = load("collect: {listen: ['tcp:0.0.0.0:1', 'tcp:127.0.0.1:2']}\n");

    assert_non_null(c);
    assert_int_equal(faults.warnings, 1);
    assert_string_equal(faults.first->key, "collect.listen");
    config_free(c);
}

static void a_file_that_was_named_must_be_there(void **state)
{
    (void)state;
    const struct config_options o = { .file = "/nonexistent.yaml" };

    assert_null(config_load(&o, &faults));
    assert_string_equal(faults.first->file, "/nonexistent.yaml");
}

static void passwords_are_kept_and_not_shown(void **state)
{
    (void)state;
    static const struct {
        const char *dsn;
        const char *shown;
    } cases[] = {
        { "host=a password=geheim dbname=b", "host=a password=*** dbname=b" },
        { "password = 'ge he\\'im' host=a", "password=*** host=a" },
        { "host=a sslpassword=geheim", "host=a sslpassword=***" },
        { "postgresql://u:geheim@h/d", "postgresql://u:***@h/d" },
        { "postgres://u@h/d?password=geheim&x=1", "postgres://u@h/d?password=***&x=***" },
        { "postgres://h/d", "postgres://h/d" },
        { "postgres://u:ge?heim@h/d?sslmode=require", "postgres://u:***@h/d?sslmode=require" },
        { "postgres://u:ge/heim@h/d", "postgres://u:***@h/d" },
        { "postgres://u:g@e?h/eim@h/d", "***" },
        { "postgres://h?user=u&password=ge@heim", "***" },
        { "postgres://h/d?password=ge@heim", "postgres://h/d?password=***" },
        { "geheim", "***" },
        { "env:PG_DSN", "env:PG_DSN" },
        { "file:/etc/dsn", "file:/etc/dsn" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[512];

        (void)snprintf(
            text, sizeof(text),
            "sinks:\n  postgres:\n    dsn: >-\n      %s\n"
            "  kafka: {properties: {bootstrap.servers: k, sasl.password: geheim, ssl.ca.location: /ca}}\n",
            cases[i].dsn);

        struct config *c = load(text);

        assert_non_null(c);

        const json_t *sinks = json_object_get(c->tree, "sinks");
        char *all = json_dumps(c->tree, 0);

        assert_string_equal(text_at(sinks, "postgres", "dsn"), cases[i].shown);
        assert_null(strstr(all, "heim"));
        assert_non_null(strstr(all, "/ca"));
        assert_string_equal(json_string_value(json_object_get(c->sinks[0].settings, "dsn")),
                            cases[i].dsn);
        free(all);
        config_free(c);
    }
}

static void a_secret_is_looked_up_where_it_says(void **state)
{
    (void)state;
    struct arena a;
    struct err err;
    const char *value = NULL;
    char where[160];

    arena_init(&a, 4096);
    assert_true(config_secret("plain", &a, &value, &err));
    assert_string_equal(value, "plain");

    assert_int_equal(setenv("HOOKTRAIL_TEST_SECRET", "from env", 1), 0);
    assert_true(config_secret("env:HOOKTRAIL_TEST_SECRET", &a, &value, &err));
    assert_string_equal(value, "from env");
    assert_int_equal(unsetenv("HOOKTRAIL_TEST_SECRET"), 0);
    assert_false(config_secret("env:HOOKTRAIL_TEST_SECRET", &a, &value, &err));
    assert_non_null(strstr(err.text, "HOOKTRAIL_TEST_SECRET is not set"));

    put(file, "from file\nmore\n");
    (void)snprintf(where, sizeof(where), "file:%s", file);
    assert_true(config_secret(where, &a, &value, &err));
    assert_string_equal(value, "from file");
    put(file, "\n");
    assert_false(config_secret(where, &a, &value, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_false(config_secret("file:/nonexistent", &a, &value, &err));
    assert_int_equal(err.code, ERR_IO);
    arena_clear(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_file_has_the_defaults),
        TEST(values_of_the_file_count_and_tell_their_line),
        TEST(a_key_without_anything_is_as_none),
        TEST(sinks_keep_the_order_of_the_file),
        TEST(what_cannot_be_meant_is_a_fault_with_line_and_key),
        TEST(all_faults_are_told_at_once),
        TEST(a_port_open_to_others_without_tls_is_a_warning),
        TEST(a_file_that_was_named_must_be_there),
        TEST(passwords_are_kept_and_not_shown),
        TEST(a_secret_is_looked_up_where_it_says),
    };

    return cmocka_run_group_tests_name("base/config", tests, NULL, NULL);
}
