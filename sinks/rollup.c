#include "sinks/rollup.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/base/utf8.h"

enum {
    FIRST_SLOTS = 256,
    TEXT_LIMIT_BYTES = 32 * 1024 * 1024, /* a batch is smaller than that */
    US_PER_MINUTE = 60 * 1000 * 1000,
};

void rollup_init(struct rollup *r)
{
    *r = (struct rollup){ .first_us = INT64_MIN, .last_us = INT64_MAX, .n_slots = FIRST_SLOTS };
    arena_init(&r->arena, TEXT_LIMIT_BYTES);
    r->slots = xcalloc(r->n_slots, sizeof(*r->slots));
}

void rollup_done(struct rollup *r)
{
    arena_clear(&r->arena);
    free(r->rows);
    free(r->slots);
    *r = (struct rollup){ 0 };
}

void rollup_clear(struct rollup *r)
{
    arena_reset(&r->arena);
    memset(r->slots, 0, r->n_slots * sizeof(*r->slots));
    r->n_rows = 0;
}

enum { KEY_TEXTS = 8 };

/* A key's texts, in one order for hashing, comparing and copying. */
static void texts_of(struct rollup_key *k, struct slice *ret[KEY_TEXTS])
{
    ret[0] = &k->contract;
    ret[1] = &k->hook_event_type;
    ret[2] = &k->tool_name;
    ret[3] = &k->decision;
    ret[4] = &k->hook_name;
    ret[5] = &k->tier;
    ret[6] = &k->skip_reason;
    ret[7] = &k->cause;
}

/* FNV-1a; a zero between texts keeps "ab"+"c" from "a"+"bc". */
static uint64_t hash_text(uint64_t hash, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.ptr[i]) * 0x100000001b3U;
    }
    return hash * 0x100000001b3U;
}

static uint64_t hash_key(struct rollup_key *k)
{
    struct slice *texts[KEY_TEXTS];
    uint64_t hash = 0xcbf29ce484222325U ^ (uint64_t)k->minute ^ (k->of_hook ? 1U << 31 : 0);

    texts_of(k, texts);
    for (size_t i = 0; i < KEY_TEXTS; i++) {
        hash = hash_text(hash, *texts[i]);
    }
    return hash ^ hash >> 32;
}

static bool same_key(struct rollup_key *a, struct rollup_key *b)
{
    struct slice *of_a[KEY_TEXTS];
    struct slice *of_b[KEY_TEXTS];

    if (a->minute != b->minute || a->of_hook != b->of_hook) {
        return false;
    }
    texts_of(a, of_a);
    texts_of(b, of_b);
    for (size_t i = 0; i < KEY_TEXTS; i++) {
        if (!slice_equal(*of_a[i], *of_b[i])) {
            return false;
        }
    }
    return true;
}

/* Where the key's row is, or is to be. */
static uint32_t *find_slot(struct rollup *r, struct rollup_key *k, uint64_t hash)
{
    size_t i = hash & (r->n_slots - 1);

    while (r->slots[i] != 0) {
        struct rollup_row *row = &r->rows[r->slots[i] - 1];

        if (row->hash == hash && same_key(&row->key, k)) {
            break;
        }
        i = (i + 1) & (r->n_slots - 1);
    }
    return &r->slots[i];
}

static void grow_slots(struct rollup *r)
{
    free(r->slots);
    r->n_slots *= 2;
    r->slots = xcalloc(r->n_slots, sizeof(*r->slots));
    for (size_t row = 0; row < r->n_rows; row++) {
        size_t i = r->rows[row].hash & (r->n_slots - 1);

        while (r->slots[i] != 0) {
            i = (i + 1) & (r->n_slots - 1);
        }
        r->slots[i] = (uint32_t)row + 1;
    }
}

static struct rollup_row *add_row(struct rollup *r, const struct rollup_key *k, uint64_t hash)
{
    struct rollup_row row = { .key = *k, .hash = hash };
    struct slice *texts[KEY_TEXTS];

    texts_of(&row.key, texts);
    for (size_t i = 0; i < KEY_TEXTS; i++) {
        if (!arena_dup(&r->arena, *texts[i], texts[i])) {
            return NULL;
        }
    }
    if (r->n_rows == r->cap_rows) {
        r->cap_rows = r->cap_rows ? r->cap_rows * 2 : FIRST_SLOTS;
        r->rows = xrealloc(r->rows, r->cap_rows * sizeof(*r->rows));
    }
    r->rows[r->n_rows] = row;
    return &r->rows[r->n_rows++];
}

/* The row of a key, made where there is none; NULL at the arena's limit. */
static struct rollup_row *row_of(struct rollup *r, struct rollup_key *k)
{
    uint64_t hash = hash_key(k);

    if (r->n_rows * 2 >= r->n_slots) {
        grow_slots(r);
    }

    uint32_t *slot = find_slot(r, k, hash);

    if (*slot != 0) {
        return &r->rows[*slot - 1];
    }

    struct rollup_row *row = add_row(r, k, hash);

    if (row) {
        *slot = (uint32_t)r->n_rows;
    }
    return row;
}

/* What a host sends may be anything: one row's sum must not pass what a database can hold. */
static int64_t within_a_day(int64_t duration_us)
{
    if (duration_us < 0) {
        return 0;
    }
    return duration_us < CLOCK_DAY_US ? duration_us : CLOCK_DAY_US;
}

static bool count(struct rollup *r, struct rollup_key *k, bool timed, int64_t given_us,
                  struct err *err)
{
    int64_t duration_us = within_a_day(given_us);
    struct rollup_row *row = row_of(r, k);

    if (!row) {
        return err_set(err, ERR_TOO_BIG, "too many different names to count in one batch");
    }
    row->n++;
    if (timed) {
        row->duration_us += duration_us;
        row->buckets[histogram_bucket(duration_us)]++;
        if (duration_us > row->duration_max_us) {
            row->duration_max_us = duration_us;
        }
    }
    return true;
}

/* A database's index takes some 2,700 bytes of all names together, and hosts send longer ones. */
static struct slice short_name(struct slice name)
{
    return name.len > ROLLUP_NAME_CHARS ? utf8_prefix(name, ROLLUP_NAME_CHARS) : name;
}

static int64_t minute_of(const struct rollup *r, int64_t time_us)
{
    if (time_us < r->first_us) {
        time_us = r->first_us;
    }
    return (time_us > r->last_us ? r->last_us : time_us) / US_PER_MINUTE;
}

bool rollup_count(struct rollup *r, const struct evaluation *e, struct err *err)
{
    struct rollup_key k = {
        .minute = minute_of(r, e->head.time_us),
        .contract = short_name(e->contract),
        .hook_event_type = short_name(e->hook_event_type),
        .tool_name = short_name(e->tool_name),
        .decision = slice_from_cstr(decision_name(e->final_decision)),
    };
    bool counted = count(r, &k, true, e->duration_us, err);

    k.of_hook = true;
    for (size_t i = 0; counted && i < e->n_hooks; i++) {
        const struct execution *h = &e->hooks[i];

        k.hook_name = short_name(h->hook_name);
        k.tier = slice_from_cstr(tier_name(h->tier));
        k.decision = slice_from_cstr(decision_name(h->decision));
        k.skip_reason = slice_from_cstr(skip_reason_name(h->skip_reason));
        k.cause = slice_from_cstr(cause_name(h->cause));
        counted = count(r, &k, h->decision != DECISION_SKIPPED, h->duration_us, err);
    }
    return counted;
}
