#include "collector/base/config_schema.h"

/* Each names its key, and its field in struct config where it has one (IN). */
#define IN(member) .field = (ptrdiff_t)offsetof(struct config, member) + 1
#define NUMBER(name, standard, least, most, ...)                                                  \
    {                                                                                             \
        .key = name, .kind = SETTING_NUMBER, .number = (standard), .min = (least), .max = (most), \
        __VA_ARGS__                                                                               \
    }
#define SWITCH(name, off, on, ...)                                             \
    {                                                                          \
        .key = name, .kind = SETTING_SWITCH, .words = { off, on }, __VA_ARGS__ \
    }
#define WORD(name, first, second, ...)                                             \
    {                                                                              \
        .key = name, .kind = SETTING_WORD, .words = { first, second }, __VA_ARGS__ \
    }
#define SETTING(name, type, ...)                         \
    {                                                    \
        .key = name, .kind = SETTING_##type, __VA_ARGS__ \
    }

enum { MIB = 1024 * 1024 };

static const struct setting collect[] = {
    SETTING("listen", LISTENERS, IN(collect.listen), .text = "unix"),
    SWITCH("durability", "fsync", "write", IN(collect.durability_write)),
    SWITCH("on_unrecorded", "continue", "deny", IN(collect.on_unrecorded_deny)),
    NUMBER("record_wait_ms", 250, 1, 60000, IN(collect.record_wait_ms)),
    NUMBER("workers", 64, 1, 1024, IN(collect.workers)),
    NUMBER("queue", 1024, 1, 100000, IN(collect.queue)),
    NUMBER("output_budget_mb", 64, 1, 4096, IN(collect.output_budget_bytes), .unit = MIB),
    SWITCH("left_behind", "keep", "end", IN(collect.left_behind_end)),
    SETTING("capture_payload", FLAG, IN(collect.capture_payload)),
    SETTING("socket_group", TEXT, IN(collect.socket_group)),
    SETTING("tls_cert", PATH, IN(collect.tls_cert)),
    SETTING("tls_key", PATH, IN(collect.tls_key)),
    SETTING("hosts", TEXTS, IN(collect.hosts)),
    NUMBER("max_body_mb", 16, 1, 256, IN(collect.max_body_bytes), .unit = MIB),
};

static const struct setting journal[] = {
    NUMBER("keep_hours", 24, 0, 87600, IN(journal.keep_hours)),
    NUMBER("quota_mb", 4096, 8, INT64_C(64) * MIB, IN(journal.quota_mb)),
    NUMBER("segment_mb", 64, 1, 1024, IN(journal.segment_mb)),
    SWITCH("when_full", "block", "drop_new", IN(journal.when_full_drop)),
    NUMBER("checkpoint_s", 60, 1, 3600, IN(journal.checkpoint_s)),
};

static const struct setting serve[] = {
    SETTING("listen", LISTENERS, IN(serve.listen), .text = "tcp:127.0.0.1:8417"),
    WORD("store", "sqlite", "postgres", IN(serve.store)),
    SETTING("socket_group", TEXT, IN(serve.socket_group)),
    SETTING("tls_cert", PATH, IN(serve.tls_cert)),
    SETTING("tls_key", PATH, IN(serve.tls_key)),
    SETTING("hosts", TEXTS, IN(serve.hosts)),
    NUMBER("query_timeout_ms", 10000, 100, 600000, IN(serve.query_timeout_ms)),
    NUMBER("max_rows", 10000, 1, 1000000, IN(serve.max_rows)),
};

static const struct setting sre[] = {
    SETTING("hooks", PATH, IN(sre.hooks), .required = true),
};
static const struct setting oscova[] = {
    SETTING("handlers", PATH, IN(oscova.hooks), .required = true),
    SETTING("secrets", PATH, IN(oscova.secrets)),
};
static const struct setting deputyos[] = {
    SETTING("hooks", PATH, IN(deputyos.hooks), .required = true),
};

/* What every sink has: how long one of its answers may take (sinks/sink.h). */
#define TIMEOUT NUMBER("timeout_ms", 10000, 100, 600000)
#define RETENTION NUMBER("retention_days", 90, 1, 36500)

static const struct setting sqlite[] = {
    SETTING("path", PATH, .text = "STATE/hooktrail.db"),
    RETENTION,
    TIMEOUT,
};
static const struct setting postgres[] = {
    SETTING("dsn", SECRET, .required = true),
    RETENTION,
    TIMEOUT,
};
static const struct setting kafka[] = {
    SETTING("properties", OPTIONS, .required = true),
    WORD("delivery", "at-least-once", "exactly-once"),
    SETTING("topic_prefix", TEXT, .text = "hooktrail"),
    SETTING("create_topics", FLAG, .number = 1),
    NUMBER("partitions", 3, 1, 10000),
    NUMBER("replication", 0, 0, 100),      /* 0: as the broker does by default */
    NUMBER("batch_records", 0, 0, 100000), /* 0: as suits the delivery (sinks/kafka*.c) */
    SETTING("group", TEXT, .text = "hooktrail-loader"),
    TIMEOUT,
};
static const struct setting null[] = {
    TIMEOUT,
};

#define SECTION(word, table)                                                         \
    {                                                                                \
        .name = (word), .settings = (table), .n = sizeof(table) / sizeof((table)[0]) \
    }

const struct section config_collect = SECTION("collect", collect);
const struct section config_journal = SECTION("journal", journal);
const struct section config_serve = SECTION("serve", serve);
const struct section config_contracts[3] = {
    SECTION("sre", sre),
    SECTION("oscova", oscova),
    SECTION("deputyos", deputyos),
};
const struct section config_sinks[4] = {
    SECTION("sqlite", sqlite),
    SECTION("postgres", postgres),
    SECTION("kafka", kafka),
    SECTION("null", null),
};
