#include "tests/unit/sinks/fake_source.h"

#include <stdlib.h>

#include "collector/base/mem.h"

struct fake_source {
    struct source base;
    struct slice journal;
    const struct sink_record *list;
    size_t n;
    size_t batch;
    bool placed;
    uint64_t next;
    size_t rewinds;
    bool refuses;
};

static struct fake_source *from_source(struct source *s)
{
    return CONTAINER_OF(s, struct fake_source, base);
}

static bool place(struct fake_source *f, struct err *err)
{
    struct source *s = &f->base;
    struct sink_position at;

    if (!s->position(s->position_ctx, f->journal, &at, err)) {
        return false;
    }
    if (!f->refuses) {
        s->joined(s->position_ctx, f->journal, at.next);
    }
    f->next = at.next;
    f->placed = true;
    return true;
}

static enum source_read fake_next(struct source *s, struct span *ret, struct err *err)
{
    struct fake_source *f = from_source(s);
    size_t first = 0;

    if (!f->placed && !place(f, err)) {
        return SOURCE_ERROR;
    }
    if (f->refuses) {
        return SOURCE_WAIT;
    }
    while (first < f->n && f->list[first].seq < f->next) {
        first++;
    }
    if (first == f->n) {
        return SOURCE_WAIT;
    }

    size_t n = f->n - first < f->batch ? f->n - first : f->batch;

    *ret = (struct span){ .journal = f->journal,
                          .from = f->next,
                          .to = f->list[first + n - 1].seq,
                          .records = f->list + first,
                          .n = n };
    f->next = ret->to + 1;
    return SOURCE_SPAN;
}

static void fake_rewind(struct source *s)
{
    from_source(s)->placed = false;
    from_source(s)->rewinds++;
}

static void fake_wait(struct source *s, int64_t timeout_ms)
{
    (void)s;
    (void)timeout_ms;
}

static void fake_close(struct source *s)
{
    if (s) {
        free(from_source(s));
    }
}

static const struct source_ops ops = {
    .next = fake_next,
    .rewind = fake_rewind,
    .wait = fake_wait,
    .close = fake_close,
};

struct source *fake_source_new(struct slice journal, const struct sink_record *list, size_t n,
                               size_t batch)
{
    struct fake_source *f = xcalloc(1, sizeof(*f));

    f->base.ops = &ops;
    f->journal = journal;
    f->list = list;
    f->n = n;
    f->batch = batch;
    return &f->base;
}

void fake_source_refuse(struct source *s)
{
    from_source(s)->refuses = true;
}

size_t fake_source_rewinds(struct source *s)
{
    return from_source(s)->rewinds;
}
