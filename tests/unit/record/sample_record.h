/* A record as a collector would make it, for tests that only need some record. */
#pragma once

#include "collector/record/record.h"

/* About 800 bytes of JSON with a hook that ran and one that did not. */
static inline struct evaluation sample_evaluation(void)
{
    static struct execution hooks[] = {
        { .hook_name = SLICE("deny-destructive"),
          .hook_type = HOOK_COMMAND,
          .tier = TIER_USER_GLOBAL,
          .decision = DECISION_DENY,
          .matcher = SLICE("Bash|Write"),
          .matcher_mode = MATCHER_REGEX,
          .reason = { .text = SLICE("rm -rf outside of the workspace") },
          .fail_mode = SLICE("allow"),
          .has_exit_code = true,
          .exit_code = 2,
          .duration_us = 2140 },
        { .ordinal = 1,
          .hook_name = SLICE("ask-production"),
          .hook_type = HOOK_COMMAND,
          .tier = TIER_USER_GLOBAL,
          .decision = DECISION_SKIPPED,
          .skip_reason = SKIP_SHORT_CIRCUIT,
          .matcher = SLICE("Bash"),
          .matcher_mode = MATCHER_REGEX },
    };

    return (struct evaluation){
        .head = { .id = SLICE("018f0000-0000-7000-8000-000000000001"),
                  .collector = SLICE("host-1"),
                  .time_us = 1796048565000001 },
        .dispatch_id = SLICE("018f0000-0000-7000-8000-000000000002"),
        .source = SOURCE_DISPATCHER,
        .contract = SLICE("sre"),
        .chain = CHAIN_ALL,
        .duration_us = 2300,
        .thread_id = SLICE("thread-1"),
        .agent_name = SLICE("main"),
        .hook_event_type = SLICE("PreToolUse"),
        .tool_name = SLICE("Bash"),
        .blocking = true,
        .final_decision = DECISION_DENY,
        .reason = { .text = SLICE("rm -rf outside of the workspace") },
        .hooks_configured = 2,
        .hooks_run = 1,
        .user_global_hooks_run = 1,
        .config_digest = SLICE("3b1e7a4f0c5d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a"),
        .payload = { .bytes = 212,
                     .sha256 =
                         SLICE("a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b1"),
                     .keys = SLICE(
                         "[\"hook_event_name\",\"agent_name\",\"tool_name\",\"tool_input\"]") },
        .hooks = hooks,
        .n_hooks = sizeof(hooks) / sizeof(hooks[0]),
    };
}
