/*
 * The records of a dispatch: what the chains did, and a tool's start or end.
 * Everything is redacted on a copy in the dispatch's arena; the dispatch itself
 * is left as it is, because its reply is written from it.
 */
#include <string.h>

#include "collector/base/clock.h"
#include "collector/recorder/recorder_part.h"
#include "collector/recorder/redact.h"
#include "collector/recorder/shrink.h"

enum {
    KEYS_MAX_BYTES = 4 * 1024,      /* of the list of a payload's key names */
    CAPTURED_MAX_BYTES = 64 * 1024, /* of a captured payload */
    TOOL_MAX_BYTES = 32 * 1024,     /* of a tool's input, and of its output */
    USUAL_BYTES = 2000,             /* of a record: room to begin with */
};

/* What a dispatch's records are made with. */
struct maker {
    struct recorder *recorder;
    struct dispatch *dispatch;
};

static struct slice redaction_failed(struct maker *m)
{
    atomic_fetch_add(&m->recorder->redaction_failures, 1);
    return SLICE("[redaction failed]");
}

static void clean_text(struct maker *m, struct slice *text, uint32_t *erased)
{
    if (text->len > 0 && !redact_text(*text, &m->dispatch->arena, text, erased)) {
        *text = redaction_failed(m);
    }
}

/*
 * The end of a text that has been redacted whole: a cut before that could leave the
 * half of a secret that nothing recognizes. It begins at a whole character.
 */
static struct slice tail_of(struct slice text, size_t n)
{
    if (text.len <= n) {
        return text;
    }
    text.ptr += text.len - n;
    text.len = n;
    while (text.len > 0 && ((unsigned char)text.ptr[0] & 0xc0) == 0x80) {
        text.ptr++;
        text.len--;
    }
    return text;
}

/* What was redacted into `out`, in the arena; empty when that failed, or there is no room. */
static struct slice keep(struct maker *m, bool ok, const struct buf *out)
{
    struct slice copy = { 0 };

    if (!ok || !buf_ok(out) || !arena_dup(&m->dispatch->arena, buf_slice(out), &copy)) {
        (void)redaction_failed(m);
    }
    return copy;
}

/* A redacted copy of v. */
static struct slice clean_json(struct maker *m, struct json_value v, size_t max_bytes,
                               uint32_t *erased)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, max_bytes + 64);
    if (v.kind == JSON_KIND_NONE) {
        return (struct slice){ 0 };
    }
    redact_json(v, max_bytes, &out, erased);
    return keep(m, true, &out);
}

static struct slice clean_keys(struct maker *m, struct json_value v, uint32_t *erased)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, (size_t)KEYS_MAX_BYTES * 2);

    bool ok = redact_keys(v, KEYS_MAX_BYTES, &out, erased);

    return keep(m, ok, &out);
}

static void fill_payload(struct maker *m, struct payload_facts *ret)
{
    struct dispatch *d = m->dispatch;

    ret->bytes = d->payload.raw.len;
    ret->keys = clean_keys(m, d->payload, &ret->erased);
    if (d->confidential) {
        return;
    }

    struct digest digest = digest_of(d->payload.raw);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&digest, hex);
    if (!arena_dup(&d->arena, slice_from_cstr(hex), &ret->sha256)) {
        ret->sha256 = (struct slice){ 0 };
    }
    if (m->recorder->capture == CAPTURE_PAYLOAD) {
        ret->captured = clean_json(m, d->payload, CAPTURED_MAX_BYTES, &ret->erased);
    }
}

/* e->hooks become a copy; what hooks wrote about confidential content does not enter it. */
static void clean_hooks(struct maker *m, struct evaluation *e, uint32_t *erased)
{
    struct execution *hooks = arena_alloc(&m->dispatch->arena, e->n_hooks, sizeof(*hooks));

    if (!hooks) {
        (void)redaction_failed(m);
        e->n_hooks = 0;
        return;
    }
    if (e->n_hooks > 0) {
        memcpy(hooks, e->hooks, e->n_hooks * sizeof(*hooks));
    }
    for (size_t i = 0; i < e->n_hooks; i++) {
        clean_text(m, &hooks[i].reason.text, erased);
        if (m->dispatch->confidential) {
            hooks[i].stderr_tail = (struct slice){ 0 };
        }
        clean_text(m, &hooks[i].stderr_tail, erased);
        hooks[i].stderr_tail = tail_of(hooks[i].stderr_tail, RECORD_STDERR_BYTES);
    }
    e->hooks = hooks;
}

/* Tool calls carry the whole input and output; of confidential ones, neither. */
static bool fill_tool(struct maker *m, struct tool_execution *ret)
{
    struct dispatch *d = m->dispatch;
    uint32_t erased = 0;

    if (d->tool.phase == PHASE_NONE) {
        return false;
    }
    *ret = (struct tool_execution){
        .head = { .collector = m->recorder->collector, .time_us = clock_now_us() },
        .dispatch_id = id_slice(&d->id),
        .source = SOURCE_DISPATCHER,
        .contract = slice_from_cstr(d->set->ops->name),
        .phase = d->tool.phase,
        .thread_id = d->facts.thread_id,
        .call_id = d->facts.call_id,
        .tool_name = d->facts.tool_name,
        .sub_agent_name = d->tool.sub_agent_name,
        .has_succeeded = d->tool.has_succeeded,
        .tool_succeeded = d->tool.succeeded,
    };
    if (!d->confidential) {
        ret->tool_input = clean_json(m, d->tool.input, TOOL_MAX_BYTES, &erased);
        ret->tool_output = clean_json(m, d->tool.output, TOOL_MAX_BYTES, &erased);
    }
    return true;
}

void recorder_encode(struct recorder *r, struct dispatch *d,
                     void (*on_record)(void *ctx, enum record_type type, struct slice json,
                                       const struct evaluation *e),
                     void *ctx)
{
    struct maker m = { .recorder = r, .dispatch = d };
    struct payload_facts payload = { 0 };
    struct tool_execution tool;
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, RECORD_MAX_BYTES);
    (void)!buf_reserve(&out, USUAL_BYTES);
    fill_payload(&m, &payload);
    for (size_t i = 0; i < d->n_chains; i++) {
        struct evaluation e;

        chain_evaluation(d, &d->chains[i], &e);
        e.head.collector = r->collector;
        e.payload = payload;
        clean_text(&m, &e.reason.text,
                   &e.payload.erased); /* whole: the encoder cuts it afterwards */
        clean_hooks(&m, &e, &e.payload.erased);
        shrink_evaluation(&e, &out);
        on_record(ctx, RECORD_HOOK_EVALUATION, buf_slice(&out), &e);
    }
    if (fill_tool(&m, &tool)) {
        struct id id = id_new();

        tool.head.id = id_slice(&id);
        shrink_tool_execution(&tool, &out);
        on_record(ctx, RECORD_TOOL_EXECUTION, buf_slice(&out), NULL);
    }
}
