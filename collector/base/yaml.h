/*
 * yaml: a YAML file that a person wrote, as jansson trees that know their lines.
 *
 * libyaml reads, jansson holds. YAML 1.1's core types are taken (null, true and
 * false, integers, floats); everything quoted is a string, and so are yes, no,
 * on and off. A key that stands twice in one mapping, an anchor that expands
 * past the limits, a tag, and a file over YAML_MAX_BYTES are faults.
 */
#pragma once

#include <jansson.h>

#include "collector/base/fault.h"

enum {
    YAML_MAX_BYTES = 4 * 1024 * 1024, /* a hook set of 64 scripts of 64 KB */
    YAML_MAX_DEPTH = 64,
    YAML_MAX_NODES = 200000, /* aliases counted each time they are used */
};

struct yaml; /* opaque */

/*
 * Read `text` as a stream of documents. `file` is the name for messages, copied.
 * NULL after a fault, which has then been added to *faults with its line.
 * Release with yaml_close().
 */
struct yaml *yaml_parse(const char *file, struct slice text, struct faults *faults) MUST_CHECK;

/* The same, of the file at `path`; a file that cannot be read is a fault. */
struct yaml *yaml_load(const char *path, struct faults *faults) MUST_CHECK;

/* Accepts NULL. Not yaml_free(): libyaml has a function of that name, which ours would replace. */
void yaml_close(struct yaml *y);

/* How many documents, and the root of each, borrowed. An empty document is JSON null. */
size_t yaml_count(const struct yaml *y);
json_t *yaml_root(const struct yaml *y, size_t i);

/* The name given to yaml_parse(). */
const char *yaml_file(const struct yaml *y);

/* The line, from 1, where document i begins. */
size_t yaml_root_line(const struct yaml *y, size_t i);

/* The line of a key of `object`; 0 when there is none. */
size_t yaml_key_line(const struct yaml *y, const json_t *object, const char *key);
