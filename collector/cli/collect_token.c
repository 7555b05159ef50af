/* hooktrail token: make, list and revoke bearer tokens; each change leaves an admin record. */
#include "collector/cli/commands.h"

#include <limits.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/cli/cli_admin.h"
#include "collector/web/token.h"

enum {
    LIST_BYTES = 4 * 1024 * 1024,
};

struct place {
    struct config *config;
    char path[PATH_MAX]; /* of tokens.json */
};

/* ---- The admin record ------------------------------------------------------- */

static bool record(const struct config *c, const char *action, struct slice details,
                   struct err *err)
{
    struct journal *j = NULL;
    bool ok = admin_open(c, &j, err) && admin_record(j, c, action, details, err);

    admin_close(c, j);
    return ok;
}

static void describe(struct buf *out, const char *name, const char *scopes, const char *expires)
{
    buf_add(out, SLICE("{\"name\":"));
    buf_add_json_string(out, slice_from_cstr(name));
    if (scopes) {
        buf_add(out, SLICE(",\"scopes\":"));
        buf_add_json_string(out, slice_from_cstr(scopes));
    }
    if (expires) {
        buf_add(out, SLICE(",\"expires\":"));
        buf_add_json_string(out, slice_from_cstr(expires));
    }
    buf_add_char(out, '}');
}

/* ---- Create ----------------------------------------------------------------- */

/* "30d", "12h", "15m" from now. */
static bool read_expiry(const char *text, int64_t *ret_us, struct err *err)
{
    static const char units[] = "mhd";
    static const int64_t seconds[] = { 60, 3600, 86400 };
    size_t len = strlen(text);
    const char *unit = len > 1 ? strchr(units, text[len - 1]) : NULL;
    uint64_t n;

    if (!unit || !slice_to_u64((struct slice){ .ptr = text, .len = len - 1 }, &n) || n == 0 ||
        n > 36500) {
        return err_set(err, ERR_INVALID, "--expires '%s': must be a number and m, h or d, as 30d",
                       text);
    }
    *ret_us = clock_now_us() + (int64_t)n * seconds[unit - units] * 1000000;
    return true;
}

static int print_created(const struct cli *cli, const char *name, const char *token,
                         const char *scopes, const char *expires)
{
    if (cli->json) {
        json_t *v = json_pack("{ss,ss,ss,ss*}", "name", name, "token", token, "scopes", scopes,
                              "expires", expires);
        int code = cli_print_json(cli, v);

        json_decref(v);
        return code;
    }
    (void)printf("%s\n", token);
    (void)fprintf(stderr, "This is the only time that the token is shown. Scopes: %s%s%s\n", scopes,
                  expires ? ", until " : "", expires ? expires : "");
    return CLI_DONE;
}

static bool create(const struct place *p, const char *name, unsigned scopes, int64_t expires_us,
                   char ret_token[TOKEN_TEXT_SIZE], struct err *err)
{
    CLEANUP(buf_done) struct buf details;
    char words[64];
    char until[CLOCK_TEXT_SIZE];

    token_scopes_format(scopes, words, sizeof(words));
    clock_format(expires_us, until);
    buf_init(&details, 4096);
    describe(&details, name, words, expires_us > 0 ? until : NULL);
    if (!token_create(p->path, slice_from_cstr(name), scopes, expires_us, ret_token, err)) {
        return false;
    }
    if (!record(p->config, "token_create", buf_slice(&details), err)) {
        struct err ignored; /* the first failure is the one to tell */

        (void)!token_revoke(p->path, slice_from_cstr(name), &ignored);
        return err_wrap(err, "no token was made");
    }
    return true;
}

/* A token that nobody has seen must not open anything. */
static int take_back(const struct cli *cli, const struct place *p, const char *name)
{
    CLEANUP(buf_done) struct buf details;
    struct err err;

    buf_init(&details, 4096);
    describe(&details, name, NULL, NULL);
    if (!token_revoke(p->path, slice_from_cstr(name), &err) ||
        !record(p->config, "token_revoke", buf_slice(&details), &err)) {
        return cli_fail(cli, &err);
    }
    (void)fprintf(stderr,
                  "hooktrail token: the token could not be shown, so it has been revoked\n");
    return CLI_FAILED;
}

static int run_create(const struct cli *cli, const struct place *p, int argc, char **argv)
{
    const char *scopes_text = NULL;
    const char *expires_text = NULL;
    const struct cli_option options[] = { { "scopes", .value = &scopes_text },
                                          { "expires", .value = &expires_text },
                                          { 0 } };
    int first = cli_options(cli, argc, argv, options);
    char token[TOKEN_TEXT_SIZE];
    char words[64];
    char until[CLOCK_TEXT_SIZE];
    unsigned scopes = 0;
    int64_t expires_us = 0;
    struct err err;

    if (first < 0) {
        return CLI_USAGE;
    }
    if (first != argc - 1 || !scopes_text) {
        return cli_usage(cli, "create takes a NAME and --scopes LIST");
    }
    if (!token_scopes_parse(slice_from_cstr(scopes_text), &scopes, &err) ||
        (expires_text && !read_expiry(expires_text, &expires_us, &err)) ||
        !create(p, argv[first], scopes, expires_us, token, &err)) {
        return cli_fail(cli, &err);
    }
    token_scopes_format(scopes, words, sizeof(words));
    clock_format(expires_us, until);

    int code = print_created(cli, argv[first], token, words, expires_us > 0 ? until : NULL);

    return code == CLI_DONE && cli_flush(cli) ? CLI_DONE : take_back(cli, p, argv[first]);
}

