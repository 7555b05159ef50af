#include "collector/contract/sre_rules.h"

#include "collector/contract/text.h"

#define EVENTS "Start PreToolUse PostToolUse Stop"
#define ACTIVATIONS "always onDemand"
#define TYPES "command prompt"

static const struct key_rule root_rules[] = {
    { "api_version", KEY_STRING, false, NULL },
    { "kind", KEY_STRING, false, NULL },
    { "metadata", KEY_MAPPING, true, NULL },
    { "spec", KEY_MAPPING, true, NULL },
};
static const struct key_rule metadata_rules[] = {
    { "name", KEY_STRING, true, NULL },   { "owner", KEY_STRING, false, NULL },
    { "tags", KEY_STRINGS, false, NULL }, { "tier", KEY_STRING, false, NULL },
    { "agent", KEY_STRING, false, NULL },
};
static const struct key_rule spec_rules[] = {
    { "eventType", KEY_STRING, true, EVENTS },  { "activationMode", KEY_STRING, true, ACTIVATIONS },
    { "description", KEY_STRING, false, NULL }, { "enabled", KEY_BOOL, false, NULL },
    { "sources", KEY_STRINGS, false, NULL },    { "hook", KEY_MAPPING, true, NULL },
};
static const struct key_rule hook_rules[] = {
    { "type", KEY_STRING, true, TYPES },           { "matcher", KEY_STRING, false, NULL },
    { "command", KEY_STRING, false, NULL },        { "script", KEY_STRING, false, NULL },
    { "prompt", KEY_STRING, false, NULL },         { "model", KEY_STRING, false, NULL },
    { "timeout", KEY_INTEGER, false, NULL },       { "failMode", KEY_STRING, false, NULL },
    { "maxRejections", KEY_INTEGER, false, NULL },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HOOK_PATH "spec.hook"

/* ---- Words ---------------------------------------------------------------- */

/* A fault unless the key is absent (or mistyped, which has been told) or one of the words. */
static void check_word(const struct document *doc, const json_t *object, const char *path,
                       const char *key, const char *allowed)
{
    const char *value = keys_string(object, key);
    struct slice rest = slice_from_cstr(allowed);
    struct slice word;

    while (value && rest.len > 0) {
        (void)slice_cut(rest, ' ', &word, &rest);
        if (slice_equal(keys_slice(object, key), word)) {
            return;
        }
    }
    if (value) {
        keys_fault(doc, FAULT_ERROR, object, path, key, "'%s' is not one of: %s", value, allowed);
    }
}

static void check_range(const struct document *doc, const json_t *hook, const char *key,
                        int64_t max)
{
    int64_t value = keys_integer(hook, key, 1);

    if (value < 1 || value > max) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, key, "%lld is not in 1..%lld",
                   (long long)value, (long long)max);
    }
}

/* ---- metadata ------------------------------------------------------------- */

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_')) {
            return false;
        }
    }
    return name.len > 0;
}

enum tier sre_rules_tier(const json_t *metadata)
{
    return keys_string(metadata, "tier") ? tier_from(keys_slice(metadata, "tier"))
                                         : TIER_USER_GLOBAL;
}

static void check_name(const struct document *doc, const json_t *metadata)
{
    const char *name = keys_string(metadata, "name");

    if (!name) {
        return;
    }
    if (!is_name(keys_slice(metadata, "name"))) {
        keys_fault(doc, FAULT_ERROR, metadata, "metadata", "name",
                   "'%s' may hold letters, digits, hyphens and underscores only", name);
    }

    /* The prefix is reserved for those who configure the system's own hooks. */
    if (slice_starts_with(keys_slice(metadata, "name"), SLICE("system-")) &&
        sre_rules_tier(metadata) != TIER_SYSTEM) {
        keys_fault(doc, FAULT_ERROR, metadata, "metadata", "name",
                   "'%s' begins with the reserved prefix system-", name);
    }
}

