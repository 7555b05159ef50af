#include "collector/contract/sre_document.h"

#include <string.h>

#include "collector/contract/sre_rules.h"

/* ---- From a checked document to a hook ------------------------------------ */

static bool copy(struct hookset *set, struct slice text, struct slice *ret)
{
    return arena_dup(&set->arena, text, ret);
}

static bool copy_sources(struct hookset *set, const json_t *spec, struct sre_hook *own)
{
    const json_t *sources = json_object_get(spec, "sources");
    size_t n = json_array_size(sources);
    struct slice *list = arena_alloc(&set->arena, n + 1, sizeof(*list));

    for (size_t i = 0; list && i < n; i++) {
        const json_t *item = json_array_get(sources, i);
        struct slice text = { .ptr = json_string_value(item), .len = json_string_length(item) };

        if (!copy(set, text, &list[i])) {
            return false;
        }
    }
    own->sources = list;
    own->n_sources = n;
    return list != NULL;
}

/* The words of `command: …`, which bash reads. */
static bool command_words(struct hookset *set, struct slice command, struct sre_hook *own)
{
    const char **argv = arena_alloc(&set->arena, 4, sizeof(*argv));
    struct slice text;

    if (!argv || !copy(set, command, &text)) {
        return false;
    }
    argv[0] = "/bin/bash";
    argv[1] = "-c";
    argv[2] = text.ptr;
    own->argv = argv;
    return true;
}

static bool set_program(const struct document *doc, const json_t *hook, const char *script_dir,
                        struct hookset *set, struct sre_hook *own)
{
    struct slice model = { 0 };
    struct err err;

    if (!copy(set, keys_slice(hook, "prompt"), &own->prompt) ||
        !copy(set, keys_slice(hook, "model"), &model)) {
        return false;
    }
    own->model = keys_string(hook, "model") ? model.ptr : NULL;
    if (keys_string(hook, "command")) {
        return command_words(set, keys_slice(hook, "command"), own);
    }
    if (!keys_string(hook, "script") || !script_dir) {
        return true;
    }
    if (!sre_script_store(script_dir, keys_slice(hook, "script"), &set->arena, &own->argv, &err)) {
        keys_fault(doc, FAULT_ERROR, hook, "spec.hook", "script", "%s", err.text);
    }
    return true;
}

static void set_options(const json_t *spec, const json_t *hook, struct sre_hook *own)
{
    const char *fail_mode = keys_string(hook, "failMode");
    const char *activation = keys_string(spec, "activationMode");

    own->event = sre_event_from_any_case(keys_slice(spec, "eventType"));
    own->enabled = keys_bool(spec, "enabled", true);
    own->on_demand = activation && strcmp(activation, "onDemand") == 0;
    own->timeout_ms = keys_integer(hook, "timeout", SRE_TIMEOUT_S) * 1000;
    own->fail_block = fail_mode && strcmp(fail_mode, "block") == 0;
    own->max_rejections = keys_integer(hook, "maxRejections", SRE_MAX_REJECTIONS);
    if (sre_event_is_tool(own->event)) {
        own->matcher = matcher_new(keys_slice(hook, "matcher"));
    }
}

/* ---- What the registry and the digest are told ---------------------------- */

static struct slice text_of(const json_t *hook)
{
    static const char *const names[] = { "script", "command", "prompt" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (keys_string(hook, names[i])) {
            return keys_slice(hook, names[i]);
        }
    }
    return SLICE("");
}