/* ---- List and revoke -------------------------------------------------------- */

static int print_list(const struct cli *cli, const struct token_info *infos, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        char scopes[64];
        char created[CLOCK_TEXT_SIZE];
        char expires[CLOCK_TEXT_SIZE];

        token_scopes_format(infos[i].scopes, scopes, sizeof(scopes));
        clock_format(infos[i].created_us, created);
        clock_format(infos[i].expires_us, expires);
        (void)json_array_append_new(
            list, json_pack("{ss%,ss%,ss,ss,ss*}", "id", infos[i].id.ptr, infos[i].id.len, "name",
                            infos[i].name.ptr, infos[i].name.len, "scopes", scopes, "created",
                            created, "expires", infos[i].expires_us > 0 ? expires : NULL));
    }

    int code = cli_print_json(cli, list);

    json_decref(list);
    return code;
}

static void print_table(const struct cli *cli, const struct token_info *infos, size_t n)
{
    static const char *const heads[] = { "ID", "NAME", "SCOPES", "CREATED", "EXPIRES" };
    CLEANUP(cli_table_done) struct cli_table t;

    cli_table_init(&t, cli, heads, 5);
    for (size_t i = 0; i < n; i++) {
        char text[64];

        cli_table_cell(&t, COLOR_DIM, infos[i].id);
        cli_table_cell(&t, COLOR_BOLD, infos[i].name);
        token_scopes_format(infos[i].scopes, text, sizeof(text));
        cli_table_cell(&t, COLOR_NONE, slice_from_cstr(text));
        clock_format(infos[i].created_us, text);
        cli_table_cell(&t, COLOR_NONE, slice_from_cstr(text));
        clock_format(infos[i].expires_us, text);
        cli_table_cell(&t, COLOR_NONE,
                       infos[i].expires_us > 0 ? slice_from_cstr(text) : SLICE("never"));
    }
    cli_table_print(&t);
}

static int run_list(const struct cli *cli, const struct place *p, int argc, char **argv)
{
    static const struct cli_option none[] = { { 0 } };
    int first = cli_options(cli, argc, argv, none);
    struct token_info *infos = NULL;
    struct arena a;
    struct err err;
    size_t n = 0;
    int code = CLI_DONE;

    if (first < 0) {
        return CLI_USAGE;
    }
    if (first < argc) {
        return cli_usage(cli, "list takes no operand");
    }
    arena_init(&a, LIST_BYTES);
    if (!token_list(p->path, &a, &infos, &n, &err)) {
        code = cli_fail(cli, &err);
    } else if (cli->json) {
        code = print_list(cli, infos, n);
    } else {
        print_table(cli, infos, n);
    }
    arena_clear(&a);
    return code;
}

static int run_revoke(const struct cli *cli, const struct place *p, int argc, char **argv)
{
    static const struct cli_option none[] = { { 0 } };
    int first = cli_options(cli, argc, argv, none);
    CLEANUP(buf_done) struct buf details;
    struct err err;

    buf_init(&details, 4096);
    if (first < 0) {
        return CLI_USAGE;
    }
    if (first != argc - 1) {
        return cli_usage(cli, "revoke takes the NAME or the id of a token");
    }
    describe(&details, argv[first], NULL, NULL);
    /* A token is taken back even where that cannot be recorded; the failure is told. */
    if (!token_revoke(p->path, slice_from_cstr(argv[first]), &err) ||
        !record(p->config, "token_revoke", buf_slice(&details), &err)) {
        return cli_fail(cli, &err);
    }
    return CLI_DONE;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct place p;
    struct err err;
    int code;

    if (argc < 2) {
        return cli_usage(cli, "takes create, list or revoke");
    }
    p.config = cli_config(cli);
    if (!p.config) {
        return CLI_USAGE;
    }
    (void)snprintf(p.path, sizeof(p.path), "%s/tokens.json", p.config->state);
    if (strcmp(argv[1], "list") == 0) {
        code = cli_state(cli, p.config);
        code = code == CLI_DONE ? run_list(cli, &p, argc - 1, argv + 1) : code;
    } else if (strcmp(argv[1], "create") == 0) {
        code = fs_make_folder(p.config->state, FS_STATE_MODE, &err)
                   ? run_create(cli, &p, argc - 1, argv + 1)
                   : cli_fail(cli, &err);
    } else if (strcmp(argv[1], "revoke") == 0) {
        code = cli_state(cli, p.config);
        code = code == CLI_DONE ? run_revoke(cli, &p, argc - 1, argv + 1) : code;
    } else {
        code = cli_usage(cli, "takes create, list or revoke, not '%s'", argv[1]);
    }
    config_free(p.config);
    return code;
}

const struct cli_command token_command = {
    "token",
    run,
    "create NAME --scopes LIST [--expires 30d] | list | revoke NAME",
    "Bearer tokens for the TCP listeners. Scopes: dispatch, ingest, query, export, admin.\n"
    "A token is shown once, when it is made; its hash is kept. A revoked one is refused\n"
    "at the next request. Each change leaves an admin record.\n"
    "\n"
    "Exit codes: 0 done; 1 there is no such token; 2 refused; 3 not written.",
};