static void check_agent(const struct document *doc, const json_t *metadata)
{
    bool is_agent = sre_rules_tier(metadata) == TIER_AGENT;
    bool has_agent = keys_slice(metadata, "agent").len > 0;

    if (is_agent && !has_agent) {
        keys_fault(doc, FAULT_ERROR, metadata, "metadata", "agent",
                   "is missing; a hook of tier agent names its agent");
    }
    if (!is_agent && json_object_get(metadata, "agent")) {
        keys_fault(doc, FAULT_ERROR, metadata, "metadata", "agent",
                   "is for hooks of tier agent only");
    }
}

static void check_metadata(const struct document *doc, json_t *metadata)
{
    keys_check(doc, metadata, "metadata", metadata_rules, COUNT(metadata_rules));
    check_word(doc, metadata, "metadata", "tier", "system agent user-global");
    check_name(doc, metadata);
    check_agent(doc, metadata);
}

/* ---- spec.hook ------------------------------------------------------------ */

static void check_script(const struct document *doc, const json_t *hook)
{
    struct slice script = keys_slice(hook, "script");

    if (!keys_string(hook, "script")) {
        return;
    }
    if (script.len > SRE_SCRIPT_BYTES) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "script", "is over %d KB",
                   SRE_SCRIPT_BYTES / 1024);
    }
    if (sre_script_interpreter(script) == SRE_NO_INTERPRETER) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "script",
                   "must start with #!/bin/bash or #!/usr/bin/env python3");
    }
}

static void check_command(const struct document *doc, const json_t *hook)
{
    if (keys_string(hook, "command") && text_is_blank(keys_slice(hook, "command"))) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "command", "is blank");
    }
    if (json_object_get(hook, "command") && json_object_get(hook, "script")) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "command",
                   "a command hook needs exactly one of command or script, not both");
    }
    if (!json_object_get(hook, "command") && !json_object_get(hook, "script")) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "command",
                   "is missing; a command hook needs exactly one of command or script");
    }
    check_script(doc, hook);
}

/* Keys that are legal and do nothing where they stand. */
static void warn_unused(const struct document *doc, const json_t *hook, const char *key,
                        const char *why)
{
    if (json_object_get(hook, key)) {
        keys_fault(doc, FAULT_WARNING, hook, HOOK_PATH, key, "has no effect: %s", why);
    }
}

static void check_prompt(const struct document *doc, const json_t *hook)
{
    if (json_object_get(hook, "prompt") == NULL ||
        (keys_string(hook, "prompt") && text_is_blank(keys_slice(hook, "prompt")))) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "prompt",
                   "is missing; a prompt hook needs one");
    }
    keys_fault(doc, FAULT_WARNING, hook, HOOK_PATH, "type",
               "loaded and checked; this build has no runner for prompt hooks: an event that "
               "reaches it is recorded as an error");
    warn_unused(doc, hook, "command", "it is for hooks of type command");
    warn_unused(doc, hook, "script", "it is for hooks of type command");
    warn_unused(doc, hook, "failMode", "it is for hooks of type command");
}

static void check_program(const struct document *doc, const json_t *hook, enum sre_event event)
{
    enum hook_type type = hook_type_from(keys_slice(hook, "type"));

    if (type == HOOK_COMMAND) {
        check_command(doc, hook);
        warn_unused(doc, hook, "prompt", "it is for hooks of type prompt");
        warn_unused(doc, hook, "model", "it is for hooks of type prompt");
    } else if (type == HOOK_PROMPT) {
        check_prompt(doc, hook);
    }
    if (type == HOOK_COMMAND || event != SRE_STOP) {
        warn_unused(doc, hook, "maxRejections", "it is for prompt hooks on Stop");
    }
}

/*
 * The contract refuses a broken matcher at one place alone, a global PostToolUse
 * hook; everywhere else it becomes an exact string when it runs.
 */
static void check_global_post_matcher(const struct document *doc, const json_t *hook)
{
    CLEANUP(matcher_freep) struct matcher *m = matcher_new(keys_slice(hook, "matcher"));

    if (*matcher_fault(m)) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "matcher", "does not compile: %s",
                   matcher_fault(m));
    } else {
        sre_check_matcher(doc, hook);
    }
}

