#include "collector/base/config_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/buf.h"
#include "collector/base/config_listen.h"
#include "collector/base/suggest.h"

enum {
    PATH_BYTES = 128, /* of a key's path */
    TEXT_MAX = 4096,  /* bytes of one value; a file name is at most as long */
    NAMES_MAX = 32,   /* keys of one mapping of ours */
};

const char *config_keep(struct config_reader *r, const char *text)
{
    struct slice copy;

    /* A file of 4 MiB cannot fill the arena: texts are bounded, and so are lists. */
    if (!arena_dup(&r->c->arena, slice_from_cstr(text), &copy)) {
        abort();
    }
    return copy.ptr;
}

const char *config_path(struct config_reader *r, const char *text)
{
    CLEANUP(buf_done) struct buf b;
    bool in_state = strcmp(text, "STATE") == 0 || strncmp(text, "STATE/", 6) == 0;

    buf_init(&b, (size_t)2 * TEXT_MAX);
    if (in_state) {
        buf_addf(&b, "%s%s", r->c->state, text + strlen("STATE"));
    } else if (text[0] == '/') {
        buf_addf(&b, "%s", text);
    } else {
        buf_addf(&b, "%s/%s", strcmp(r->folder, "/") == 0 ? "" : r->folder, text);
    }
    return config_keep(r, buf_cstr(&b));
}

static void full_path(char path[PATH_BYTES], const char *section, const char *key)
{
    (void)snprintf(path, PATH_BYTES, "%s%s%s", section ? section : "", section ? "." : "", key);
}

void config_fault(struct config_reader *r, const struct config_map *m, const char *key,
                  const char *fmt, ...)
{
    char path[PATH_BYTES];
    char text[TEXT_MAX];
    va_list ap;

    full_path(path, m->path, key);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    faults_add(r->faults, FAULT_ERROR, yaml_file(r->y), yaml_key_line(r->y, m->map, key), path,
               "%s", text);
}

static void add_names(struct buf *b, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_addf(b, "%s%s", i > 0 ? ", " : "", names[i]);
    }
}

void config_refuse_unknown(struct config_reader *r, const struct config_map *m,
                           const char *const *names, size_t n)
{
    const char *key;
    json_t *value;

    json_object_foreach(m->map, key, value)
    {
        const char *near = suggest_name(slice_from_cstr(key), names, n);

        if (near && strcmp(near, key) == 0) {
            continue;
        }
        if (near) {
            config_fault(r, m, key, "is not known; did you mean '%s'?", near);
        } else {
            CLEANUP(buf_done) struct buf all = { .max_bytes = TEXT_MAX };

            add_names(&all, names, n);
            config_fault(r, m, key, "is not known; allowed are: %s", buf_cstr(&all));
        }
    }
}

/* What a person would call the type of a value. */
static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "a mapping";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "empty";
    }
    return "";
}

/* One key of a section while it is read. */
struct place {
    struct config_reader *r;
    const struct config_map *m;
    const struct setting *s;
    json_t *value; /* borrowed: as it stands in the file */
};

/* "must be …, not …". Returns NULL. */
static json_t *refuse(const struct place *p, const char *wanted)
{
    char number[32];
    const char *is = type_name(p->value);

    if (json_is_integer(p->value)) {
        (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
                       json_integer_value(p->value));
        is = number;
    }
    if (json_is_string(p->value)) {
        config_fault(p->r, p->m, p->s->key, "must be %s, not '%.60s'", wanted,
                     json_string_value(p->value));
    } else {
        config_fault(p->r, p->m, p->s->key, "must be %s, not %s", wanted, is);
    }
    return NULL;
}

static json_t *number(const struct place *p)
{
    char wanted[80];
    json_int_t v = json_integer_value(p->value);

    if (json_is_integer(p->value) && v >= p->s->min && v <= p->s->max) {
        return json_integer(v);
    }
    (void)snprintf(wanted, sizeof(wanted), "a whole number from %" PRId64 " to %" PRId64, p->s->min,
                   p->s->max);
    return refuse(p, wanted);
}

