#include "collector/base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/config_dsn.h"
#include "collector/base/config_kafka.h"
#include "collector/base/config_listen.h"
#include "collector/base/config_read.h"
#include "collector/base/config_redact.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"

enum {
    ARENA_BYTES = 4 * 1024 * 1024, /* paths of 4 KiB, a few dozen of them */
    SECRET_BYTES = 16 * 1024,
    HOST_BYTES = 256,
};

/* Where configuration is looked for when nobody names a file. */
static const char *find_file(void)
{
    static const char *const places[] = { "hooktrail.yaml", "/etc/hooktrail/hooktrail.yaml" };
    const char *named = getenv("HOOKTRAIL_CONFIG");

    if (named && *named) {
        return named;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (access(places[i], F_OK) == 0) {
            return places[i];
        }
    }
    return NULL;
}

/* The folder of a file, absolute; of no file: the working folder. */
static const char *folder_of(struct config_reader *r, const char *file)
{
    char cwd[PATH_MAX];
    char whole[2 * PATH_MAX + 2];
    const char *slash = file ? strrchr(file, '/') : NULL;
    int len = slash ? (int)(slash - file) : 0;

    if (slash == file && file) {
        return "/";
    }
    if (file && file[0] == '/') {
        (void)snprintf(whole, sizeof(whole), "%.*s", len, file);
        return config_keep(r, whole);
    }
    if (!getcwd(cwd, sizeof(cwd))) {
        return "/";
    }
    (void)snprintf(whole, sizeof(whole), "%s%s%.*s", cwd, len > 0 ? "/" : "", len,
                   file ? file : "");
    return config_keep(r, whole);
}

/* root's state is the machine's; everyone else's is their own (XDG base directories). */
static const char *default_state(struct config_reader *r)
{
    const char *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char whole[PATH_MAX];

    if (geteuid() == 0) {
        return "/var/lib/hooktrail";
    }
    if (xdg && xdg[0] == '/') {
        (void)snprintf(whole, sizeof(whole), "%s/hooktrail", xdg);
    } else {
        (void)snprintf(whole, sizeof(whole), "%s/.local/state/hooktrail", home ? home : "");
    }
    return config_keep(r, whole);
}

static const char *without_end_slash(struct config_reader *r, const char *path)
{
    size_t len = strlen(path);
    char copy[PATH_MAX];

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)(len < PATH_MAX ? len : PATH_MAX - 1), path);
    return config_keep(r, copy);
}

/* `state` and `collector`, on which other values depend. */
static void read_names(struct config_reader *r, const struct config_map *root, const char *state)
{
    static const struct setting settings[] = {
        { .key = "state", .kind = SETTING_PATH, .field = offsetof(struct config, state) + 1 },
        { .key = "collector",
          .kind = SETTING_TEXT,
          .field = offsetof(struct config, collector) + 1 },
    };
    static const struct section names = { "", settings, 2 };
    struct config *c = r->c;
    char host[HOST_BYTES] = "";

    c->state = "";
    config_read_settings(r, root, &names, c->tree, c->origins);
    if (state) {
        struct config_reader here = { .c = c, .folder = folder_of(r, NULL) };

        c->state = config_path(&here, state);
        (void)json_object_set_new(c->origins, "state", json_string("--state"));
    } else if (!c->state) {
        c->state = default_state(r);
    }
    c->state = without_end_slash(r, c->state);
    if (!c->collector) {
        c->collector = gethostname(host, sizeof(host) - 1) == 0 && host[0] ? config_keep(r, host)
                                                                           : "localhost";
    }
    (void)json_object_set_new(c->tree, "state", json_string(c->state));
    (void)json_object_set_new(c->tree, "collector", json_string(c->collector));
}

/* One section, which has defaults when it is not there. */
static void read_section(struct config_reader *r, const struct config_map *root,
                         const struct section *s)
{
    struct config_map m;
    json_t *values = json_object();
    json_t *origins = json_object();

    if (config_sub_map(r, root, s->name, s->name, &m)) {
        config_read_section(r, &m, s, values, origins);
    }
    (void)json_object_set_new(r->c->tree, s->name, values);
    (void)json_object_set_new(r->c->origins, s->name, origins);
}

