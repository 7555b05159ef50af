#include "sinks/kafka_settings.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/config.h"
#include "collector/base/config_kafka.h"
#include "collector/base/log.h"

enum {
    SECRET_BYTES = 256 * 1024, /* a certificate chain as a property */
    PREFIX_MAX = 100,
};

/* How long a broker that is back may go unnoticed, unless told; librdkafka: 10 s. */
#define RECONNECT_MS "2000"

static bool read_int(const json_t *settings, const char *key, int least, int most, int *value,
                     struct err *err)
{
    const json_t *v = json_object_get(settings, key);

    if (!v || json_is_null(v)) {
        return true;
    }
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most) {
        return err_set(err, ERR_INVALID, "sinks.kafka.%s: want a number from %d to %d", key, least,
                       most);
    }
    *value = (int)json_integer_value(v);
    return true;
}

/* As Kafka wants the names of topics; a transactional id is made of it, too, and must not be cut.
 */
static bool is_prefix(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strspn(text, allowed);

    return len > 0 && len <= PREFIX_MAX && text[len] == '\0';
}

bool kafka_settings_read(const json_t *settings, struct kafka_settings *ret, struct err *err)
{
    struct kafka_settings set = {
        .properties = json_object_get(settings, "properties"),
        .topic_prefix = json_string_value(json_object_get(settings, "topic_prefix")),
        .create_topics = !json_is_false(json_object_get(settings, "create_topics")),
        .partitions = KAFKA_PARTITIONS,
        .timeout_ms = KAFKA_TIMEOUT_MS,
    };
    const char *delivery = json_string_value(json_object_get(settings, "delivery"));

    if (!set.topic_prefix) {
        set.topic_prefix = "hooktrail";
    }
    if (!is_prefix(set.topic_prefix)) {
        return err_set(err, ERR_INVALID,
                       "sinks.kafka.topic_prefix: want 1 to %d letters, digits, '.', '_' or '-'",
                       PREFIX_MAX);
    }
    if (delivery && strcmp(delivery, "exactly-once") == 0) {
        set.exactly_once = true;
    } else if (delivery && strcmp(delivery, "at-least-once") != 0) {
        return err_set(err, ERR_INVALID,
                       "sinks.kafka.delivery: '%s' is neither at-least-once nor exactly-once",
                       delivery);
    }
    if (!read_int(settings, "timeout_ms", 1, INT_MAX, &set.timeout_ms, err) ||
        !read_int(settings, "partitions", 1, 10000, &set.partitions, err) ||
        !read_int(settings, "replication", 0, 100, &set.replication, err)) {
        return false;
    }
    if (set.replication == 0) {
        set.replication = -1; /* librdkafka's word for it */
    }
    *ret = set;
    return true;
}

/* The value as librdkafka writes it; NULL for what is no plain value. */
static const char *text_of(const json_t *v, char *space, size_t size)
{
    if (json_is_string(v)) {
        return json_string_value(v);
    }
    if (json_is_boolean(v)) {
        return json_is_true(v) ? "true" : "false";
    }
    if (json_is_integer(v)) {
        (void)snprintf(space, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return space;
    }
    return NULL;
}

static bool set_one(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
    char text[200];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK) {
        return err_set(err, ERR_INVALID, "sinks.kafka.properties.%s: %s", name, text);
    }
    return true;
}

/* librdkafka would only say that something of the kind failed. */
static bool is_readable(const char *name, const char *value, struct err *err)
{
    static const char ending[] = ".location";
    size_t len = strlen(name);

    if (strncmp(name, "ssl.", 4) != 0 || len < sizeof(ending) || strcmp(value, "probe") == 0 ||
        strcmp(name + len - (sizeof(ending) - 1), ending) != 0 || access(value, R_OK) == 0) {
        return true;
    }
    (void)err_errno(err, errno, "sinks.kafka.properties.%s: %s", name, value);
    err->code = ERR_INVALID;
    return false;
}

/* A value may name a file or an environment variable: passwords stand there. */
static bool set_secret(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
    CLEANUP(arena_clear) struct arena a;
    const char *meant;

    arena_init(&a, SECRET_BYTES);
    if (!config_secret(value, &a, &meant, err)) {
        return err_wrap(err, "sinks.kafka.properties.%s", name);
    }
    if (!kafka_property_check(name, meant, err)) {
        return err_wrap(err, "sinks.kafka.properties.%s", name);
    }
    return is_readable(name, meant, err) && set_one(conf, name, meant, err);
}

static bool set_properties(rd_kafka_conf_t *conf, json_t *properties, struct err *err)
{
    const char *name;
    json_t *v;

    json_object_foreach(properties, name, v)
    {
        char space[32];
        const char *value = text_of(v, space, sizeof(space));

        if (!value) {
            return err_set(err, ERR_INVALID, "sinks.kafka.properties.%s: want a plain value", name);
        }
        if (!set_secret(conf, name, value, err)) {
            return false;
        }
    }
    return true;
}

/* Over what the user says, hence only what hooktrail.yaml(5) tells to be ours. */
static bool set_ours(rd_kafka_conf_t *conf, const char *const *extra, struct err *err)
{
    for (; *extra; extra += 2) {
        assert(kafka_property_find(extra[0]));
        if (!set_one(conf, extra[0], extra[1], err)) {
            return false;
        }
    }
    return true;
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk;
    (void)level;
    log_debug("librdkafka", log_str("facility", facility), log_str("text", text));
}

bool kafka_conf_new(const struct kafka_settings *set, const char *const *extra,
                    rd_kafka_conf_t **ret, struct err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool ok = set_one(conf, "client.id", "hooktrail", err) &&
              set_one(conf, "reconnect.backoff.max.ms", RECONNECT_MS, err) &&
              set_properties(conf, set->properties, err) && set_ours(conf, extra, err);

    if (!ok) {
        rd_kafka_conf_destroy(conf);
        return false;
    }
    rd_kafka_conf_set_log_cb(conf, on_log);
    *ret = conf;
    return true;
}

rd_kafka_t *kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct err *err)
{
    char text[200];
    rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof(text));

    if (!rk) {
        rd_kafka_conf_destroy(conf);
        (void)err_set(err, ERR_INVALID, "kafka: %s%s", text,
                      strncmp(text, "ssl.key", 7) == 0
                          ? "; ssl.key.password of sinks.kafka.properties must be the key's"
                          : "");
    }
    return rk;
}
