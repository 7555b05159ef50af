/*
 * record: the types of record, in memory (design: Records).
 *
 * The dispatcher fills them, `encode` writes them as the one line of JSON that
 * is hashed, journalled and delivered, `decode` reads that line back. Slices
 * point into the arena of the dispatch, or into the bytes that were decoded.
 * An empty slice, a zero enum and a false `has_` mean: not applicable, and the
 * key is left out.
 */
#pragma once

#include <stdint.h>

#include "collector/base/id.h"
#include "collector/base/slice.h"
#include "collector/record/types.h"

enum {
    RECORD_SCHEMA = 1,             /* the version written; a reader takes the one before too */
    RECORD_MAX_BYTES = 256 * 1024, /* of one record's JSON */
    RECORD_REASON_CHARS = 256,     /* code points of a reason; then an ellipsis */
    RECORD_STDERR_BYTES = 1024,    /* of the end of a hook's stderr */
};

/* What every record begins with. */
struct record_head {
    struct slice id;        /* UUIDv7 */
    struct slice collector; /* the name of the machine, from the configuration */
    int64_t time_us;        /* since 1970 UTC */
};

/* A text that a record cuts (reasons). The encoder cuts; the decoder tells what was cut. */
struct cut_text {
    struct slice text;
    uint64_t chars; /* code points before the cut; 0: was not cut */
};

/* One hook's part in an evaluation. */
struct execution {
    uint32_t ordinal; /* place in the evaluation's list, from 0 */
    struct slice hook_name;
    enum hook_type hook_type;
    enum tier tier;
    enum decision decision;
    enum skip_reason skip_reason; /* when decision is DECISION_SKIPPED */
    struct slice matcher;         /* the pattern as configured */
    enum matcher_mode matcher_mode;
    struct cut_text reason;
    bool blank_reason;
    struct slice exception_type; /* what the contract calls the failure */
    struct slice fail_mode;      /* the configured word */
    enum cause cause;
    enum decision intended; /* what its output meant, where that did not count */
    bool has_exit_code;
    int32_t exit_code;
    int32_t signal; /* 0: none */
    bool timed_out;
    int64_t queue_us; /* waited for a place to run */
    int64_t duration_us;
    uint64_t stdout_bytes;
    struct slice stderr_tail; /* before recording: all that is kept of stderr */
    uint32_t left_behind;     /* processes that outlived it */
    struct slice json;        /* its object in the record that was decoded; else empty */
};

/* What is told of the payload that the host sent. */
struct payload_facts {
    uint64_t bytes;
    struct slice sha256;   /* 64 digits; empty for confidential content */
    struct slice keys;     /* JSON array of the top-level names, as text; empty: none */
    struct slice captured; /* redacted copy, JSON as text; empty: not captured */
    uint32_t erased;       /* values that redaction took out, characters it replaced included */
};

/* The record of one chain. */
struct evaluation {
    struct record_head head;
    struct slice dispatch_id;
    enum record_source source;
    struct slice contract;
    enum chain_kind chain;
    int64_t duration_us;
    int64_t queue_us;
    struct slice thread_id;
    struct slice run_id;
    struct slice call_id;
    struct slice user_id;
    struct slice agent_name;
    struct slice task_id;
    struct slice task_run_id;
    struct slice execution_kind;
    struct slice hook_event_type;
    struct slice tool_name;
    bool has_turn;
    int64_t turn;
    bool child;
    bool blocking;
    enum decision final_decision;
    struct cut_text reason;
    struct slice allowing_hook;
    uint32_t hooks_configured;
    uint32_t hooks_unlisted; /* considered, and not in `hooks`: the record would be too large */
    uint32_t hooks_run;
    uint32_t system_hooks_run;
    uint32_t agent_hooks_run;
    uint32_t user_global_hooks_run;
    uint32_t rejection_count;
    struct slice config_digest; /* 64 digits */
    struct payload_facts payload;
    struct execution *hooks; /* in order, n_hooks of them */
    size_t n_hooks;
};

/* The start or the end of a tool call. */
struct tool_execution {
    struct record_head head;
    struct slice dispatch_id; /* empty when a host sent it */
    enum record_source source;
    struct slice contract;
    enum tool_phase phase;
    struct slice thread_id;
    struct slice call_id;
    struct slice tool_name;
    struct slice sub_agent_name;
    struct slice tool_input;  /* JSON as text, redacted */
    struct slice tool_output; /* JSON as text, redacted and cut */
    bool has_succeeded;
    bool tool_succeeded;
    struct slice skills_loaded;
    struct slice skill_source;
};

/* One part of a hook set; a large set is several records with the same digest. */
struct hook_registry {
    struct record_head head;
    struct slice contract;
    struct slice config_digest;
    uint32_t part;      /* from 0 */
    uint32_t parts;     /* how many in all */
    struct slice hooks; /* JSON array of definitions, as text */
};

/* Records that were lost. */
struct gap {
    struct record_head head;
    bool known; /* false: how many is not known, and `lost` is 0 */
    uint64_t lost;
    struct slice cause; /* a fixed word: disk_full quota io damage unclean_boot queue_full … */
    int64_t first_us;
    int64_t last_us;
};

/* Something that a person or a role did to the records. */
struct admin {
    struct record_head head;
    /* A fixed word: token_create token_revoke key_rotate key_lost reload retention … */
    struct slice action;
    struct slice actor;   /* uid or token name */
    struct slice details; /* JSON object as text */
};