/*
 * A mapping of which the user chooses the keys: contracts and sinks. Those that
 * are there are read, in the order of the file.
 */
static void read_chosen(struct config_reader *r, const struct config_map *parent,
                        const struct section *all, size_t n)
{
    const char *names[CONFIG_LIST_MAX];
    json_t *values = json_object();
    json_t *origins = json_object();
    const char *key;
    json_t *ignored;

    for (size_t i = 0; i < n; i++) {
        names[i] = all[i].name;
    }
    config_refuse_unknown(r, parent, names, n);
    json_object_foreach(parent->map, key, ignored)
    {
        (void)ignored;
        for (size_t i = 0; i < n; i++) {
            struct config_map m;
            char path[64];

            (void)snprintf(path, sizeof(path), "%s.%s", parent->path, all[i].name);
            if (strcmp(key, all[i].name) == 0 && config_sub_map(r, parent, key, path, &m)) {
                json_t *v = json_object();
                json_t *from = json_object();

                config_read_section(r, &m, &all[i], v, from);
                (void)json_object_set_new(values, key, v);
                (void)json_object_set_new(origins, key, from);
            }
        }
    }
    (void)json_object_set_new(r->c->tree, parent->path, values);
    (void)json_object_set_new(r->c->origins, parent->path, origins);
}

/* SQLite alone, when nothing is said of sinks. */
static void read_default_sink(struct config_reader *r)
{
    const struct config_map none = { .path = "sinks.sqlite" };
    json_t *values = json_object();
    json_t *origins = json_object();

    config_read_section(r, &none, &config_sinks[0], values, origins);
    (void)json_object_set_new(r->c->tree, "sinks", json_pack("{so}", "sqlite", values));
    (void)json_object_set_new(r->c->origins, "sinks", json_pack("{so}", "sqlite", origins));
}

static void read_sinks(struct config_reader *r, const struct config_map *root)
{
    struct config *c = r->c;
    struct config_map m;
    const char *key;
    json_t *v;

    if (!config_sub_map(r, root, "sinks", "sinks", &m)) {
        return;
    }
    if (m.map && json_object_size(m.map) == 0) {
        config_fault(r, root, "sinks", "names no sink; without this key records go to sqlite");
    } else if (m.map) {
        read_chosen(r, &m, config_sinks, sizeof(config_sinks) / sizeof(config_sinks[0]));
    } else {
        read_default_sink(r);
    }
    json_object_foreach(json_object_get(c->tree, "sinks"), key, v)
    {
        c->sinks[c->n_sinks++] = (struct config_sink){ .name = config_keep(r, key), .settings = v };
    }
}

static void read_contracts(struct config_reader *r, const struct config_map *root)
{
    struct config_map m;

    if (config_sub_map(r, root, "contracts", "contracts", &m)) {
        read_chosen(r, &m, config_contracts,
                    sizeof(config_contracts) / sizeof(config_contracts[0]));
    }
}

const struct config_sink *config_find_sink(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_sinks; i++) {
        if (strcmp(c->sinks[i].name, name) == 0) {
            return &c->sinks[i];
        }
    }
    return NULL;
}

/* A pair of files, of which one alone can do nothing. */
static void check_tls(struct config_reader *r, const struct config_map *root, const char *section,
                      const char *cert, const char *key)
{
    struct config_map m;

    if ((cert == NULL) != (key == NULL) && config_sub_map(r, root, section, section, &m)) {
        config_fault(r, &m, cert ? "tls_cert" : "tls_key", "needs %s beside it",
                     cert ? "tls_key" : "tls_cert");
    }
}

