/*
 * rollup: counts by the minute, gathered over a batch before they are written.
 *
 * A batch of ten thousand records touches a few hundred minute rows: each is
 * counted here, and written once, in the transaction of its records.
 * Thread: one.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/err.h"
#include "collector/record/record.h"
#include "collector/sql/histogram.h"

enum { ROLLUP_NAME_CHARS = 100 }; /* of a name; longer ones that begin alike are counted together */

/* What is counted together. Texts are "" where they do not apply. */
struct rollup_key {
    int64_t minute; /* since 1970 UTC */
    bool of_hook;   /* hook_minute; else evaluation_minute, without the last four texts */
    struct slice contract;
    struct slice hook_event_type;
    struct slice tool_name;
    struct slice decision;
    struct slice hook_name;
    struct slice tier;
    struct slice skip_reason;
    struct slice cause;
};

struct rollup_row {
    struct rollup_key key;
    uint64_t hash;
    int64_t n;
    int64_t duration_us; /* sum, over those that have a duration */
    int64_t duration_max_us;
    int64_t buckets[HISTOGRAM_BUCKETS];
};

struct rollup {
    int64_t first_us, last_us; /* what is outside is counted in the minute of the nearer one */
    struct arena arena;        /* the texts of keys */
    struct rollup_row *rows;   /* owned, n_rows of them, in order of appearance */
    size_t n_rows;
    size_t cap_rows;
    uint32_t *slots; /* owned: index into rows plus 1, by hash; a power of two of them */
    size_t n_slots;
};

/*
 * Empty, with room for every time; rollup_done() releases it. rollup_clear() forgets the
 * counts, keeps the memory.
 */
void rollup_init(struct rollup *r);
void rollup_done(struct rollup *r);
void rollup_clear(struct rollup *r);

/* Count a chain and every hook it considered. False when a batch has too many different keys. */
bool rollup_count(struct rollup *r, const struct evaluation *e, struct err *err) MUST_CHECK;
