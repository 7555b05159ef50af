/*
 * types: the words of a record (design: Words), each with its one spelling.
 *
 * Every enum begins with a zero member that means "not applicable": such a
 * member has no name, and the encoder leaves its key out.
 */
#pragma once

#include "collector/base/slice.h"

enum record_type {
    RECORD_NONE = 0,
    RECORD_HOOK_EVALUATION,
    RECORD_TOOL_EXECUTION,
    RECORD_HOOK_REGISTRY,
    RECORD_GAP,
    RECORD_CHECKPOINT,
    RECORD_ADMIN,
    RECORD_TYPE_COUNT,
};

enum decision {
    DECISION_NONE = 0,
    DECISION_PASS,
    DECISION_ALLOW,
    DECISION_REJECT,
    DECISION_DENY,
    DECISION_ASK,
    DECISION_ERROR,
    DECISION_SKIPPED,     /* of a hook only */
    DECISION_CANCELLED,   /* of a chain: the caller went away; of a hook: it was ended for that */
    DECISION_INTERRUPTED, /* of a chain: the collector died under it */
    DECISION_COUNT,
};

/* In the order in which they are tried. */
enum skip_reason {
    SKIP_NONE = 0,
    SKIP_DISABLED,
    SKIP_INACTIVE,
    SKIP_SOURCE,
    SKIP_SCOPE,
    SKIP_MATCHER,
    SKIP_NOT_EXECUTABLE,
    SKIP_MAX_REJECTIONS,
    SKIP_SHORT_CIRCUIT,
    SKIP_DUPLICATE,
    SKIP_REASON_COUNT,
};

enum tier { TIER_NONE = 0, TIER_SYSTEM, TIER_AGENT, TIER_USER_GLOBAL, TIER_COUNT };
enum hook_type { HOOK_NONE = 0, HOOK_COMMAND, HOOK_HTTP, HOOK_PROMPT, HOOK_TYPE_COUNT };
enum chain_kind { CHAIN_NONE = 0, CHAIN_ALL, CHAIN_PROMPT, CHAIN_COMMAND, CHAIN_KIND_COUNT };
enum matcher_mode {
    MATCHER_NONE = 0,
    MATCHER_ANY,
    MATCHER_REGEX,
    MATCHER_EXACT_FALLBACK, /* the pattern does not compile, or took too long */
    MATCHER_MODE_COUNT,
};
enum record_source { SOURCE_NONE = 0, SOURCE_DISPATCHER, SOURCE_HOST, SOURCE_COUNT };
enum tool_phase { PHASE_NONE = 0, PHASE_START, PHASE_END, PHASE_COUNT };

/* Why a hook failed, or was ended. */
enum cause {
    CAUSE_NONE = 0,
    CAUSE_TIMEOUT,
    CAUSE_SIGNAL,
    CAUSE_EXIT_CODE,
    CAUSE_SPAWN,
    CAUSE_OUTPUT_LIMIT,
    CAUSE_MALFORMED_OUTPUT,
    CAUSE_HTTP_STATUS,
    CAUSE_CONNECT,
    CAUSE_TLS,
    CAUSE_UNSUPPORTED, /* no runner for this type of hook, or a decision nobody knows */
    CAUSE_CANCELLED,
    CAUSE_INPUT, /* the hook's input could not be made */
    CAUSE_COUNT,
};

/* The spelling in a record, e.g. "exact_fallback"; "" for a zero member. */
const char *record_type_name(enum record_type v);
const char *decision_name(enum decision v);
const char *skip_reason_name(enum skip_reason v);
const char *tier_name(enum tier v);
const char *hook_type_name(enum hook_type v);
const char *chain_kind_name(enum chain_kind v);
const char *matcher_mode_name(enum matcher_mode v);
const char *record_source_name(enum record_source v);
const char *tool_phase_name(enum tool_phase v);
const char *cause_name(enum cause v);

/* The inverse; the zero member when nothing is spelled so. */
enum record_type record_type_from(struct slice name);
enum decision decision_from(struct slice name);
enum skip_reason skip_reason_from(struct slice name);
enum tier tier_from(struct slice name);
enum hook_type hook_type_from(struct slice name);
enum chain_kind chain_kind_from(struct slice name);
enum matcher_mode matcher_mode_from(struct slice name);
enum record_source record_source_from(struct slice name);
enum tool_phase tool_phase_from(struct slice name);
enum cause cause_from(struct slice name);