/* Tokens that cross a network in the clear are legal and surely unmeant. */
static void check_listeners(struct config_reader *r, const struct config_map *root,
                            const char *section, const char *const *listen, const char *cert)
{
    const struct yaml *y = r->y;
    const json_t *map = json_object_get(root->map, section);
    char path[64];

    (void)snprintf(path, sizeof(path), "%s.listen", section);
    for (; *listen; listen++) {
        if (!cert && config_listener_is_remote(*listen)) {
            faults_add(r->faults, FAULT_WARNING, yaml_file(y), yaml_key_line(y, map, "listen"),
                       path, "%s without tls_cert: tokens cross the network in the clear", *listen);
        }
    }
}

/* The mapping of a sink that is configured. */
static bool sink_map(struct config_reader *r, const struct config_map *root, const char *name,
                     const char *path, struct config_map *ret)
{
    struct config_map sinks;

    return config_find_sink(r->c, name) && config_sub_map(r, root, "sinks", "sinks", &sinks) &&
           config_sub_map(r, &sinks, name, path, ret) && ret->map;
}

/* A value that only says where it stands is looked at when it is used. */
static void check_properties(struct config_reader *r, const struct config_map *m, json_t *checked)
{
    const char *name;
    json_t *v;

    json_object_foreach(checked, name, v)
    {
        const char *value = json_string_value(v);
        struct err err;

        if (!config_is_reference(value) && !kafka_property_check(name, value, &err)) {
            config_fault(r, m, name, "%s", err.text);
        }
    }
}

static void check_kafka(struct config_reader *r, const struct config_map *kafka)
{
    const struct config_sink *sink = config_find_sink(r->c, "kafka");
    struct config_map m;

    if (!config_sub_map(r, kafka, "properties", "sinks.kafka.properties", &m)) {
        return;
    }
    if (!json_object_get(m.map, "bootstrap.servers") &&
        !json_object_get(m.map, "metadata.broker.list")) {
        config_fault(r, kafka, "properties", "bootstrap.servers is missing");
    }
    if (sink) {
        check_properties(r, &m, json_object_get(sink->settings, "properties"));
    }
}

/* What no server can mend is told here, not by a sink that tries for ever. */
static void check_sinks(struct config_reader *r, const struct config_map *root)
{
    struct config_map m;
    struct err err;

    if (sink_map(r, root, "postgres", "sinks.postgres", &m)) {
        const char *dsn = json_string_value(json_object_get(m.map, "dsn"));

        if (!config_is_reference(dsn) && !dsn_check(dsn, &err)) {
            config_fault(r, &m, "dsn", "%s", err.text);
        }
    }
    if (sink_map(r, root, "kafka", "sinks.kafka", &m)) {
        check_kafka(r, &m);
    }
}

/* What depends on more than one key. */
static void check_all(struct config_reader *r, const struct config_map *root)
{
    const struct config *c = r->c;

    if (!config_find_sink(c, c->serve.store) && json_object_get(root->map, "serve")) {
        struct config_map m;

        if (config_sub_map(r, root, "serve", "serve", &m) && json_object_get(m.map, "store")) {
            config_fault(r, &m, "store", "there is no sink '%s' to read from", c->serve.store);
        }
    }
    check_sinks(r, root);
    check_tls(r, root, "collect", c->collect.tls_cert, c->collect.tls_key);
    check_tls(r, root, "serve", c->serve.tls_cert, c->serve.tls_key);
    check_listeners(r, root, "collect", c->collect.listen, c->collect.tls_cert);
    check_listeners(r, root, "serve", c->serve.listen, c->serve.tls_cert);
}

/* The one document of the file; an empty file is an empty mapping. */
static bool root_of(struct config_reader *r, struct config_map *ret)
{
    const struct yaml *y = r->y;

    *ret = (struct config_map){ .line = 1 };
    if (!y || yaml_count(y) == 0 || json_is_null(yaml_root(y, 0))) {
        return true;
    }
    if (yaml_count(y) > 1) {
        faults_add(r->faults, FAULT_ERROR, yaml_file(y), yaml_root_line(y, 1), NULL,
                   "there must be one document");
        return false;
    }
    if (!json_is_object(yaml_root(y, 0))) {
        faults_add(r->faults, FAULT_ERROR, yaml_file(y), yaml_root_line(y, 0), NULL,
                   "must be a mapping of keys");
        return false;
    }
    ret->map = yaml_root(y, 0);
    ret->line = yaml_root_line(y, 0);
    return true;
}

