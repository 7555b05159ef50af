/*
 * any_record: records of every kind, for tests of what writes and reads them.
 *
 * Random ones follow from their seed. An arena that is too small for one ends the test.
 */
#pragma once

#include <stdlib.h>

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/record/decode.h"
#include "collector/record/encode.h"
#include "collector/record/record.h"

#define ID "018f0000-0000-7000-8000-000000000001"
#define HEAD(type, schema)                                            \
    "{\"type\":\"" type "\",\"schema\":" schema ",\"id\":\"" ID "\"," \
    "\"collector\":\"m1\",\"time\":\"2026-11-30T14:22:45.000001Z\""

static inline uint32_t roll(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33) % n;
}

/* Nothing, or up to 40 pieces of what is hard to write and to read. */
static inline struct slice any_text(uint64_t *seed, struct arena *a)
{
    static const char *const pieces[] = {
        "a", "Bash|Write", "\"", "\\", "\n", "\x01", "\xc3\xa4", "\xf0\x9f\x98\x80", "{}[],:", " ",
    };
    struct buf b;
    struct slice s;

    buf_init(&b, 4096);
    for (uint32_t i = roll(seed, 3) == 0 ? 0 : roll(seed, 40); i > 0; i--) {
        buf_add(&b, slice_from_cstr(pieces[roll(seed, sizeof(pieces) / sizeof(pieces[0]))]));
    }
    if (!arena_dup(a, buf_slice(&b), &s)) {
        abort();
    }
    buf_done(&b);
    return s;
}

static inline struct slice any_json(uint64_t *seed)
{
    static const char *const texts[] = { "", "null", "1.50", "\"\\ud800\"", "{\"a\":[{}]}", "[]" };

    return slice_from_cstr(texts[roll(seed, sizeof(texts) / sizeof(texts[0]))]);
}

static inline struct record_head any_head(uint64_t *seed, struct arena *a)
{
    return (struct record_head){ .id = SLICE(ID),
                                 .collector = any_text(seed, a),
                                 .time_us = 1 + (int64_t)roll(seed, 1U << 31) * 1000003 };
}

static inline struct cut_text any_reason(uint64_t *seed, struct arena *a)
{
    struct cut_text r = { .text = any_text(seed, a) };

    if (r.text.len > 0 && roll(seed, 3) == 0) {
        r.chars = 1000 + roll(seed, 1000);
    }
    return r;
}

static inline int64_t any_number(uint64_t *seed)
{
    static const int64_t numbers[] = { 0, 1, -1, 4711, INT64_MAX, INT64_MIN };

    return numbers[roll(seed, sizeof(numbers) / sizeof(numbers[0]))];
}

static inline struct execution any_execution(uint64_t *seed, struct arena *a, uint32_t ordinal)
{
    struct execution x = {
        .ordinal = ordinal,
        .hook_name = any_text(seed, a),
        .hook_type = 1 + roll(seed, HOOK_TYPE_COUNT - 1),
        .tier = roll(seed, TIER_COUNT),
        .decision = 1 + roll(seed, DECISION_COUNT - 1),
        .matcher = any_text(seed, a),
        .reason = any_reason(seed, a),
    };

    if (x.matcher.len > 0) {
        x.matcher_mode = 1 + roll(seed, MATCHER_MODE_COUNT - 1);
    }
    if (x.decision == DECISION_SKIPPED) {
        x.skip_reason = 1 + roll(seed, SKIP_REASON_COUNT - 1);
        return x;
    }
    x.blank_reason = roll(seed, 2);
    x.exception_type = any_text(seed, a);
    x.fail_mode = any_text(seed, a);
    x.cause = roll(seed, CAUSE_COUNT);
    x.intended = roll(seed, DECISION_COUNT);
    x.has_exit_code = roll(seed, 2);
    x.exit_code = x.has_exit_code ? (int32_t)roll(seed, 256) - 1 : 0;
    x.signal = (int32_t)roll(seed, 2) * 9;
    x.timed_out = roll(seed, 2);
    x.queue_us = any_number(seed);
    x.duration_us = any_number(seed);
    x.stdout_bytes = roll(seed, 1U << 30);
    x.stderr_tail = any_text(seed, a);
    x.left_behind = roll(seed, 3);
    return x;
}

