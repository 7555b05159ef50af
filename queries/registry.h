/*
 * registry: which hooks were configured, as the hook_registry records tell.
 *
 * An evaluation names the digest of the hook set that was in force; the registry
 * records of that digest hold each hook's definition (without script text), in
 * one part or several. The same set may have been loaded many times.
 */
#pragma once

#include "collector/base/arena.h"
#include "queries/store.h"

/*
 * One hook as it was configured, from what contracts write of it: name, tier, agent,
 * events, type, matcher, sources, activation_mode. Slices in the arena, empty
 * where the definition is silent; of a list, its items with commas between.
 */
struct definition {
    struct slice name; /* NUL-terminated */
    struct slice tier;
    struct slice agent; /* to whom it belongs, of tier agent */
    struct slice events;
    struct slice type;
    struct slice matcher;
    struct slice sources;
    struct slice activation; /* always, onDemand */
};

/* One loading of one set. */
struct registry {
    struct slice record_id; /* of its first part */
    struct slice digest;
    struct slice contract;
    int64_t time_us;
    struct definition *hooks;
    size_t n;
};

struct registries {
    struct registry *items; /* newest first; parts that were loaded together are one */
    size_t n;
};

enum { REGISTRY_RECORDS = 200 }; /* how far back the search for a hook goes */

/* The loadings of one set (digest), or of every set (empty digest). */
bool registries_load(struct store *s, struct slice contract, struct slice digest, struct arena *a,
                     struct registries *ret, struct err *err) MUST_CHECK;

/* The hook of that name; NULL when the set has none. Of several, the first. */
const struct definition *registry_find(const struct registry *r, struct slice name);

/* True when the definition listens to the event; names compare without case, as when loaded. */
bool definition_hears(const struct definition *d, struct slice event);
