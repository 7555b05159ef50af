/*
 * keys: is a mapping that a person wrote made of known keys of the right types?
 *
 * The shape of a hook document is a table of rules for each of its mappings.
 * keys_check() tells every departure at once, with file, line and the path of
 * the key; what a value means is left to its contract.
 * Thread: the one that loads.
 */
#pragma once

#include <jansson.h>

#include "collector/base/fault.h"
#include "collector/base/yaml.h"

enum key_type { KEY_STRING, KEY_STRINGS, KEY_BOOL, KEY_INTEGER, KEY_MAPPING };

struct key_rule {
    const char *name;
    enum key_type type;
    bool required;
    const char *words; /* those that a string may be, parted by spaces; NULL: any */
};

/* One document of a file, while it is checked. */
struct document {
    const struct yaml *yaml;
    size_t line; /* where it begins */
    struct faults *faults;
};

/*
 * Check `object` (anything else is a fault) against n rules. `path` is its own
 * place, "" for the root. A missing key is told with the line of the document.
 */
void keys_check(const struct document *doc, json_t *object, const char *path,
                const struct key_rule *rules, size_t n);

/* Add a fault at object's key `name`; its path is `path`, a dot, the name. */
void keys_fault(const struct document *doc, enum fault_level level, const json_t *object,
                const char *path, const char *name, const char *fmt, ...) PRINTF_LIKE(6, 7);

/* The value of a key when it is of that type; NULL, or the fallback, when not. */
const char *keys_string(const json_t *object, const char *name);
struct slice keys_slice(const json_t *object, const char *name);
json_t *keys_mapping(const json_t *object, const char *name);
int64_t keys_integer(const json_t *object, const char *name, int64_t fallback);
bool keys_bool(const json_t *object, const char *name, bool fallback);