static inline struct evaluation any_evaluation(uint64_t *seed, struct arena *a)
{
    struct evaluation e = {
        .head = any_head(seed, a),
        .dispatch_id = any_text(seed, a),
        .source = roll(seed, SOURCE_COUNT),
        .contract = any_text(seed, a),
        .chain = roll(seed, CHAIN_KIND_COUNT),
        .duration_us = any_number(seed),
        .queue_us = any_number(seed),
        .thread_id = any_text(seed, a),
        .run_id = any_text(seed, a),
        .call_id = any_text(seed, a),
        .user_id = any_text(seed, a),
        .agent_name = any_text(seed, a),
        .task_id = any_text(seed, a),
        .task_run_id = any_text(seed, a),
        .execution_kind = any_text(seed, a),
        .hook_event_type = any_text(seed, a),
        .tool_name = any_text(seed, a),
        .has_turn = roll(seed, 2),
        .child = roll(seed, 2),
        .blocking = roll(seed, 2),
        .final_decision = roll(seed, DECISION_COUNT),
        .reason = any_reason(seed, a),
        .allowing_hook = any_text(seed, a),
        .hooks_configured = roll(seed, 1U << 31),
        .hooks_run = roll(seed, 9),
        .system_hooks_run = roll(seed, 9),
        .agent_hooks_run = roll(seed, 9),
        .user_global_hooks_run = roll(seed, 9),
        .rejection_count = roll(seed, 9),
        .config_digest = any_text(seed, a),
        .n_hooks = roll(seed, 6),
    };

    e.turn = e.has_turn ? any_number(seed) : 0;
    if (roll(seed, 2)) {
        e.payload = (struct payload_facts){ .bytes = 1 + roll(seed, 1000),
                                            .sha256 = any_text(seed, a),
                                            .keys = roll(seed, 2) ? SLICE("[\"a\"]") : SLICE(""),
                                            .captured = any_json(seed),
                                            .erased = roll(seed, 3) };
    }
    e.hooks = arena_alloc(a, 6, sizeof(*e.hooks));
    if (!e.hooks) {
        abort();
    }
    for (uint32_t i = 0; i < e.n_hooks; i++) {
        e.hooks[i] = any_execution(seed, a, i);
    }
    return e;
}

/* Read a record of this type, and append what it is written as; of none its head is read alone. */
static inline bool recode(enum record_type type, struct slice json, struct arena *a,
                          struct buf *out, struct err *err)
{
    union {
        struct evaluation evaluation;
        struct tool_execution tool;
        struct hook_registry registry;
        struct gap gap;
        struct admin admin;
        struct record_head head;
    } r;

    switch (type) {
    case RECORD_HOOK_EVALUATION:
        return decode_evaluation(json, a, &r.evaluation, err) &&
               (encode_evaluation(&r.evaluation, out), true);
    case RECORD_TOOL_EXECUTION:
        return decode_tool_execution(json, a, &r.tool, err) &&
               (encode_tool_execution(&r.tool, out), true);
    case RECORD_HOOK_REGISTRY:
        return decode_hook_registry(json, a, &r.registry, err) &&
               (encode_hook_registry(&r.registry, out), true);
    case RECORD_GAP:
        return decode_gap(json, a, &r.gap, err) && (encode_gap(&r.gap, out), true);
    case RECORD_ADMIN:
        return decode_admin(json, a, &r.admin, err) && (encode_admin(&r.admin, out), true);
    case RECORD_NONE:
    case RECORD_CHECKPOINT:
    case RECORD_TYPE_COUNT:
        break;
    }
    return decode_head(json, a, &type, &r.head, err);
}

/* A copy with nothing behind it, so that a look past its end is seen. free() it. */
static inline char *exact_copy(const char *text, size_t len)
{
    char *copy = malloc(len);

    if (!copy) {
        abort();
    }
    memcpy(copy, text, len);
    return copy;
}
