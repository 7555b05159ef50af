#include "collector/record/types.h"

static const char *const record_types[RECORD_TYPE_COUNT] = {
    "", "hook_evaluation", "tool_execution", "hook_registry", "gap", "checkpoint", "admin",
};
static const char *const decisions[DECISION_COUNT] = {
    "", "pass", "allow", "reject", "deny", "ask", "error", "skipped", "cancelled", "interrupted",
};
static const char *const skip_reasons[SKIP_REASON_COUNT] = {
    "",        "disabled",       "inactive",       "source",        "scope",
    "matcher", "not_executable", "max_rejections", "short_circuit", "duplicate",
};
static const char *const tiers[TIER_COUNT] = { "", "system", "agent", "user-global" };
static const char *const hook_types[HOOK_TYPE_COUNT] = { "", "command", "http", "prompt" };
static const char *const chain_kinds[CHAIN_KIND_COUNT] = { "", "all", "prompt", "command" };
static const char *const matcher_modes[MATCHER_MODE_COUNT] = { "", "any", "regex",
                                                               "exact_fallback" };
static const char *const sources[SOURCE_COUNT] = { "", "dispatcher", "host" };
static const char *const phases[PHASE_COUNT] = { "", "start", "end" };
static const char *const causes[CAUSE_COUNT] = {
    "",        "timeout",      "signal",           "exit_code",
    "spawn",   "output_limit", "malformed_output", "http_status",
    "connect", "tls",          "unsupported",      "cancelled",
    "input",
};

/* The index of `name`, or 0. Entry 0 is the empty string, which is no name. */
static unsigned find(const char *const *names, unsigned n, struct slice name)
{
    for (unsigned i = 1; i < n && name.len > 0; i++) {
        /* The first byte tells most of them apart. */
        if (names[i][0] == name.ptr[0] && slice_equal(slice_from_cstr(names[i]), name)) {
            return i;
        }
    }
    return 0;
}

/* Both directions for one enum and its table. */
#define NAMES(prefix, type, table)                       \
    const char *prefix##_name(enum type v)               \
    {                                                    \
        return (table)[v];                               \
    }                                                    \
    enum type prefix##_from(struct slice name)           \
    {                                                    \
        unsigned n = sizeof(table) / sizeof((table)[0]); \
        return find((table), n, name);                   \
    }

NAMES(record_type, record_type, record_types)
NAMES(decision, decision, decisions)
NAMES(skip_reason, skip_reason, skip_reasons)
NAMES(tier, tier, tiers)
NAMES(hook_type, hook_type, hook_types)
NAMES(chain_kind, chain_kind, chain_kinds)
NAMES(matcher_mode, matcher_mode, matcher_modes)
NAMES(record_source, record_source, sources)
NAMES(tool_phase, tool_phase, phases)
NAMES(cause, cause, causes)
