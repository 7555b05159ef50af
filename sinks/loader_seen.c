#include "sinks/loader_seen.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

/* Where seq is, or belongs. */
static size_t place_of(const struct loader_seen *s, uint64_t seq)
{
    size_t low = 0;
    size_t high = s->n;

    if (s->n > 0 && s->list[s->n - 1] < seq) {
        return s->n;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->list[middle] < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool loader_seen_has(const struct loader_seen *s, uint64_t seq)
{
    size_t at = place_of(s, seq);

    return at < s->n && s->list[at] == seq;
}

void loader_seen_add(struct loader_seen *s, uint64_t seq)
{
    size_t at = place_of(s, seq);

    if (at < s->n && s->list[at] == seq) {
        return;
    }
    if (s->n == s->cap) {
        s->cap = s->cap > 0 ? s->cap * 2 : 64;
        s->list = xrealloc(s->list, s->cap * sizeof(*s->list));
    }
    memmove(&s->list[at + 1], &s->list[at], (s->n - at) * sizeof(*s->list));
    s->list[at] = seq;
    s->n++;
}

void loader_seen_done(struct loader_seen *s)
{
    free(s->list);
    *s = (struct loader_seen){ 0 };
}
