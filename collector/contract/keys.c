#include "collector/contract/keys.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/buf.h"
#include "collector/base/suggest.h"

enum { PATH_SIZE = 128, TEXT_SIZE = 512, KEYS_MAX = 32 /* of a mapping */ };

static const char *const type_words[] = {
    [KEY_STRING] = "a string",    [KEY_STRINGS] = "a list of strings", [KEY_BOOL] = "true or false",
    [KEY_INTEGER] = "an integer", [KEY_MAPPING] = "a mapping",
};

static bool is_strings(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!json_is_string(json_array_get(value, i))) {
            return false;
        }
    }
    return json_is_array(value);
}

static bool has_type(const json_t *value, enum key_type type)
{
    switch (type) {
    case KEY_STRING:
        return json_is_string(value);
    case KEY_STRINGS:
        return is_strings(value);
    case KEY_BOOL:
        return json_is_boolean(value);
    case KEY_INTEGER:
        return json_is_integer(value);
    case KEY_MAPPING:
        return json_is_object(value);
    }
    return false;
}

void keys_fault(const struct document *doc, enum fault_level level, const json_t *object,
                const char *path, const char *name, const char *fmt, ...)
{
    char whole[PATH_SIZE];
    char text[TEXT_SIZE];
    size_t line = object ? yaml_key_line(doc->yaml, object, name) : 0;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)snprintf(whole, sizeof(whole), "%s%s%s", path, *path ? "." : "", name);
    faults_add(doc->faults, level, yaml_file(doc->yaml), line > 0 ? line : doc->line, whole, "%s",
               text);
}

static const struct key_rule *find_rule(const struct key_rule *rules, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rules[i].name, name) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

static void unknown_key(const struct document *doc, const json_t *object, const char *path,
                        const char *name, const struct key_rule *rules, size_t n)
{
    const char *names[KEYS_MAX];
    struct buf known;

    buf_init(&known, TEXT_SIZE);
    for (size_t i = 0; i < n && i < KEYS_MAX; i++) {
        buf_addf(&known, "%s%s", i > 0 ? ", " : "", rules[i].name);
        names[i] = rules[i].name;
    }

    const char *near = suggest_name(slice_from_cstr(name), names, n < KEYS_MAX ? n : KEYS_MAX);

    keys_fault(doc, FAULT_ERROR, object, path, name, "unknown key%s%s%s; known here: %s",
               near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
               buf_cstr(&known));
    buf_done(&known);
}

static void check_members(const struct document *doc, json_t *object, const char *path,
                          const struct key_rule *rules, size_t n)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        const struct key_rule *rule = find_rule(rules, n, name);

        if (!rule) {
            unknown_key(doc, object, path, name, rules, n);
        } else if (!has_type(value, rule->type)) {
            keys_fault(doc, FAULT_ERROR, object, path, name, "must be %s", type_words[rule->type]);
        }
    }
}

void keys_check(const struct document *doc, json_t *object, const char *path,
                const struct key_rule *rules, size_t n)
{
    if (!json_is_object(object)) {
        faults_add(doc->faults, FAULT_ERROR, yaml_file(doc->yaml), doc->line, *path ? path : NULL,
                   "must be a mapping");
        return;
    }
    check_members(doc, object, path, rules, n);
    for (size_t i = 0; i < n; i++) {
        if (rules[i].required && !json_object_get(object, rules[i].name)) {
            keys_fault(doc, FAULT_ERROR, object, path, rules[i].name, "is missing; it must be %s%s",
                       rules[i].words ? "one of: " : "",
                       rules[i].words ? rules[i].words : type_words[rules[i].type]);
        }
    }
}

const char *keys_string(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

struct slice keys_slice(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return (struct slice){ .ptr = json_string_value(value), .len = json_string_length(value) };
}

json_t *keys_mapping(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    return json_is_object(value) ? value : NULL;
}

int64_t keys_integer(const json_t *object, const char *name, int64_t fallback)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) ? (int64_t)json_integer_value(value) : fallback;
}

bool keys_bool(const json_t *object, const char *name, bool fallback)
{
    const json_t *value = json_object_get(object, name);

    return json_is_boolean(value) ? json_is_true(value) : fallback;
}
