/* sre_open: read a request, or refuse it and name the key. */
#include "collector/contract/sre.h"

#include <string.h>

#define KIND(k) (1U << (k))
#define STRING KIND(JSON_KIND_STRING)
#define OR_NULL KIND(JSON_KIND_NULL)
#define BOOLEAN (KIND(JSON_KIND_TRUE) | KIND(JSON_KIND_FALSE))
#define INTEGER KIND(JSON_KIND_NUMBER) /* and whole */
#define OBJECT KIND(JSON_KIND_OBJECT)
#define ARRAY KIND(JSON_KIND_ARRAY)
#define ANY (~0U)

/* What a known key may hold, on which events it is known. */
struct member_rule {
    const char *name;
    unsigned kinds;
    unsigned events; /* bits of enum sre_event; 0: all */
    const char *words;
};

#define ON(e) (1U << (e))
#define ON_TOOLS (ON(SRE_PRE_TOOL_USE) | ON(SRE_POST_TOOL_USE))

enum request_member {
    R_CONTRACT,
    R_THREAD,
    R_USER,
    R_CHILD,
    R_ACTIVATED,
    R_METADATA,
    R_PAYLOAD,
    R_COUNT
};
static const struct member_rule request_rules[R_COUNT] = {
    [R_CONTRACT] = { "contract", STRING, 0, "a string" },
    [R_THREAD] = { "thread_id", STRING, 0, "a string" },
    [R_USER] = { "user_id", STRING | OR_NULL, 0, "a string" },
    [R_CHILD] = { "child", BOOLEAN | OR_NULL, 0, "true or false" },
    [R_ACTIVATED] = { "activated_hooks", ARRAY | OR_NULL, 0, "a list of strings" },
    [R_METADATA] = { "metadata", OBJECT | OR_NULL, 0, "an object" },
    [R_PAYLOAD] = { "payload", OBJECT, 0, "an object" },
};

enum payload_member {
    P_EVENT,
    P_AGENT,
    P_TURN,
    P_MAX_TURNS,
    P_SUMMARY,
    P_MESSAGE,
    P_SOURCE,
    P_TOOL,
    P_INPUT,
    P_DESCRIPTION,
    P_MODE,
    P_IS_WRITE,
    P_APPROVAL,
    P_BROWSER,
    P_CALL,
    P_RESULT,
    P_SUCCEEDED,
    P_ACTIVE,
    P_REJECTIONS,
    P_OUTPUT,
    P_COUNT
};
static const struct member_rule payload_rules[P_COUNT] = {
    [P_EVENT] = { "hook_event_name", STRING, 0, "a string" },
    [P_AGENT] = { "agent_name", STRING, 0, "a string" },
    [P_TURN] = { "current_turn", INTEGER, 0, "an integer" },
    [P_MAX_TURNS] = { "max_turns", INTEGER, 0, "an integer" },
    [P_SUMMARY] = { "execution_summary", STRING | OR_NULL, 0, "a string or null" },
    [P_MESSAGE] = { "start_message", STRING | OR_NULL, ON(SRE_START), "a string or null" },
    [P_SOURCE] = { "thread_source", STRING | OR_NULL, ON(SRE_START), "a string or null" },
    [P_TOOL] = { "tool_name", STRING, ON_TOOLS, "a string" },
    [P_INPUT] = { "tool_input", OBJECT | OR_NULL, ON_TOOLS, "an object or null" },
    [P_DESCRIPTION] = { "tool_description", STRING | OR_NULL, ON(SRE_PRE_TOOL_USE),
                        "a string or null" },
    [P_MODE] = { "agent_mode", STRING, ON(SRE_PRE_TOOL_USE), "a string" },
    [P_IS_WRITE] = { "is_write_action", BOOLEAN, ON(SRE_PRE_TOOL_USE), "true or false" },
    [P_APPROVAL] = { "requires_approval", BOOLEAN, ON(SRE_PRE_TOOL_USE), "true or false" },
    [P_BROWSER] = { "requires_browser_connection", BOOLEAN, ON(SRE_PRE_TOOL_USE), "true or false" },
    [P_CALL] = { "call_id", STRING, ON_TOOLS, "a string" },
    [P_RESULT] = { "tool_result", ANY, ON(SRE_POST_TOOL_USE), "" },
    [P_SUCCEEDED] = { "tool_succeeded", BOOLEAN, ON(SRE_POST_TOOL_USE), "true or false" },
    [P_ACTIVE] = { "stop_hook_active", BOOLEAN, ON(SRE_STOP), "true or false" },
    [P_REJECTIONS] = { "stop_rejection_count", INTEGER, ON(SRE_STOP), "an integer" },
    [P_OUTPUT] = { "final_output", STRING | OR_NULL, ON(SRE_STOP), "a string or null" },
};