static json_t *word(const struct place *p)
{
    CLEANUP(buf_done) struct buf wanted = { .max_bytes = TEXT_MAX };
    const char *v = json_string_value(p->value);
    size_t n = 0;

    while (n < SETTING_WORDS && p->s->words[n]) {
        if (v && strcmp(v, p->s->words[n]) == 0) {
            return json_string(v);
        }
        n++;
    }
    buf_addf(&wanted, "one of ");
    add_names(&wanted, p->s->words, n);
    return refuse(p, buf_cstr(&wanted));
}

/* One line without control characters, not empty. */
static bool is_line(const json_t *v)
{
    const char *text = json_string_value(v);

    if (!text || !*text || json_string_length(v) > TEXT_MAX / 2) {
        return false;
    }
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

static json_t *text(const struct place *p)
{
    const char *wanted = p->s->kind == SETTING_PATH ? "a path" : "one line of text";

    if (!is_line(p->value)) {
        return refuse(p, wanted);
    }

    const char *v = json_string_value(p->value);

    if (p->s->kind == SETTING_PATH) {
        return json_string(config_path(p->r, v));
    }
    if (p->s->kind == SETTING_SECRET && strncmp(v, "file:", 5) == 0) {
        return json_sprintf("file:%s", config_path(p->r, v + 5));
    }
    return json_string(v);
}

/* An item of a list, resolved; NULL after a fault. */
static json_t *item(const struct place *p, size_t i, const json_t *v)
{
    char wrong[128];

    if (!is_line(v)) {
        config_fault(p->r, p->m, p->s->key, "entry %zu must be one line of text, not %s", i + 1,
                     type_name(v));
        return NULL;
    }
    if (p->s->kind == SETTING_TEXTS) {
        return json_string(json_string_value(v));
    }

    const char *listener =
        config_listener(p->r, p->m->path, json_string_value(v), wrong, sizeof(wrong));

    if (!listener) {
        config_fault(p->r, p->m, p->s->key, "'%.60s': %s", json_string_value(v), wrong);
        return NULL;
    }
    return json_string(listener);
}

static bool contains(const json_t *list, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (json_equal(json_array_get(list, i), v)) {
            return true;
        }
    }
    return false;
}

static json_t *list(const struct place *p)
{
    if (!json_is_array(p->value)) {
        return refuse(p, "a list");
    }
    if (json_array_size(p->value) > CONFIG_LIST_MAX) {
        config_fault(p->r, p->m, p->s->key, "has more than %d entries", CONFIG_LIST_MAX);
        return NULL;
    }

    json_t *all = json_array();

    for (size_t i = 0; i < json_array_size(p->value); i++) {
        json_t *one = item(p, i, json_array_get(p->value, i));

        if (one && contains(all, one)) {
            config_fault(p->r, p->m, p->s->key, "'%s' stands twice", json_string_value(one));
        }
        if (one) {
            (void)json_array_append_new(all, one);
        }
    }
    return all;
}

/* Properties for a library: "linger.ms: 5" means "5". */
static json_t *options(const struct place *p)
{
    if (!json_is_object(p->value)) {
        return refuse(p, "a mapping");
    }

    json_t *all = json_object();
    const char *key;
    json_t *v;

    json_object_foreach(p->value, key, v)
    {
        if (json_is_string(v)) {
            (void)json_object_set(all, key, v);
        } else if (json_is_integer(v) || json_is_real(v) || json_is_boolean(v)) {
            char *z = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

            (void)json_object_set_new(all, key, json_string(z));
            free(z);
        } else {
            config_fault(p->r, p->m, p->s->key, "'%.60s' must be a text or a number", key);
        }
    }
    return all;
}

static json_t *flag(const struct place *p)
{
    return json_is_boolean(p->value) ? json_boolean(json_is_true(p->value))
                                     : refuse(p, "true or false");
}

/* The checked value; NULL after a fault. */
static json_t *read_value(const struct place *p)
{
    switch (p->s->kind) {
    case SETTING_NUMBER:
        return number(p);
    case SETTING_FLAG:
        return flag(p);
    case SETTING_SWITCH:
    case SETTING_WORD:
        return word(p);
    case SETTING_TEXT:
    case SETTING_PATH:
    case SETTING_SECRET:
        return text(p);
    case SETTING_LISTENERS:
    case SETTING_TEXTS:
        return list(p);
    case SETTING_OPTIONS:
        return options(p);
    }
    return NULL;
}

