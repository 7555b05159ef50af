/*
 * reload: the hook sets that a configuration names, loaded and put in force.
 *
 * At start a fault refuses. Later, on SIGHUP, it is reported and the contract's
 * former set stays in force.
 * Thread: the role's main thread.
 */
#pragma once

#include "collector/base/config.h"
#include "collector/ingress/sets.h"
#include "collector/recorder/recorder.h"

/*
 * Load the set of each configured contract and put it in force; sets of contracts
 * that are no longer configured are dropped. False when there was a fault: what
 * has none is in force all the same. *ret_changed counts sets that are new.
 * `recorder` (may be NULL) gets a registry record of each new set.
 */
bool reload_hooks(const struct config *c, struct sets *sets, struct recorder *recorder,
                  struct faults *faults, size_t *ret_changed);

/* Record the registries of all sets in force. */
void reload_record_all(struct sets *sets, struct recorder *recorder);

/* How a reload went, for whoever tells of it. */
struct reload {
    struct config *config; /* the new one, owned; NULL: it has faults, the old one holds */
    size_t hook_sets_changed;
    size_t faults;
    char error[ERR_TEXT_SIZE]; /* the first fault, "FILE:LINE: KEY: …"; "" when there is none */
};

/*
 * What SIGHUP does to hooks: read the configuration again, load its hooks, record and log
 * it, and log which keys that changed since `started` need a restart.
 */
void reload_run(const struct config_options *o, const struct config *started, struct sets *sets,
                struct recorder *recorder, struct reload *ret);