static void check_matcher(const struct document *doc, const json_t *hook, enum sre_event event,
                          enum tier tier)
{
    const char *pattern = keys_string(hook, "matcher");
    bool empty = text_is_blank(keys_slice(hook, "matcher"));

    if (!sre_event_is_tool(event)) {
        warn_unused(doc, hook, "matcher", "Start and Stop do not match tools");
    } else if (json_object_get(hook, "matcher") && !pattern) {
        return;
    } else if (empty && event == SRE_POST_TOOL_USE) {
        keys_fault(doc, FAULT_ERROR, hook, HOOK_PATH, "matcher",
                   "is missing; a PostToolUse hook needs one (* matches every tool)");
    } else if (empty) {
        keys_fault(doc, FAULT_WARNING, hook, HOOK_PATH, "matcher",
                   "is missing or blank: the hook matches no tool and never fires (* matches "
                   "every tool)");
    } else if (event == SRE_POST_TOOL_USE && tier != TIER_AGENT) {
        check_global_post_matcher(doc, hook);
    } else {
        sre_check_matcher(doc, hook);
    }
}

static void check_hook(const struct document *doc, json_t *hook, enum sre_event event,
                       enum tier tier)
{
    keys_check(doc, hook, HOOK_PATH, hook_rules, COUNT(hook_rules));
    check_word(doc, hook, HOOK_PATH, "type", TYPES);
    check_word(doc, hook, HOOK_PATH, "failMode", "allow block");
    check_range(doc, hook, "timeout", SRE_TIMEOUT_MAX_S);
    check_range(doc, hook, "maxRejections", SRE_MAX_REJECTIONS_MAX);
    check_program(doc, hook, event);
    check_matcher(doc, hook, event, tier);
}

/* ---- spec and the root ---------------------------------------------------- */

static enum sre_event check_event(const struct document *doc, const json_t *spec)
{
    const char *name = keys_string(spec, "eventType");
    enum sre_event event =
        name ? sre_event_from_any_case(keys_slice(spec, "eventType")) : SRE_NO_EVENT;

    if (name && event == SRE_NO_EVENT) {
        keys_fault(doc, FAULT_ERROR, spec, "spec", "eventType", "'%s' is not one of: " EVENTS,
                   name);
    }
    return event;
}

/* A source without a name would match no thread, and the hook would never start. */
static void check_sources(const struct document *doc, const json_t *spec, enum sre_event event)
{
    const json_t *sources = json_object_get(spec, "sources");
    const json_t *item;
    size_t i;

    if (sources && event != SRE_START && event != SRE_NO_EVENT) {
        keys_fault(doc, FAULT_ERROR, spec, "spec", "sources", "is for Start hooks only");
    }
    json_array_foreach(sources, i, item)
    {
        if (json_is_string(item) && json_string_length(item) == 0) {
            keys_fault(doc, FAULT_ERROR, spec, "spec", "sources", "the source %zu is empty", i + 1);
        }
    }
}

static void check_spec(const struct document *doc, json_t *spec, enum tier tier)
{
    keys_check(doc, spec, "spec", spec_rules, COUNT(spec_rules));

    enum sre_event event = check_event(doc, spec);

    check_word(doc, spec, "spec", "activationMode", ACTIVATIONS);
    check_sources(doc, spec, event);
    if (keys_mapping(spec, "hook")) {
        check_hook(doc, keys_mapping(spec, "hook"), event, tier);
    }
}

void sre_rules_check(const struct document *doc, json_t *root)
{
    json_t *metadata = keys_mapping(root, "metadata");
    json_t *spec = keys_mapping(root, "spec");

    keys_check(doc, root, "", root_rules, COUNT(root_rules));
    check_word(doc, root, "", "api_version", "azuresre.ai/v2");
    check_word(doc, root, "", "kind", "Hook");
    if (metadata) {
        check_metadata(doc, metadata);
    }
    if (spec) {
        check_spec(doc, spec, sre_rules_tier(metadata));
    }
}
