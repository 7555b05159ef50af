/* sre_result: a hook's stdout, read as the contract's HookResult. */
#include "collector/contract/sre.h"

#include <string.h>

/*
 * The member of this name; absent and null are the same: *ret stays empty. Whatever else
 * stands in an output is passed over.
 */
static bool text(struct json_value object, const char *name, struct arena *a, struct slice *ret,
                 struct err *err)
{
    struct json_value value = payload_get(object, slice_from_cstr(name));

    if (value.kind == JSON_KIND_NONE || value.kind == JSON_KIND_NULL) {
        return true;
    }
    if (value.kind != JSON_KIND_STRING) {
        return err_set(err, ERR_INVALID, "%s is not a string", name);
    }
    return payload_string(value.raw, a, ret, NULL) ||
           err_set(err, ERR_TOO_BIG, "%s is too long", name);
}

static enum decision permission_from(struct slice word)
{
    enum decision d = decision_from(word);

    return d == DECISION_ALLOW || d == DECISION_DENY || d == DECISION_ASK ? d : DECISION_NONE;
}

static bool read_permission(struct json_value specific, struct arena *a, enum decision *ret,
                            struct err *err)
{
    struct slice word = { .ptr = NULL };

    if (!text(specific, "permissionDecision", a, &word, err)) {
        return false;
    }
    *ret = permission_from(word);
    return *ret != DECISION_NONE || !word.ptr ||
           err_set(err, ERR_INVALID, "permissionDecision is not allow, deny or ask");
}

static bool read_specific(struct json_value specific, struct arena *a, struct sre_result *ret,
                          struct err *err)
{
    if (specific.kind == JSON_KIND_NONE || specific.kind == JSON_KIND_NULL) {
        return true;
    }
    if (specific.kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "hookSpecificOutput is not an object");
    }
    ret->specific = specific;
    return read_permission(specific, a, &ret->permission, err) &&
           text(specific, "permissionDecisionReason", a, &ret->question, err) &&
           text(specific, "additionalContext", a, &ret->context, err);
}

static bool read_ok(struct json_value ok, bool *ret_rejects, struct err *err)
{
    if (ok.kind != JSON_KIND_NONE && ok.kind != JSON_KIND_TRUE && ok.kind != JSON_KIND_FALSE) {
        return err_set(err, ERR_INVALID, "ok is not true or false");
    }
    *ret_rejects = ok.kind == JSON_KIND_FALSE;
    return true;
}

bool sre_result_parse(struct slice output, struct arena *a, struct sre_result *ret, struct err *err)
{
    struct slice legacy = { 0 };
    struct json_value root;

    *ret = (struct sre_result){ 0 };
    if (!payload_check(output, &root, err)) {
        return false;
    }
    if (root.kind != JSON_KIND_OBJECT) {
        return err_set(err, ERR_INVALID, "not a JSON object");
    }
    if (!read_ok(payload_get(root, SLICE("ok")), &ret->rejects, err) ||
        !text(root, "reason", a, &ret->reason, err) || !text(root, "decision", a, &legacy, err) ||
        !read_specific(payload_get(root, SLICE("hookSpecificOutput")), a, ret, err)) {
        return false;
    }
    ret->has_reason = ret->reason.len > 0;
    ret->rejects = ret->rejects || slice_equal(legacy, SLICE("block"));
    return true;
}

enum decision sre_result_decision(const struct sre_result *r)
{
    if (r->permission == DECISION_DENY || r->permission == DECISION_ASK) {
        return r->permission;
    }
    if (r->rejects) {
        return DECISION_REJECT;
    }
    return r->permission == DECISION_ALLOW ? DECISION_ALLOW : DECISION_PASS;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What may stand between a key and its word, in JSON as in a text. */
static bool is_between(char c)
{
    return c == '"' || c == '\'' || c == ':' || c == '=' || c == '\\' || c == ' ' || c == '\t' ||
           c == '\r' || c == '\n';
}

/* The word behind the key, past quotes, blanks and a colon; empty when there is none. */
static struct slice word_behind(struct slice output, const char *key)
{
    size_t n = strlen(key);
    const char *at = output.len > 0 ? memmem(output.ptr, output.len, key, n) : NULL;

    if (!at) {
        return (struct slice){ 0 };
    }

    const char *end = output.ptr + output.len;
    const char *from = at + n;

    while (from < end && is_between(*from)) {
        from++;
    }

    const char *to = from;

    while (to < end && is_word(*to)) {
        to++;
    }
    return (struct slice){ .ptr = from, .len = (size_t)(to - from) };
}

enum decision sre_result_guess(struct slice output)
{
    enum decision permission = permission_from(word_behind(output, "permissionDecision"));
    struct slice ok = word_behind(output, "ok\"");

    if (permission == DECISION_DENY || permission == DECISION_ASK) {
        return permission;
    }
    if (ok.len == 0) {
        ok = word_behind(output, "ok'");
    }
    if (slice_equal(ok, SLICE("false")) || slice_equal(ok, SLICE("False")) ||
        slice_equal(word_behind(output, "decision\""), SLICE("block"))) {
        return DECISION_REJECT;
    }
    return permission;
}
