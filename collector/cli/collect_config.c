/* config: print the effective configuration, and where each value comes from. */
#include "collector/cli/commands.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 256 };

/* A value as it would stand in the file; lists are joined. */
static char *value_text(const json_t *v)
{
    const char *plain = json_is_null(v) ? "-" : json_string_value(v);
    char *text = plain ? strdup(plain) : json_dumps(v, JSON_ENCODE_ANY);

    if (!text) {
        abort(); /* no memory */
    }
    return text;
}

static void add_row(struct cli_table *t, const char *key, const json_t *v, const json_t *origin)
{
    char *text = value_text(v);
    const char *from = json_string_value(origin);
    bool is_default = from && strcmp(from, "default") == 0;

    cli_table_cell(t, COLOR_NONE, slice_from_cstr(key));
    cli_table_cell(t, is_default ? COLOR_DIM : COLOR_BOLD, slice_from_cstr(text));
    cli_table_cell(t, is_default ? COLOR_DIM : COLOR_NONE, slice_from_cstr(from));
    free(text);
}

/* One row a leaf: what has an origin that is a text. */
static void add_rows(struct cli_table *t, const char *prefix, json_t *tree, const json_t *origins)
{
    const char *key;
    json_t *v;

    json_object_foreach(tree, key, v)
    {
        const json_t *origin = json_object_get(origins, key);
        char path[KEY_BYTES];

        (void)snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(origin)) {
            add_rows(t, path, v, origin);
        } else {
            add_row(t, path, v, origin);
        }
    }
}

static void print_table(const struct cli *cli, const struct config *c)
{
    static const char *const heads[] = { "=KEY", "VALUE", "FROM" };
    CLEANUP(cli_table_done) struct cli_table t;

    if (c->file) {
        (void)printf("Read from %s\n\n", c->file);
    } else {
        (void)printf("There is no configuration file: all values are defaults.\n\n");
    }
    cli_table_init(&t, cli, heads, 3);
    add_rows(&t, "", c->tree, c->origins);
    cli_table_print(&t);
}

static int print_json(const struct cli *cli, const struct config *c)
{
    json_t *all = json_pack("{so?,sO,sO}", "file", c->file ? json_string(c->file) : NULL, "config",
                            c->tree, "origins", c->origins);
    int code = cli_print_json(cli, all);

    json_decref(all);
    return code;
}

/* Of a dotted key: a text as it is, each entry of a list, each name in a mapping, on a line. */
static int print_one(const struct cli *cli, const struct config *c, const char *path)
{
    struct slice rest = slice_from_cstr(path);
    json_t *v = c->tree;
    bool more = true;

    while (more && v) {
        struct slice key;
        char name[KEY_BYTES];

        more = slice_cut(rest, '.', &key, &rest);
        (void)snprintf(name, sizeof(name), "%" SLICE_FMT, SLICE_ARG(key));
        v = json_object_get(v, name);
    }
    if (!v) {
        (void)cli_usage(cli, "there is no key '%s'", path);
        return CLI_NEGATIVE;
    }

    if (cli->json) {
        return cli_print_json(cli, v);
    }

    const char *key;
    json_t *item;

    json_object_foreach(v, key, item)
    {
        (void)puts(key);
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        (void)puts(json_string_value(json_array_get(v, i)));
    }
    if (!json_is_object(v) && !json_is_array(v)) {
        char *text = value_text(v);

        (void)puts(text);
        free(text);
    }
    return CLI_DONE;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const char *get = NULL;
    const struct cli_option options[] = { { .name = "get", .value = &get }, { 0 } };

    if (!cli_options_only(cli, argc, argv, options)) {
        return CLI_USAGE;
    }

    struct config *c = cli_config(cli);
    int code = CLI_DONE;

    if (!c) {
        return CLI_USAGE;
    }
    if (get) {
        code = print_one(cli, c, get);
    } else if (cli->json) {
        code = print_json(cli, c);
    } else {
        print_table(cli, c);
    }
    config_free(c);
    return code;
}

const struct cli_command config_command = {
    "config",
    run,
    "[--json] [--get KEY]",
    "Print the effective configuration, and where each value comes from: the default,\n"
    "a line of the file, or an option. Passwords are shown as ***.\n"
    "\n"
    "The file is --config FILE, else $HOOKTRAIL_CONFIG, else ./hooktrail.yaml, else\n"
    "/etc/hooktrail/hooktrail.yaml; without one, everything has its default.\n"
    "\n"
    "  --get KEY  print the value of one key alone, e.g. --get serve.listen; with --json as JSON\n"
    "\n"
    "Exit codes: 0 printed; 1 no such key; 2 the configuration has faults, one line each on stderr.",
};
