#include "collector/journal/losses.h"

#include <string.h>

/* The entry of a cause, made when there is none; the last one when the list is full. */
static struct loss *entry_of(struct losses *l, const char *cause, bool unknown)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->list[i].unknown == unknown && strcmp(l->list[i].cause, cause) == 0) {
            return &l->list[i];
        }
    }
    if (l->n == LOSSES_CAUSES) {
        return &l->list[LOSSES_CAUSES - 1];
    }

    struct loss *one = &l->list[l->n++];
    size_t n = strlen(cause);

    *one = (struct loss){ .unknown = unknown };
    n = n < LOSSES_CAUSE_SIZE ? n : LOSSES_CAUSE_SIZE - 1;
    memcpy(one->cause, cause, n);
    return one;
}

/* Records are told in 63 bits. */
static uint64_t add(uint64_t a, uint64_t b)
{
    return a > INT64_MAX - (b < INT64_MAX ? b : INT64_MAX) ? INT64_MAX : a + b;
}

void losses_add(struct losses *l, uint64_t n, const char *cause, int64_t now_us)
{
    struct loss *one = entry_of(l, cause, n == 0);

    one->first_us = one->first_us == 0 ? now_us : one->first_us;
    one->last_us = now_us;
    one->count = add(one->count, n);
    l->total += n;
}

bool losses_any(const struct losses *l)
{
    return l->n > 0;
}

void losses_told(struct losses *l, const struct loss *told)
{
    for (size_t i = 0; i < l->n; i++) {
        struct loss *one = &l->list[i];

        if (one->unknown != told->unknown || strcmp(one->cause, told->cause) != 0) {
            continue;
        }
        one->count -= told->count;
        one->first_us = told->last_us;
        if (one->count == 0) {
            *one = l->list[--l->n];
        }
        return;
    }
}

void losses_encode(const struct loss *l, const char *collector, int64_t now_us, struct buf *out)
{
    struct id id = id_new();
    struct gap gap = {
        .head = { .id = id_slice(&id), .collector = slice_from_cstr(collector), .time_us = now_us },
        .known = !l->unknown,
        .lost = l->count,
        .cause = slice_from_cstr(l->cause),
        .first_us = l->first_us,
        .last_us = l->last_us,
    };

    encode_gap(&gap, out);
}

void losses_save(const struct losses *l, struct mark *m)
{
    struct mark_losses sum = {
        .gap_seq = l->gap_seq,
        .gap_count = l->gap_count,
        .owed = l->owed,
        .owed_seq = l->owed_seq,
        .owed_count = l->owed_count,
    };

    for (size_t i = 0; i < l->n; i++) {
        const struct loss *one = &l->list[i];

        sum.count = add(sum.count, one->count);
        sum.first_us =
            sum.first_us == 0 || one->first_us < sum.first_us ? one->first_us : sum.first_us;
        sum.last_us = one->last_us > sum.last_us ? one->last_us : sum.last_us;
        memcpy(sum.cause, one->cause, sizeof(sum.cause));
    }
    mark_set_losses(m, &sum);
}

static uint64_t less(uint64_t n, uint64_t by)
{
    return n - (by < n ? by : n);
}

/* Of `count` records that were being written from first_seq on, those that are there. */
static uint64_t stored_of(uint64_t count, uint64_t first_seq, uint64_t last_seq)
{
    uint64_t there = less(last_seq + 1, first_seq);

    return there < count ? there : count;
}

static bool is_word(const char *cause)
{
    return cause[0] != '\0' && strspn(cause, "abcdefghijklmnopqrstuvwxyz_") == strlen(cause);
}

static void load(struct losses *l, uint64_t n, const char *cause, int64_t first_us, int64_t last_us)
{
    if (n > 0) {
        struct loss *one = entry_of(l, cause, false);

        one->first_us = first_us;
        one->last_us = last_us;
        one->count = add(one->count, n);
    }
}

void losses_load(struct losses *l, const struct mark *m, uint64_t last_seq, int64_t now_us)
{
    struct mark_losses sum;

    mark_get_losses(m, &sum);
    load(l, less(sum.count, sum.gap_seq <= last_seq ? sum.gap_count : 0),
         is_word(sum.cause) ? sum.cause : "unknown", sum.first_us, sum.last_us);
    load(l, less(sum.owed, stored_of(sum.owed_count, sum.owed_seq, last_seq)), "interrupted",
         now_us, now_us);
}
