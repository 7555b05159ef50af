#include "tests/unit/queries/fake_store.h"

#include <assert.h>
#include <string.h>

#include "collector/record/decode.h"
#include "queries/filter.h"

/* Keys of any record that a filter may ask for; what a type does not have is empty. */
struct facts {
    struct record_head head;
    struct slice dispatch_id, thread_id, call_id, tool_name, event, contract, config_digest;
};

static struct {
    const struct fake_records *records;
    bool broken;
} fake;

static struct store store = { .ops = &fake_store_ops };

void fake_store_load(const struct fake_records *records)
{
    fake.records = records;
    fake.broken = false;
}

void fake_store_break(bool broken)
{
    fake.broken = broken;
}

static bool open_fake(const struct store_config *cfg, struct store **ret, struct err *err)
{
    (void)cfg;
    (void)err;
    *ret = &store;
    return true;
}

static bool read_facts(const struct sink_record *r, struct arena *a, struct facts *f,
                       struct err *err)
{
    enum record_type type;
    struct evaluation e = { 0 };
    struct tool_execution t = { 0 };
    struct hook_registry h = { 0 };

    *f = (struct facts){ 0 };
    if (!decode_head(r->json, a, &type, &f->head, err)) {
        return false;
    }
    if (type == RECORD_HOOK_EVALUATION) {
        if (!decode_evaluation(r->json, a, &e, err)) {
            return false;
        }
    } else if (type == RECORD_TOOL_EXECUTION && !decode_tool_execution(r->json, a, &t, err)) {
        return false;
    } else if (type == RECORD_HOOK_REGISTRY && !decode_hook_registry(r->json, a, &h, err)) {
        return false;
    }
    f->dispatch_id = e.dispatch_id.len > 0 ? e.dispatch_id : t.dispatch_id;
    f->thread_id = e.thread_id.len > 0 ? e.thread_id : t.thread_id;
    f->call_id = e.call_id.len > 0 ? e.call_id : t.call_id;
    f->tool_name = e.tool_name.len > 0 ? e.tool_name : t.tool_name;
    f->event = e.hook_event_type;
    f->contract = e.contract.len > 0 ? e.contract : t.contract.len > 0 ? t.contract : h.contract;
    f->config_digest = e.config_digest.len > 0 ? e.config_digest : h.config_digest;
    return true;
}

static bool is_asked(struct slice asked, struct slice value)
{
    return asked.len == 0 || slice_equal(asked, value);
}

static bool fits(const struct store_filter *f, enum record_type type, const struct facts *x)
{
    return (f->types == 0 || f->types & 1U << type) && is_asked(f->id, x->head.id) &&
           is_asked(f->dispatch_id, x->dispatch_id) && is_asked(f->thread_id, x->thread_id) &&
           is_asked(f->call_id, x->call_id) && is_asked(f->tool_name, x->tool_name) &&
           is_asked(f->event, x->event) && is_asked(f->contract, x->contract) &&
           is_asked(f->config_digest, x->config_digest) && x->head.time_us >= f->from_us &&
           (f->to_us == 0 || x->head.time_us < f->to_us);
}

/* Records of tests are written down in the order of time. */
static bool select_rows(struct store *s, const struct store_filter *f, store_on_row on_row,
                        void *ctx, struct err *err)
{
    const struct fake_records *all = fake.records;
    size_t left = f->limit > 0 ? f->limit : FILTER_ROWS;
    CLEANUP(arena_clear) struct arena a;

    (void)s;
    arena_init(&a, 64 * 1024 * 1024);
    if (fake.broken) {
        return err_set(err, ERR_AGAIN, "the store is broken by the test");
    }
    for (size_t i = 0; i < all->n && left > 0; i++) {
        const struct sink_record *r = &all->items[f->newest_first ? all->n - 1 - i : i];
        struct facts x;

        if (!read_facts(r, &a, &x, err)) {
            return false;
        }
        if (!fits(f, r->type, &x)) {
            continue;
        }

        struct store_row row = { r->type, x.head.id, x.head.time_us, SLICE("journal-1"),
                                 r->seq,  r->leaf,   r->json };

        left--;
        if (!on_row(ctx, &row)) {
            return true;
        }
    }
    return true;
}

static bool positions(struct store *s, store_on_position on_position, void *ctx, struct err *err)
{
    struct store_position p = { SLICE("journal-1"), fake.records->n + 1 };

    (void)s;
    (void)err;
    (void)on_position(ctx, &p);
    return true;
}

static void close_fake(struct store *s)
{
    (void)s;
}

const struct store_ops fake_store_ops = {
    .name = "fake",
    .open = open_fake,
    .select = select_rows,
    .positions = positions,
    .close = close_fake,
};
