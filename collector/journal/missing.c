#include "collector/journal/missing.h"

struct missing missing_before(const struct mark *mark, const struct folder_segments *s)
{
    struct missing none = { 0 };

    if (!mark->at || !mark_sound(mark)) {
        return none;
    }

    struct missing m = { .from = mark_retired(mark) };

    m.to = s->n > 0 ? s->first[0] - 1 : mark_durable(mark);
    return m.from > 0 && m.from <= m.to ? m : none;
}

uint64_t missing_count(struct missing m)
{
    return m.from > 0 ? m.to - m.from + 1 : 0;
}
