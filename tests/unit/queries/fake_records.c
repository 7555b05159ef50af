#include "tests/unit/queries/fake_records.h"

#include <assert.h>
#include <stdlib.h>

#include "collector/record/encode.h"

int64_t fake_time(int64_t seconds)
{
    return (FAKE_BASE_S + seconds) * 1000 * 1000;
}

void fake_records_done(struct fake_records *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->owned[i]);
    }
    *r = (struct fake_records){ 0 };
}

/*
 * A head whose id is a UUID that rises with the record's number, in `ret_id`; what the test
 * has set stays.
 */
static void begin(const struct fake_records *r, struct record_head *head, char ret_id[40],
                  struct buf *ret_bytes)
{
    (void)snprintf(ret_id, 40, "00000000-0000-7000-8000-%012zu", r->n + 1);
    if (head->id.len == 0) {
        head->id = slice_from_cstr(ret_id);
    }
    if (head->time_us == 0) {
        head->time_us = fake_time((int64_t)r->n + 1);
    }
    head->collector = SLICE("test");
    buf_init(ret_bytes, RECORD_MAX_BYTES);
}

static struct digest leaf_of(struct slice json)
{
    const struct slice parts[] = { { .ptr = "", .len = 1 }, json };

    return digest_of_parts(parts, 2);
}

static void keep(struct fake_records *r, enum record_type type, struct buf *b)
{
    assert(r->n < FAKE_RECORDS_MAX && buf_ok(b));

    struct slice json = buf_slice(b); /* the bytes are ours from here on */

    r->items[r->n] =
        (struct sink_record){ .seq = r->n + 1, .type = type, .leaf = leaf_of(json), .json = json };
    r->owned[r->n++] = b->ptr;
}

void fake_records_evaluation(struct fake_records *r, struct evaluation e)
{
    struct buf b;
    char id[40];

    begin(r, &e.head, id, &b);
    encode_evaluation(&e, &b);
    keep(r, RECORD_HOOK_EVALUATION, &b);
}

void fake_records_tool(struct fake_records *r, struct tool_execution t)
{
    struct buf b;
    char id[40];

    begin(r, &t.head, id, &b);
    encode_tool_execution(&t, &b);
    keep(r, RECORD_TOOL_EXECUTION, &b);
}

void fake_records_registry(struct fake_records *r, struct hook_registry h)
{
    struct buf b;
    char id[40];

    begin(r, &h.head, id, &b);
    encode_hook_registry(&h, &b);
    keep(r, RECORD_HOOK_REGISTRY, &b);
}

void fake_records_gap(struct fake_records *r, struct gap g)
{
    struct buf b;
    char id[40];

    begin(r, &g.head, id, &b);
    encode_gap(&g, &b);
    keep(r, RECORD_GAP, &b);
}

struct execution fake_skipped(const char *name, enum skip_reason reason, const char *matcher)
{
    return (struct execution){ .hook_name = slice_from_cstr(name),
                               .hook_type = HOOK_COMMAND,
                               .tier = TIER_USER_GLOBAL,
                               .decision = DECISION_SKIPPED,
                               .skip_reason = reason,
                               .matcher = slice_from_cstr(matcher),
                               .matcher_mode = MATCHER_REGEX };
}
