/* config_read: from a mapping of hooktrail.yaml to fields of struct config. For config.c. */
#pragma once

#include "collector/base/config_schema.h"
#include "collector/base/yaml.h"

struct config_reader {
    struct config *c;
    const struct yaml *y; /* NULL: there is no file */
    struct faults *faults;
    const char *folder; /* absolute, of the file; relative paths start here */
};

/* A mapping of the file. */
struct config_map {
    json_t *map;      /* borrowed; NULL: it is not there, defaults alone */
    const char *path; /* "collect", "sinks.kafka"; NULL: the root */
    size_t line;      /* where it begins */
};

/* Add an error at a key of m. */
void config_fault(struct config_reader *r, const struct config_map *m, const char *key,
                  const char *fmt, ...) PRINTF_LIKE(4, 5);

/* A fault for every key of m that is none of n names, with what may have been meant. */
void config_refuse_unknown(struct config_reader *r, const struct config_map *m,
                           const char *const *names, size_t n);

/*
 * The mapping under `key` of m, with path `path`. False after a fault (it is something else);
 * ret->map is NULL when the key is not there, or empty.
 */
bool config_sub_map(struct config_reader *r, const struct config_map *m, const char *key,
                    const char *path, struct config_map *ret) MUST_CHECK;

/*
 * Read the settings of s in m: fields are set, *values gets every key, *origins
 * where each comes from. config_read_section() refuses all other keys, too.
 */
void config_read_settings(struct config_reader *r, const struct config_map *m,
                          const struct section *s, json_t *values, json_t *origins);
void config_read_section(struct config_reader *r, const struct config_map *m,
                         const struct section *s, json_t *values, json_t *origins);

/* `text` in the configuration's arena. */
const char *config_keep(struct config_reader *r, const char *text);

/* An absolute path: STATE at the start stands for the state folder. In the arena. */
const char *config_path(struct config_reader *r, const char *text);