/* The first member of each name, in one walk: a payload may be long. */
static void find(struct json_value object, const struct member_rule *rules, size_t n,
                 struct json_value *found)
{
    struct payload_iter it = payload_iter(object);
    struct slice key;
    struct json_value value;

    while (payload_next(&it, &key, &value)) {
        for (size_t i = 0; i < n; i++) {
            if (found[i].kind == JSON_KIND_NONE &&
                payload_string_is(key, slice_from_cstr(rules[i].name))) {
                found[i] = value;
                break;
            }
        }
    }
}

static bool has_kind(const struct member_rule *rule, struct json_value value)
{
    int64_t whole;

    if ((rule->kinds & KIND(value.kind)) == 0) {
        return false;
    }
    return rule->kinds != INTEGER || payload_integer(value, &whole);
}

static bool check_kinds(const char *where, const struct member_rule *rules, size_t n,
                        const struct json_value *found, enum sre_event event, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool known = rules[i].events == 0 || (rules[i].events & ON(event)) != 0;

        if (known && found[i].kind != JSON_KIND_NONE && !has_kind(&rules[i], found[i])) {
            return err_set(err, ERR_INVALID, "%s/%s: must be %s", where, rules[i].name,
                           rules[i].words);
        }
    }
    return true;
}

/* A string that must be there and say something. */
static bool need(struct dispatch *d, const char *where, const struct member_rule *rule,
                 struct json_value value, struct slice *ret, struct err *err)
{
    if (value.kind != JSON_KIND_STRING) {
        return err_set(err, ERR_INVALID, "%s/%s: %s", where, rule->name,
                       value.kind == JSON_KIND_NONE ? "is missing" : "must be a string");
    }
    if (!payload_string(value.raw, &d->arena, ret, NULL)) {
        return err_set(err, ERR_TOO_BIG, "%s/%s: is too long", where, rule->name);
    }
    return ret->len > 0 || err_set(err, ERR_INVALID, "%s/%s: is empty", where, rule->name);
}

static bool maybe(struct dispatch *d, const struct member_rule *rule, struct json_value value,
                  struct slice *ret, struct err *err)
{
    if (value.kind != JSON_KIND_STRING || payload_string(value.raw, &d->arena, ret, NULL)) {
        return true;
    }
    return err_set(err, ERR_TOO_BIG, "/payload/%s: is too long", rule->name);
}

static bool check_activated(struct json_value list, struct err *err)
{
    struct payload_iter it = payload_iter(list);
    struct json_value item;

    if (list.kind != JSON_KIND_ARRAY) {
        return true;
    }
    for (size_t i = 0; payload_next(&it, NULL, &item); i++) {
        if (i == SRE_MAX_ACTIVATED) {
            return err_set(err, ERR_TOO_BIG, "/activated_hooks: at most %d names",
                           SRE_MAX_ACTIVATED);
        }
        if (item.kind != JSON_KIND_STRING) {
            return err_set(err, ERR_INVALID, "/activated_hooks/%zu: must be a string", i);
        }
    }
    return true;
}

