#include "collector/record/fields.h"

/* The functions of types.h, in the one shape that a table can hold. */
#define WORDS(type)                                 \
    static const char *type##_word(unsigned v)      \
    {                                               \
        return type##_name(v);                      \
    }                                               \
    static unsigned type##_value(struct slice name) \
    {                                               \
        return (unsigned)type##_from(name);         \
    }                                               \
    static const struct words type##_words = {      \
        .name = type##_word,                        \
        .from = type##_value,                       \
    };

WORDS(decision)
WORDS(skip_reason)
WORDS(tier)
WORDS(hook_type)
WORDS(chain_kind)
WORDS(matcher_mode)
WORDS(record_source)
WORDS(tool_phase)
WORDS(cause)

/* A row: the JSON key, the kind, the struct and its member; then what else is to say. */
#define AS(key, k, type, member, ...)                                                  \
    {                                                                                  \
        .lead = { .ptr = ",\"" key "\":", .len = sizeof(key) + 3 }, .kind = FIELD_##k, \
        .offset = offsetof(struct type, member), __VA_ARGS__                           \
    }
#define ROW(k, type, member, ...) AS(#member, k, type, member, __VA_ARGS__)
#define HAS(type, member) .has = offsetof(struct type, member)
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define TABLE(name) const struct fields name = { .rows = name##_rows, .n = COUNT(name##_rows) }
#define OUTLINE(part) .outline = OUTLINE_##part

#define RECORD(name, record) \
    const struct fields name = { .rows = name##_rows, .n = COUNT(name##_rows), .type = (record) }

#define HEAD                                                                                   \
    AS("type", TYPE, any_record, type, OUTLINE(TYPE)), AS("schema", SCHEMA, any_record, type), \
        ROW(TEXT, record_head, id, .always = true, OUTLINE(ID)),                               \
        ROW(TEXT, record_head, collector, .identity = true, OUTLINE(COLLECTOR)),               \
        AS("time", TIME, record_head, time_us, .always = true, .identity = true, OUTLINE(TIME))

static const struct field head_fields_rows[] = { HEAD };
TABLE(head_fields);

static const struct field evaluation_fields_rows[] = {
    HEAD,
    ROW(TEXT, evaluation, dispatch_id, .identity = true),
    ROW(WORD, evaluation, source, .words = &record_source_words, .identity = true),
    ROW(TEXT, evaluation, contract, .identity = true),
    ROW(WORD, evaluation, chain, .words = &chain_kind_words, .identity = true),
    ROW(I64, evaluation, duration_us, .always = true),
    ROW(I64, evaluation, queue_us, .always = true),
    ROW(TEXT, evaluation, thread_id, .identity = true, OUTLINE(THREAD_ID)),
    ROW(TEXT, evaluation, run_id, .identity = true),
    ROW(TEXT, evaluation, call_id, .identity = true),
    ROW(TEXT, evaluation, user_id, .identity = true, OUTLINE(USER_ID)),
    ROW(TEXT, evaluation, agent_name, .identity = true),
    ROW(TEXT, evaluation, task_id, .identity = true),
    ROW(TEXT, evaluation, task_run_id, .identity = true, OUTLINE(TASK_RUN_ID)),
    ROW(TEXT, evaluation, execution_kind, .identity = true),
    ROW(TEXT, evaluation, hook_event_type, .identity = true),
    ROW(TEXT, evaluation, tool_name, .identity = true),
    ROW(I64, evaluation, turn, HAS(evaluation, has_turn), .identity = true),
    ROW(BOOL, evaluation, child, .always = true, .identity = true),
    ROW(BOOL, evaluation, blocking, .always = true, .identity = true),
    ROW(WORD, evaluation, final_decision, .words = &decision_words),
    ROW(REASON, evaluation, reason),
    AS("reason_chars", REASON_CHARS, evaluation, reason),
    ROW(TEXT, evaluation, allowing_hook),
    ROW(U32, evaluation, hooks_configured, .always = true),
    ROW(U32, evaluation, hooks_unlisted),
    ROW(U32, evaluation, hooks_run, .always = true),
    ROW(U32, evaluation, system_hooks_run, .always = true),
    ROW(U32, evaluation, agent_hooks_run, .always = true),
    ROW(U32, evaluation, user_global_hooks_run, .always = true),
    ROW(U32, evaluation, rejection_count, .always = true),
    ROW(TEXT, evaluation, config_digest, .identity = true),
    ROW(PAYLOAD, evaluation, payload),
    ROW(HOOKS, evaluation, hooks),
};
RECORD(evaluation_fields, RECORD_HOOK_EVALUATION);

_Static_assert(COUNT(evaluation_fields_rows) <= 64, "a walk has a bit for each row");

static const struct field payload_fields_rows[] = {
    ROW(U64, payload_facts, bytes, .always = true),
    ROW(TEXT, payload_facts, sha256),
    ROW(ARRAY, payload_facts, keys),
    ROW(JSON, payload_facts, captured),
    ROW(U32, payload_facts, erased),
};
TABLE(payload_fields);

static const struct field execution_rows[] = {
    ROW(U32, execution, ordinal, .always = true, OUTLINE(ORDINAL)),
    ROW(TEXT, execution, hook_name),
    ROW(WORD, execution, hook_type, .words = &hook_type_words),
    ROW(WORD, execution, tier, .words = &tier_words),
    ROW(WORD, execution, decision, .words = &decision_words, OUTLINE(DECISION)),
    ROW(WORD, execution, skip_reason, .words = &skip_reason_words),
    ROW(TEXT, execution, matcher),
    ROW(WORD, execution, matcher_mode, .words = &matcher_mode_words),
    ROW(REASON, execution, reason),
    AS("reason_chars", REASON_CHARS, execution, reason),
    /* From here on: only of a hook that was run. */
    ROW(BOOL, execution, blank_reason),
    ROW(TEXT, execution, exception_type),
    ROW(TEXT, execution, fail_mode),
    ROW(WORD, execution, cause, .words = &cause_words),
    ROW(WORD, execution, intended, .words = &decision_words),
    ROW(I32, execution, exit_code, HAS(execution, has_exit_code)),
    ROW(I32, execution, signal),
    ROW(BOOL, execution, timed_out),
    ROW(I64, execution, queue_us, .always = true),
    ROW(I64, execution, duration_us, .always = true),
    ROW(U64, execution, stdout_bytes, .always = true),
    ROW(TEXT, execution, stderr_tail),
    ROW(U32, execution, left_behind),
};
enum { SKIPPED_ROWS = 10 };
const struct fields execution_fields = { .rows = execution_rows, .n = COUNT(execution_rows) };
const struct fields execution_skipped_fields = { .rows = execution_rows, .n = SKIPPED_ROWS };

static const struct field tool_execution_fields_rows[] = {
    HEAD,
    ROW(TEXT, tool_execution, dispatch_id),
    ROW(WORD, tool_execution, source, .words = &record_source_words),
    ROW(TEXT, tool_execution, contract),
    ROW(WORD, tool_execution, phase, .words = &tool_phase_words),
    ROW(TEXT, tool_execution, thread_id, OUTLINE(THREAD_ID)),
    ROW(TEXT, tool_execution, call_id),
    ROW(TEXT, tool_execution, tool_name),
    ROW(TEXT, tool_execution, sub_agent_name),
    ROW(JSON, tool_execution, tool_input),
    ROW(JSON, tool_execution, tool_output),
    ROW(BOOL, tool_execution, tool_succeeded, HAS(tool_execution, has_succeeded)),
    ROW(TEXT, tool_execution, skills_loaded),
    ROW(TEXT, tool_execution, skill_source),
};
RECORD(tool_execution_fields, RECORD_TOOL_EXECUTION);

static const struct field hook_registry_fields_rows[] = {
    HEAD,
    ROW(TEXT, hook_registry, contract),
    ROW(TEXT, hook_registry, config_digest),
    ROW(U32, hook_registry, part, .always = true),
    ROW(U32, hook_registry, parts, .always = true),
    ROW(ARRAY, hook_registry, hooks),
};
RECORD(hook_registry_fields, RECORD_HOOK_REGISTRY);

static const struct field gap_fields_rows[] = {
    HEAD,
    ROW(U64, gap, lost, HAS(gap, known)),
    ROW(TEXT, gap, cause),
    AS("first_time", TIME, gap, first_us),
    AS("last_time", TIME, gap, last_us),
};
RECORD(gap_fields, RECORD_GAP);

static const struct field admin_fields_rows[] = {
    HEAD,
    ROW(TEXT, admin, action),
    ROW(TEXT, admin, actor),
    ROW(OBJECT, admin, details),
};
RECORD(admin_fields, RECORD_ADMIN);
