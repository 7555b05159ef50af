#include "sinks/loader_known.h"

#include <stdlib.h>

#include "collector/base/mem.h"

enum { FIRST_SLOTS = 64 };

struct loader_number {
    uint64_t seq; /* 0: the slot is empty */
    struct digest leaf;
};

/* Where to look first; the factor spreads runs of numbers (2^64 by the golden ratio). */
static size_t slot_of(const struct loader_known *k, uint64_t seq)
{
    return (size_t)(seq * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (k->cap - 1);
}

static size_t next_slot(const struct loader_known *k, size_t at)
{
    return (at + 1) & (k->cap - 1);
}

enum loader_number_is loader_known_as(const struct loader_known *k, uint64_t seq,
                                      const struct digest *leaf)
{
    enum loader_number_is is = LOADER_NUMBER_FREE;

    if (k->cap == 0) {
        return is;
    }
    for (size_t at = slot_of(k, seq); k->slots[at].seq > 0; at = next_slot(k, at)) {
        if (k->slots[at].seq != seq) {
            continue;
        }
        if (digest_equal(&k->slots[at].leaf, leaf)) {
            return LOADER_NUMBER_ITS;
        }
        is = LOADER_NUMBER_ANOTHER;
    }
    return is;
}

static void put(struct loader_known *k, const struct loader_number *number)
{
    size_t at = slot_of(k, number->seq);

    while (k->slots[at].seq > 0) {
        at = next_slot(k, at);
    }
    k->slots[at] = *number;
    k->n++;
}

static void grow(struct loader_known *k)
{
    struct loader_known larger = { .cap = k->cap > 0 ? k->cap * 2 : FIRST_SLOTS };

    larger.slots = xcalloc(larger.cap, sizeof(*larger.slots));
    for (size_t i = 0; i < k->cap; i++) {
        if (k->slots[i].seq > 0) {
            put(&larger, &k->slots[i]);
        }
    }
    loader_known_done(k);
    *k = larger;
}

void loader_known_add(struct loader_known *k, uint64_t seq, const struct digest *leaf)
{
    if (loader_known_as(k, seq, leaf) == LOADER_NUMBER_ITS) {
        return;
    }
    if (k->n + 1 > k->cap / 2) {
        grow(k);
    }
    put(k, &(const struct loader_number){ .seq = seq, .leaf = *leaf });
}

void loader_known_done(struct loader_known *k)
{
    free(k->slots);
    *k = (struct loader_known){ 0 };
}