static bool open_request(struct dispatch *d, struct sre_request *r, struct err *err)
{
    struct json_value found[R_COUNT] = { 0 };
    struct json_value root;

    if (!payload_check(d->request, &root, err)) {
        return err_wrap(err, "request");
    }
    if (root.kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "request: must be an object");
    }
    find(root, request_rules, R_COUNT, found);
    if (!check_kinds("", request_rules, R_COUNT, found, SRE_NO_EVENT, err) ||
        !check_activated(found[R_ACTIVATED], err) ||
        !need(d, "", &request_rules[R_THREAD], found[R_THREAD], &d->facts.thread_id, err) ||
        !maybe(d, &request_rules[R_USER], found[R_USER], &d->facts.user_id, err)) {
        return false;
    }
    if (found[R_CONTRACT].kind != JSON_KIND_NONE &&
        !payload_string_is(found[R_CONTRACT].raw, SLICE("sre"))) {
        return err_set(err, ERR_INVALID, "/contract: must be sre");
    }
    if (found[R_PAYLOAD].kind == JSON_KIND_NONE) {
        return err_set(err, ERR_INVALID, "/payload: is missing");
    }
    d->facts.child = found[R_CHILD].kind == JSON_KIND_TRUE;
    d->payload = found[R_PAYLOAD];
    r->activated = found[R_ACTIVATED];
    r->metadata = found[R_METADATA];
    return true;
}

static void open_tool(struct dispatch *d, enum sre_event event, const struct json_value *found)
{
    bool ended = event == SRE_POST_TOOL_USE;

    d->tool = (struct tool_call){
        .phase = ended ? PHASE_END : PHASE_START,
        .sub_agent_name = d->facts.agent_name,
        .input = found[P_INPUT],
    };
    if (ended) {
        d->tool.output = found[P_RESULT];
        d->tool.has_succeeded = found[P_SUCCEEDED].kind != JSON_KIND_NONE;
        d->tool.succeeded = found[P_SUCCEEDED].kind == JSON_KIND_TRUE;
    }
}

static bool open_event(struct dispatch *d, struct sre_request *r, struct json_value name,
                       struct err *err)
{
    if (!need(d, "/payload", &payload_rules[P_EVENT], name, &d->facts.hook_event_type, err)) {
        return false;
    }
    r->event = sre_event_from(d->facts.hook_event_type);
    if (r->event == SRE_NO_EVENT) {
        return err_set(err, ERR_INVALID,
                       "/payload/hook_event_name: must be Start, PreToolUse, PostToolUse or Stop");
    }
    return true;
}

static bool open_payload(struct dispatch *d, struct sre_request *r, struct err *err)
{
    struct json_value found[P_COUNT] = { 0 };
    struct evaluation *facts = &d->facts;

    find(d->payload, payload_rules, P_COUNT, found);
    if (!open_event(d, r, found[P_EVENT], err) ||
        !check_kinds("/payload", payload_rules, P_COUNT, found, r->event, err) ||
        !need(d, "/payload", &payload_rules[P_AGENT], found[P_AGENT], &facts->agent_name, err)) {
        return false;
    }
    if (sre_event_is_tool(r->event)) {
        if (!need(d, "/payload", &payload_rules[P_TOOL], found[P_TOOL], &facts->tool_name, err) ||
            !maybe(d, &payload_rules[P_CALL], found[P_CALL], &facts->call_id, err)) {
            return false;
        }
        if (facts->tool_name.len > SRE_MAX_NAME_BYTES) {
            return err_set(err, ERR_TOO_BIG, "/payload/tool_name: longer than %d bytes",
                           SRE_MAX_NAME_BYTES);
        }
        open_tool(d, r->event, found);
    }
    if (r->event == SRE_START &&
        !maybe(d, &payload_rules[P_SOURCE], found[P_SOURCE], &r->thread_source, err)) {
        return false;
    }
    facts->has_turn =
        found[P_TURN].kind != JSON_KIND_NONE && payload_integer(found[P_TURN], &facts->turn);
    if (r->event == SRE_STOP && found[P_REJECTIONS].kind != JSON_KIND_NONE &&
        !payload_integer(found[P_REJECTIONS], &r->stop_rejections)) {
        r->stop_rejections = 0;
    }
    r->summary = found[P_SUMMARY];
    return true;
}

bool sre_open(struct dispatch *d, struct err *err)
{
    struct sre_request *r = ARENA_NEW(&d->arena, struct sre_request);

    if (!r) {
        return err_set(err, ERR_TOO_BIG, "no room for the request");
    }
    d->own = r;
    d->facts.contract = SLICE("sre");
    if (!open_request(d, r, err) || !open_payload(d, r, err)) {
        return false;
    }
    /* Start alone cannot be held: its hooks decide nothing. */
    d->facts.blocking = r->event != SRE_START;
    return true;
}
