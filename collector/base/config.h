/*
 * config: hooktrail.yaml, checked, with defaults filled in (design: Configuration).
 *
 * Every key is optional. An unknown key, a wrong type or a value out of range is
 * a fault with file, line and key; so is a path or listener that cannot be meant.
 * Where a value comes from (the default, the file, an option) is remembered.
 * Immutable once loaded; a reload makes a new one.
 */
#pragma once

#include <jansson.h>

#include "collector/base/err.h"
#include "collector/base/fault.h"

enum { CONFIG_LIST_MAX = 16 }; /* listeners, hosts */

struct config_contract {
    const char *hooks;   /* file or folder; NULL: this contract is not configured */
    const char *secrets; /* NULL: none */
};

struct config {
    struct arena arena; /* holds everything below */
    const char *file;   /* the path that was read; NULL: there was none, all defaults */

    const char *state;     /* absolute */
    const char *collector; /* default: the host's name */
    struct config_contract sre, oscova, deputyos;

    struct {
        const char *listen[CONFIG_LIST_MAX + 1]; /* resolved: "unix:/abs/path", "tcp:HOST:PORT" */
        bool durability_write;                   /* false: fsync */
        bool on_unrecorded_deny;
        int64_t record_wait_ms;
        int64_t workers;
        int64_t queue;               /* dispatches that wait for a worker */
        int64_t output_budget_bytes; /* of all running hooks together */
        bool left_behind_end;
        bool capture_payload;
        const char *socket_group; /* NULL: none */
        const char *tls_cert;
        const char *tls_key;
        const char *hosts[CONFIG_LIST_MAX + 1];
        int64_t max_body_bytes;
    } collect;

    struct {
        int64_t keep_hours;
        int64_t quota_mb;
        int64_t segment_mb;
        bool when_full_drop;
        int64_t checkpoint_s;
    } journal;

    /* Configured sinks, at least one, in the order of the file; without the key, "sqlite" alone. */
    struct config_sink {
        const char *name;       /* sqlite, postgres, kafka, null */
        const json_t *settings; /* its mapping, checked, defaults filled in */
    } sinks[CONFIG_LIST_MAX];
    size_t n_sinks;

    struct {
        const char *listen[CONFIG_LIST_MAX + 1];
        const char *store; /* sqlite, postgres */
        const char *socket_group;
        const char *tls_cert;
        const char *tls_key;
        const char *hosts[CONFIG_LIST_MAX + 1];
        int64_t query_timeout_ms;
        int64_t max_rows;
    } serve;

    json_t *values;  /* owned: the effective configuration, with its secrets */
    json_t *tree;    /* owned: the same for people, passwords replaced by "***" */
    json_t *origins; /* owned: the same shape, each leaf "default", "FILE:LINE" or "--state" */
};

struct config_options {
    const char *file;  /* --config; NULL: $HOOKTRAIL_CONFIG, ./hooktrail.yaml,
                          /etc/hooktrail/hooktrail.yaml */
    const char *state; /* --state; NULL: the file's, else the default */
};

/* Load. NULL after errors, which are in *faults. Release with config_free(). */
struct config *config_load(const struct config_options *o, struct faults *faults) MUST_CHECK;
void config_free(struct config *c); /* accepts NULL */

/* The sink of that name; NULL: it is not configured. */
const struct config_sink *config_find_sink(const struct config *c, const char *name);

/* Does a secret setting only say where the secret is? Then it may be shown. */
bool config_is_reference(const char *value);

/*
 * What a secret setting means: "env:NAME" and "file:PATH" are looked up, anything
 * else is itself. The result is in the arena; it is never logged or printed.
 */
bool config_secret(const char *value, struct arena *a, const char **ret, struct err *err)
    MUST_CHECK;