static json_t *describe(const json_t *metadata, const json_t *spec, const json_t *hook,
                        const struct hook *made)
{
    const struct sre_hook *own = made->own;
    struct digest digest = digest_of(text_of(hook));
    char hex[DIGEST_HEX_SIZE];
    json_t *d = json_object();

    digest_hex(&digest, hex);
    (void)json_object_set(d, "name", json_object_get(metadata, "name"));
    (void)json_object_set_new(d, "type", json_string(hook_type_name(made->type)));
    (void)json_object_set_new(d, "tier", json_string(tier_name(made->tier)));
    (void)json_object_set_new(d, "enabled", json_boolean(own->enabled));
    (void)json_object_set_new(d, "events", json_pack("[s]", sre_event_name(own->event)));
    (void)json_object_set_new(d, "fail_mode", json_string(own->fail_block ? "block" : "allow"));
    (void)json_object_set_new(d, "timeout_s", json_integer(own->timeout_ms / 1000));
    (void)json_object_set_new(d, "text_sha256", json_string(hex));

    static const struct {
        const char *key; /* of the definition */
        const char *from;
        int mapping; /* 0 metadata, 1 spec, 2 spec.hook */
    } copied[] = {
        { "agent", "agent", 0 },
        { "owner", "owner", 0 },
        { "tags", "tags", 0 },
        { "activation_mode", "activationMode", 1 },
        { "description", "description", 1 },
        { "sources", "sources", 1 },
        { "matcher", "matcher", 2 },
        { "model", "model", 2 },
        { "max_rejections", "maxRejections", 2 },
    };
    const json_t *const mappings[] = { metadata, spec, hook };

    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        json_t *value = json_object_get(mappings[copied[i].mapping], copied[i].from);

        if (value) {
            (void)json_object_set(d, copied[i].key, value);
        }
    }
    return d;
}

static bool set_definition(struct hookset *set, json_t *definition, struct slice text,
                           struct hook *made)
{
    size_t size = json_dumpb(definition, NULL, 0, JSON_COMPACT);
    char *bytes = size > 0 ? arena_alloc(&set->arena, size, 1) : NULL;

    if (!bytes || json_dumpb(definition, bytes, size, JSON_COMPACT) != size) {
        return false;
    }
    made->definition = (struct slice){ .ptr = bytes, .len = size };
    hookset_digest_add(set, made->definition);
    hookset_digest_add(set, text);
    return true;
}

/* ---- Together ------------------------------------------------------------- */

static bool make(const struct document *doc, const json_t *root, const char *script_dir,
                 struct hookset *set, struct hook *ret)
{
    const json_t *metadata = keys_mapping(root, "metadata");
    const json_t *spec = keys_mapping(root, "spec");
    const json_t *hook = keys_mapping(spec, "hook");
    struct sre_hook *own = ARENA_NEW(&set->arena, struct sre_hook);

    if (!own) {
        return false;
    }
    ret->own = own;
    ret->type = hook_type_from(keys_slice(hook, "type"));
    ret->tier = sre_rules_tier(metadata);
    set_options(spec, hook, own);
    ret->fail_mode = own->fail_block ? SLICE("block") : SLICE("allow");

    json_t *definition = describe(metadata, spec, hook, ret);
    bool ok = copy(set, keys_slice(metadata, "name"), &ret->name) &&
              copy(set, keys_slice(metadata, "agent"), &own->agent) &&
              copy(set, keys_slice(hook, "matcher"), &ret->matcher) &&
              copy_sources(set, spec, own) && set_program(doc, hook, script_dir, set, own) &&
              set_definition(set, definition, text_of(hook), ret);

    json_decref(definition);
    if (!ok) {
        matcher_free(own->matcher);
    }
    return ok;
}

bool sre_document_load(const struct document *doc, json_t *root, const char *script_dir,
                       struct hookset *set, struct hook *ret)
{
    size_t errors_before = doc->faults->errors;

    sre_rules_check(doc, root);
    if (doc->faults->errors > errors_before) {
        return false;
    }
    if (!make(doc, root, script_dir, set, ret)) {
        faults_add(doc->faults, FAULT_ERROR, yaml_file(doc->yaml), doc->line, NULL,
                   SRE_SET_TOO_LARGE);
        return false;
    }
    return true;
}

void sre_document_unload(const struct hook *hook)
{
    const struct sre_hook *own = hook->own;

    matcher_free(own->matcher);
}
