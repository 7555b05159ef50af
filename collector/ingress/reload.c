#include "collector/ingress/reload.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/config_diff.h"
#include "collector/base/log.h"
#include "collector/dispatcher/hookset.h"

struct named {
    const char *name;
    struct config_contract where;
};

enum { CONTRACTS = 3, KEYS_BYTES = 4096 };

static void contracts_of(const struct config *c, struct named ret[CONTRACTS])
{
    ret[0] = (struct named){ "sre", c->sre };
    ret[1] = (struct named){ "oscova", c->oscova };
    ret[2] = (struct named){ "deputyos", c->deputyos };
}

static void record_registry(struct recorder *recorder, const struct hookset *set)
{
    struct err err;

    if (!recorder_registry(recorder, set, &err)) {
        log_warn("hook set not recorded; it is in force all the same",
                 log_str("contract", set->ops->name), log_str("err", err.text));
    }
}

static void load_one(const struct config *c, const struct named *n, struct sets *sets,
                     struct recorder *recorder, struct faults *faults, size_t *changed)
{
    char scripts[PATH_MAX];
    const struct contract_ops *ops = contract_find(slice_from_cstr(n->name));
    struct hook_source src = {
        .path = n->where.hooks,
        .secrets_path = n->where.secrets,
        .script_dir = scripts,
    };

    (void)snprintf(scripts, sizeof(scripts), "%s/scripts", c->state);
    if (!ops) {
        faults_add(faults, FAULT_ERROR, c->file, 0, "contracts", "%s: this program has %s", n->name,
                   contract_names());
        return;
    }

    struct hookset *set = hookset_load(ops, &src, faults);

    if (!set) {
        return;
    }

    struct hookset *held = hookset_ref(set);

    if (sets_put(sets, set)) {
        (*changed)++;
        if (recorder) {
            record_registry(recorder, held);
        }
    }
    hookset_unref(held);
}

bool reload_hooks(const struct config *c, struct sets *sets, struct recorder *recorder,
                  struct faults *faults, size_t *ret_changed)
{
    struct named contracts[CONTRACTS];
    size_t before = faults->errors;
    size_t changed = 0;

    contracts_of(c, contracts);
    for (size_t i = 0; i < CONTRACTS; i++) {
        if (contracts[i].where.hooks) {
            load_one(c, &contracts[i], sets, recorder, faults, &changed);
        } else {
            changed += sets_drop(sets, slice_from_cstr(contracts[i].name));
        }
    }
    *ret_changed = changed;
    return faults->errors == before;
}

void reload_record_all(struct sets *sets, struct recorder *recorder)
{
    for (size_t i = 0; i < SETS_MAX && sets->list[i]; i++) {
        record_registry(recorder, sets->list[i]);
    }
}

static void log_faults(const struct faults *faults)
{
    for (const struct fault *f = faults->first; f; f = f->next) {
        if (f->level == FAULT_ERROR) {
            log_error("fault; what was in force stays", log_str("file", f->file),
                      log_i64("line", (int64_t)f->line), log_str("key", f->key),
                      log_str("text", f->text));
        } else {
            log_warn("unlikely to be meant", log_str("file", f->file),
                     log_i64("line", (int64_t)f->line), log_str("key", f->key),
                     log_str("text", f->text));
        }
    }
}

/* What collect takes from a new configuration while it runs; of its other keys it is told. */
static bool needs_restart(const char *key)
{
    static const char *const live[] = { "collect.on_unrecorded", "collect.record_wait_ms",
                                        "collect.left_behind",   "collect.capture_payload",
                                        "journal.keep_hours",    "journal.quota_mb",
                                        "journal.when_full" };
    static const char *const others[] = { "contracts.", "sinks.", "serve." };

    for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
        if (strcmp(key, live[i]) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strncmp(key, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return true;
}

static void tell_restart(const struct config *started, const struct config *new)
{
    CLEANUP(buf_done) struct buf keys;

    buf_init(&keys, KEYS_BYTES);
    if (config_diff(started, new, needs_restart, &keys) > 0) {
        log_warn("changed keys that need a restart of collect",
                 log_slice("keys", buf_slice(&keys)));
    }
}

static void keep_first_error(const struct faults *faults, struct reload *ret)
{
    const struct fault *f = faults->first;

    while (f && f->level != FAULT_ERROR) {
        f = f->next;
    }
    if (f) {
        (void)snprintf(ret->error, sizeof(ret->error), "%s:%zu: %s%s%s", f->file ? f->file : "",
                       f->line, f->key ? f->key : "", f->key ? ": " : "", f->text ? f->text : "");
    }
}

static void record(struct recorder *recorder, const struct faults *faults, size_t changed)
{
    char actor[32];
    char details[96];
    struct err err;

    (void)snprintf(actor, sizeof(actor), "uid %u", (unsigned)geteuid());
    (void)snprintf(details, sizeof(details), "{\"hook_sets_changed\":%zu,\"faults\":%zu}", changed,
                   faults->errors);
    if (!recorder_admin(recorder, "reload", actor, slice_from_cstr(details), &err)) {
        log_warn("reload not recorded", log_str("err", err.text));
    }
}

void reload_run(const struct config_options *o, const struct config *started, struct sets *sets,
                struct recorder *recorder, struct reload *ret)
{
    CLEANUP(faults_done) struct faults faults;

    *ret = (struct reload){ 0 };
    faults_init(&faults);
    ret->config = config_load(o, &faults);
    if (ret->config) {
        (void)reload_hooks(ret->config, sets, recorder, &faults, &ret->hook_sets_changed);
        tell_restart(started, ret->config);
    }
    ret->faults = faults.errors;
    keep_first_error(&faults, ret);
    log_faults(&faults);
    record(recorder, &faults, ret->hook_sets_changed);
    if (!ret->config) {
        log_error("configuration not taken, the old one stays in force");
        return;
    }
    if (faults.errors > 0) {
        log_warn(
            "configuration reloaded, but for the hooks with faults: their old set stays in force",
            log_i64("hook_sets_changed", (int64_t)ret->hook_sets_changed),
            log_i64("faults", (int64_t)faults.errors));
    } else {
        log_info("configuration reloaded",
                 log_i64("hook_sets_changed", (int64_t)ret->hook_sets_changed));
    }
}