static json_t *default_value(const struct place *p)
{
    const struct setting *s = p->s;
    char wrong[128];

    switch (s->kind) {
    case SETTING_NUMBER:
        return json_integer(s->number);
    case SETTING_FLAG:
        return json_boolean(s->number);
    case SETTING_SWITCH:
    case SETTING_WORD:
        return json_string(s->words[0]);
    case SETTING_PATH:
        return s->text ? json_string(config_path(p->r, s->text)) : json_null();
    case SETTING_TEXT:
    case SETTING_SECRET:
        return s->text ? json_string(s->text) : json_null();
    case SETTING_LISTENERS:
        return json_pack("[s]", config_listener(p->r, p->m->path, s->text, wrong, sizeof(wrong)));
    case SETTING_TEXTS:
        return json_array();
    case SETTING_OPTIONS:
        return json_object();
    }
    return NULL;
}

/* Put a checked value into its field. */
static void set_field(const struct place *p, const json_t *v)
{
    char *field = (char *)p->r->c + p->s->field - 1;
    const char *z = json_string_value(v);

    switch (p->s->kind) {
    case SETTING_NUMBER:
        *(int64_t *)(void *)field = json_integer_value(v) * (p->s->unit > 0 ? p->s->unit : 1);
        break;
    case SETTING_FLAG:
        *(bool *)(void *)field = json_is_true(v);
        break;
    case SETTING_SWITCH:
        *(bool *)(void *)field = strcmp(z, p->s->words[1]) == 0;
        break;
    case SETTING_WORD:
    case SETTING_TEXT:
    case SETTING_PATH:
    case SETTING_SECRET:
        *(const char **)(void *)field = z ? config_keep(p->r, z) : NULL;
        break;
    case SETTING_LISTENERS:
    case SETTING_TEXTS:
        for (size_t i = 0; i < json_array_size(v); i++) {
            ((const char **)(void *)field)[i] =
                config_keep(p->r, json_string_value(json_array_get(v, i)));
        }
        break;
    case SETTING_OPTIONS:
        break;
    }
}

bool config_sub_map(struct config_reader *r, const struct config_map *m, const char *key,
                    const char *path, struct config_map *ret)
{
    json_t *v = json_object_get(m->map, key);

    *ret = (struct config_map){ .path = path };
    if (!v) {
        return true;
    }
    if (!json_is_object(v) && !json_is_null(v)) {
        config_fault(r, m, key, "must be a mapping, not %s", type_name(v));
        return false;
    }
    ret->map = json_is_null(v) ? NULL : v;
    ret->line = yaml_key_line(r->y, m->map, key);
    return true;
}

/* "default", or "FILE:LINE" of a key; new. */
static json_t *origin_of(const struct config_reader *r, const struct config_map *m, const char *key)
{
    if (!json_object_get(m->map, key)) {
        return json_string("default");
    }
    return json_sprintf("%s:%zu", yaml_file(r->y), yaml_key_line(r->y, m->map, key));
}

void config_read_settings(struct config_reader *r, const struct config_map *m,
                          const struct section *s, json_t *values, json_t *origins)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *key = s->settings[i].key;
        struct place p = {
            .r = r, .m = m, .s = &s->settings[i], .value = json_object_get(m->map, key)
        };
        json_t *v = p.value ? read_value(&p) : default_value(&p);

        if (!p.value && p.s->required) {
            char path[PATH_BYTES];

            full_path(path, m->path, key);
            faults_add(r->faults, FAULT_ERROR, yaml_file(r->y), m->line, path, "is missing");
        }
        if (v && p.s->field > 0) {
            set_field(&p, v);
        }
        (void)json_object_set_new(values, key, v);
        (void)json_object_set_new(origins, key, origin_of(r, m, key));
    }
}

void config_read_section(struct config_reader *r, const struct config_map *m,
                         const struct section *s, json_t *values, json_t *origins)
{
    const char *names[NAMES_MAX];

    for (size_t i = 0; i < s->n; i++) {
        names[i] = s->settings[i].key;
    }
    config_refuse_unknown(r, m, names, s->n);
    config_read_settings(r, m, s, values, origins);
}