static void read_all(struct config_reader *r, const char *state)
{
    static const char *const known[] = { "state",   "collector", "contracts", "collect",
                                         "journal", "sinks",     "serve" };
    struct config_map root;

    if (!root_of(r, &root)) {
        return;
    }
    config_refuse_unknown(r, &root, known, sizeof(known) / sizeof(known[0]));
    read_names(r, &root, state);
    read_contracts(r, &root);
    read_section(r, &root, &config_collect);
    read_section(r, &root, &config_journal);
    read_sinks(r, &root);
    read_section(r, &root, &config_serve);
    if (r->faults->errors == 0) {
        check_all(r, &root);
    }
}

static struct config *new_config(void)
{
    struct config *c = xcalloc(1, sizeof(*c));

    arena_init(&c->arena, ARENA_BYTES);
    c->tree = json_object();
    c->origins = json_object();
    return c;
}

/* The sinks keep the values; what is shown is a copy without passwords. */
static void hide_passwords(struct config *c)
{
    c->values = c->tree;
    c->tree = config_redact(c->values);
}

struct config *config_load(const struct config_options *o, struct faults *faults)
{
    const char *file = o->file ? o->file : find_file();
    size_t errors = faults->errors;
    struct yaml *y = file ? yaml_load(file, faults) : NULL;

    if (file && !y) {
        return NULL;
    }

    struct config *c = new_config();
    struct config_reader r = { .c = c, .y = y, .faults = faults };

    c->file = file ? config_keep(&r, file) : NULL;
    r.folder = folder_of(&r, file);
    read_all(&r, o->state);
    yaml_close(y);
    hide_passwords(c);
    if (faults->errors > errors) {
        config_free(c);
        return NULL;
    }
    return c;
}

void config_free(struct config *c)
{
    if (!c) {
        return;
    }
    json_decref(c->tree);
    json_decref(c->values);
    json_decref(c->origins);
    arena_clear(&c->arena);
    free(c);
}

/* The first line of a file that holds a secret. */
static bool secret_from_file(const char *path, struct arena *a, const char **ret, struct err *err)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[SECRET_BYTES];
    struct slice line;
    struct slice rest;
    struct slice copy;

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }

    ssize_t n = read(fd, text, sizeof(text));

    if (n < 0) {
        return err_errno(err, errno, "%s", path);
    }
    (void)slice_cut((struct slice){ .ptr = text, .len = (size_t)n }, '\n', &line, &rest);
    if (line.len == 0 || line.len == sizeof(text) || memchr(line.ptr, '\0', line.len)) {
        return err_set(err, ERR_INVALID, "%s: its first line is no secret", path);
    }
    if (!arena_dup(a, line, &copy)) {
        return err_set(err, ERR_TOO_BIG, "%s: no room for the secret", path);
    }
    *ret = copy.ptr;
    return true;
}

bool config_is_reference(const char *value)
{
    return strncmp(value, "env:", 4) == 0 || strncmp(value, "file:", 5) == 0;
}

bool config_secret(const char *value, struct arena *a, const char **ret, struct err *err)
{
    struct slice copy;
    const char *text = value;

    if (strncmp(value, "file:", 5) == 0) {
        return secret_from_file(value + 5, a, ret, err);
    }
    if (strncmp(value, "env:", 4) == 0) {
        text = getenv(value + 4);
        if (!text || !*text) {
            return err_set(err, ERR_INVALID, "the environment variable %s is not set", value + 4);
        }
    }
    if (!arena_dup(a, slice_from_cstr(text), &copy)) {
        return err_set(err, ERR_TOO_BIG, "no room for a secret");
    }
    *ret = copy.ptr;
    return true;
}
