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

void losses_add(struct losses *l, uint64_t n, const char *cause, int64_t now_us)
{
    struct loss *one = entry_of(l, cause, n == 0);

    one->first_us = one->first_us == 0 ? now_us : one->first_us;
    one->last_us = now_us;
    one->count += n;
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

void losses_save(const struct losses *l, uint64_t gap_seq, uint64_t gap_count, struct mark *m)
{
    struct mark_losses sum = { .gap_seq = gap_seq, .gap_count = gap_count };

    for (size_t i = 0; i < l->n; i++) {
        const struct loss *one = &l->list[i];

        sum.count += one->count;
        sum.first_us =
            sum.first_us == 0 || one->first_us < sum.first_us ? one->first_us : sum.first_us;
        sum.last_us = one->last_us > sum.last_us ? one->last_us : sum.last_us;
        memcpy(sum.cause, one->cause, sizeof(sum.cause));
    }
    mark_set_losses(m, &sum);
}

void losses_load(struct losses *l, const struct mark *m, uint64_t last_seq)
{
    struct mark_losses sum;

    mark_get_losses(m, &sum);
    if (sum.gap_count > 0 && sum.gap_seq <= last_seq) { /* that gap record was stored */
        sum.count -= sum.gap_count < sum.count ? sum.gap_count : sum.count;
    }
    if (sum.count > 0) {
        struct loss *one = entry_of(l, sum.cause[0] ? sum.cause : "unknown", false);

        one->first_us = sum.first_us;
        one->last_us = sum.last_us;
        one->count += sum.count;
    }
}
