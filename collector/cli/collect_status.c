/* hooktrail status: which roles run, what the journals hold, how far each sink is. */
#include "collector/cli/commands.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/journal/format.h"
#include "collector/journal/reader.h"

enum { COMM_CHARS = 15 }; /* of a program's name; the kernel cuts the rest */

struct status {
    const char *state;   /* the folder */
    int64_t quota_bytes; /* of a role's journals */
    json_t *journals;
    json_t *quotas;
    json_t *sinks;
    bool collects; /* the first role runs */
    bool loads;    /* ship loads from Kafka, which is no sink then */
    bool broken;
    bool failed; /* err is set: something is there and cannot be read */
    struct err err;
};

/* A file of the state folder; NULL when it is not there. Unreadable is another thing, and told. */
static FILE *open_file(struct status *s, const char *path)
{
    FILE *f = fopen(path, "re");

    if (!f && errno != ENOENT && !s->failed) {
        s->failed = !err_errno(&s->err, errno, "%s", path);
    }
    return f;
}

/* The JSON of a file of the state folder; NULL when it is not there. */
static json_t *read_json(struct status *s, const char *folder, const char *name, const char *ending)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s/%s%s", s->state, folder, name, ending);

    FILE *f = open_file(s, path);
    json_t *json = f ? json_loadf(f, 0, NULL) : NULL;

    if (f) {
        (void)fclose(f);
    }
    return json;
}

/* ---- Roles ------------------------------------------------------------------ */

/* A role's pid file says 0 when there is none. */
static long pid_of(struct status *s, const char *role)
{
    char path[PATH_MAX];
    char text[32] = "";

    (void)snprintf(path, sizeof(path), "%s/run/%s.pid", s->state, role);

    FILE *f = open_file(s, path);

    if (!f) {
        return 0;
    }

    bool ok = fgets(text, sizeof(text), f) != NULL;

    (void)fclose(f);
    return ok ? strtol(text, NULL, 10) : 0;
}

/*
 * A pid file outlives its role, and a restart of the machine, and the number may be
 * another program's by then. Where the kernel does not tell its name, it is taken for ours.
 */
static bool is_role(long pid, const char *role)
{
    char path[64];
    char name[32];
    char is[32] = "";

    (void)snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    (void)snprintf(name, sizeof(name), "hooktrail-%s", role);

    FILE *f = fopen(path, "re");
    bool told = f && fgets(is, sizeof(is), f);

    if (f) {
        (void)fclose(f);
    }
    is[strcspn(is, "\n")] = '\0';
    return !told || strncmp(is, name, COMM_CHARS) == 0;
}

static json_t *roles_of(struct status *s)
{
    static const char *const names[] = { "collect", "ship", "serve" };
    json_t *roles = json_array();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long pid = pid_of(s, names[i]);
        bool alive =
            pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM) && is_role(pid, names[i]);
        const char *word = alive ? "running" : pid > 0 ? "died" : "not running";

        s->broken = s->broken || (pid > 0 && !alive);
        s->collects = s->collects || (i == 0 && alive);
        (void)json_array_append_new(roles, json_pack("{ss,ss,so*}", "role", names[i], "state", word,
                                                     "pid", alive ? json_integer(pid) : NULL));
    }
    return roles;
}

/* ---- Journals --------------------------------------------------------------- */

struct bytes {
    json_int_t on_disk;
    json_int_t segments; /* what counts for the quota */
};

static struct bytes bytes_of(const char *dir)
{
    struct bytes bytes = { 0 };
    DIR *d = opendir(dir);
    struct stat st;
    uint64_t first;

    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode)) {
            bytes.on_disk += st.st_blocks * 512;
            bytes.segments += format_segment_seq(e->d_name, &first) ? st.st_size : 0;
        }
    }
    if (d) {
        (void)closedir(d);
    }
    return bytes;
}

/* A role's quota: one for all of its journals. */
static void add_used(struct status *s, const char *role, json_int_t used)
{
    json_t *quota;
    size_t i;

    json_array_foreach(s->quotas, i, quota)
    {
        if (strcmp(json_string_value(json_object_get(quota, "role")), role) == 0) {
            used += json_integer_value(json_object_get(quota, "used_bytes"));
            (void)json_object_set_new(quota, "used_bytes", json_integer(used));
            return;
        }
    }
    (void)json_array_append_new(s->quotas, json_pack("{ss,sI,sI}", "role", role, "used_bytes", used,
                                                     "quota_bytes", (json_int_t)s->quota_bytes));
}

/* What collect says of its journal; of other roles nobody says anything. */
static void add_refusal(struct status *s, const json_t *told)
{
    const char *refuses = json_string_value(json_object_get(told, "refuses"));
    json_t *quota;
    size_t i;

    json_array_foreach(s->quotas, i, quota)
    {
        if (told && strcmp(json_string_value(json_object_get(quota, "role")), "collect") == 0) {
            const char *word = refuses && strcmp(refuses, "quota") == 0 ? "full" : refuses;

            (void)json_object_set_new(quota, "state", json_string(word ? word : "ok"));
        }
    }
    s->broken = s->broken || refuses;
}

static bool add_journal(void *ctx, const struct journal_info *info)
{
    struct status *s = ctx;
    struct bytes bytes = bytes_of(info->dir);

    add_used(s, info->role, bytes.segments);
    (void)json_array_append_new(s->journals,
                                json_pack("{ss,ss,sI,sI,sI,sb}", "journal", info->id.text, "role",
                                          info->role, "first_seq", (json_int_t)info->first_seq,
                                          "durable_seq", (json_int_t)info->durable_seq, "bytes",
                                          bytes.on_disk, "open", info->open));
    return true;
}

/* ---- Sinks ------------------------------------------------------------------ */

/* Records that are durable and that the sink has not. */
static json_int_t lag_of(const json_t *journals, const json_t *positions)
{
    json_int_t lag = 0;
    const json_t *j;
    size_t i;

    json_array_foreach(journals, i, j)
    {
        const char *id = json_string_value(json_object_get(j, "journal"));
        json_int_t next = json_integer_value(json_object_get(positions, id));
        const struct journal_info info = {
            .first_seq = (uint64_t)json_integer_value(json_object_get(j, "first_seq")),
            .durable_seq = (uint64_t)json_integer_value(json_object_get(j, "durable_seq")),
        };

        lag += (json_int_t)journal_behind(&info, next > 0 ? (uint64_t)next : 0);
    }
    return lag;
}

/* The dead letters that wait for somebody now: a line each. */
static json_int_t letters_of(struct status *s, const char *name)
{
    char path[PATH_MAX];
    json_int_t lines = 0;

    (void)snprintf(path, sizeof(path), "%s/deadletters/%s.ndjson", s->state, name);

    FILE *f = open_file(s, path);

    for (int c = f ? getc_unlocked(f) : EOF; c != EOF; c = getc_unlocked(f)) {
        lines += c == '\n';
    }
    if (f) {
        (void)fclose(f);
    }
    return lines;
}

/* What ship says of a sink. */
static json_t *read_sink(struct status *s, const char *name)
{
    return read_json(s, "sinks", name, ".positions.json");
}

/* A loader's lag is the group's, and Kafka's to tell. */
static bool is_loaded(const json_t *file)
{
    const char *source = json_string_value(json_object_get(file, "source"));

    return source && strcmp(source, "kafka") == 0;
}

static bool ship_loads(struct status *s)
{
    json_t *file = read_sink(s, "postgres");
    bool loads = is_loaded(file);

    json_decref(file);
    return loads;
}

static const char *state_of(const struct status *s, const char *name, const json_t *file)
{
    const char *state = json_string_value(json_object_get(file, "state"));

    return state ? state : s->loads && strcmp(name, "kafka") == 0 ? "source" : "not started";
}

static void add_sink(struct status *s, const char *name)
{
    json_t *file = read_sink(s, name);
    bool no_lag = is_loaded(file) || (s->loads && strcmp(name, "kafka") == 0);
    const char *state = state_of(s, name, file);
    const char *error = json_string_value(json_object_get(file, "error"));
    const char *time = json_string_value(json_object_get(file, "time"));
    const char *delivered = json_string_value(json_object_get(file, "delivered"));

    s->broken = s->broken || strcmp(state, "broken") == 0;
    (void)json_array_append_new(
        s->sinks,
        json_pack("{ss,ss,so*,sI,sI,sI,ss*,ss*,ss*}", "sink", name, "state", state, "lag",
                  no_lag ? NULL
                         : json_integer(lag_of(s->journals, json_object_get(file, "positions"))),
                  "dead", letters_of(s, name), "dead_ever",
                  json_integer_value(json_object_get(file, "dead")), "lost",
                  json_integer_value(json_object_get(file, "lost")), "delivered", delivered,
                  "error", error && *error ? error : NULL, "time", time));
    json_decref(file);
}

/* ---- What collect has in force --------------------------------------------- */

/* A reload that was refused: what runs is older than the file. */
static void print_reload(const struct cli *cli, const json_t *reload)
{
    const char *error = json_string_value(json_object_get(reload, "error"));

    if (error) {
        (void)printf("%sThe reload of %s was refused, what was in force stays%s\n  ",
                     cli_color(cli, COLOR_RED), json_string_value(json_object_get(reload, "time")),
                     cli_plain(cli));
        cli_put(stdout, slice_from_cstr(error), false);
        (void)fputs("\n\n", stdout);
    }
}

/* ---- Output ----------------------------------------------------------------- */

static bool is_bad(const char *word)
{
    static const char *const bad[] = { "broken", "died", "full", "disk_full", "io" };

    for (size_t i = 0; word && i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (strcmp(word, bad[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A table of an array of objects: a column a key. */
static void print_table(const struct cli *cli, const json_t *rows, const char *const *keys,
                        const char *const *heads, size_t columns)
{
    CLEANUP(cli_table_done) struct cli_table t;
    const json_t *row;
    size_t i;

    cli_table_init(&t, cli, heads, columns);
    json_array_foreach(rows, i, row)
    {
        for (size_t k = 0; k < columns; k++) {
            const json_t *v = json_object_get(row, keys[k]);

            if (json_is_integer(v)) {
                cli_table_cellf(&t, COLOR_NONE, "%lld", (long long)json_integer_value(v));
            } else {
                const char *text =
                    json_is_boolean(v) ? (json_is_true(v) ? "yes" : "no") : json_string_value(v);

                cli_table_cell(&t, is_bad(text) ? COLOR_RED : COLOR_NONE,
                               slice_from_cstr(text ? text : "-"));
            }
        }
    }
    cli_table_print(&t);
    (void)fputc('\n', stdout);
}

static void print_all(const struct cli *cli, const json_t *all)
{
    static const char *const role_keys[] = { "role", "state", "pid" };
    static const char *const role_heads[] = { "ROLE", "STATE", ">PID" };
    static const char *const set_keys[] = { "contract", "hooks", "loaded", "digest" };
    static const char *const set_heads[] = { "CONTRACT", ">HOOKS", "IN FORCE SINCE", "DIGEST" };
    static const char *const journal_keys[] = { "journal",     "role",  "first_seq",
                                                "durable_seq", "bytes", "open" };
    static const char *const journal_heads[] = { "=JOURNAL", "ROLE",   ">FIRST",
                                                 ">DURABLE", ">BYTES", "OPEN" };
    static const char *const quota_keys[] = { "role", "used_bytes", "quota_bytes", "state" };
    static const char *const quota_heads[] = { "JOURNALS OF", ">USED", ">QUOTA", "STATE" };
    static const char *const sink_keys[] = { "sink", "state",     "lag",  "dead",
                                             "lost", "delivered", "error" };
    static const char *const sink_heads[] = { "SINK",  "STATE",     ">LAG",      ">DEAD",
                                              ">LOST", "DELIVERED", "LAST ERROR" };

    print_table(cli, json_object_get(all, "roles"), role_keys, role_heads, 3);
    if (json_array_size(json_object_get(all, "hook_sets")) > 0) {
        print_table(cli, json_object_get(all, "hook_sets"), set_keys, set_heads, 4);
    }
    print_reload(cli, json_object_get(all, "reload"));
    print_table(cli, json_object_get(all, "journals"), journal_keys, journal_heads, 6);
    print_table(cli, json_object_get(all, "quotas"), quota_keys, quota_heads, 4);
    print_table(cli, json_object_get(all, "sinks"), sink_keys, sink_heads, 7);
}

static int report(const struct cli *cli, const struct config *c)
{
    struct status s = { .state = c->state,
                        .quota_bytes = c->journal.quota_mb << 20,
                        .journals = json_array(),
                        .quotas = json_array(),
                        .sinks = json_array() };
    json_t *roles = roles_of(&s);
    json_t *told =
        s.collects ? read_json(&s, "run", "collect", ".json") : NULL; /* collect_tell.h */
    int code = CLI_DONE;

    s.failed = s.failed || !journal_list(c->state, add_journal, &s, &s.err);
    add_refusal(&s, told);
    s.loads = ship_loads(&s);
    for (size_t i = 0; i < c->n_sinks; i++) {
        add_sink(&s, c->sinks[i].name);
    }
    if (s.failed) {
        code = cli_fail(cli, &s.err);
    }

    json_t *all = json_pack("{ss,sb,so,sO*,sO*,so,so,so}", "state", c->state, "broken", s.broken,
                            "roles", roles, "hook_sets", json_object_get(told, "hook_sets"),
                            "reload", json_object_get(told, "reload"), "journals", s.journals,
                            "quotas", s.quotas, "sinks", s.sinks);

    if (code == CLI_DONE && cli->json) {
        code = cli_print_json(cli, all);
    } else if (code == CLI_DONE) {
        print_all(cli, all);
    }
    json_decref(all);
    json_decref(told);
    return code == CLI_DONE && s.broken ? CLI_NEGATIVE : code;
}

static bool is_a_name_of_ours(const char *name)
{
    static const char *const ours[] = { "run",         "journals",    "keys",        "sinks",
                                        "deadletters", "tokens.json", "hooktrail.db" };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(name, ours[i]) == 0) {
            return true;
        }
    }
    return dot && strcmp(dot, ".yaml") == 0; /* configuration, before anything ran */
}

/* False for a folder of other things alone: a mistyped --state. An empty one is a state to come. */
static bool may_be_a_state(const char *folder)
{
    DIR *d = opendir(folder);
    bool empty = true;
    bool is_ours = false;

    for (const struct dirent *e = d ? readdir(d) : NULL; e && !is_ours; e = readdir(d)) {
        empty = empty && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
        is_ours = is_a_name_of_ours(e->d_name);
    }
    if (d) {
        (void)closedir(d);
    }
    return empty || is_ours;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    static const struct cli_option none[] = { { 0 } };

    if (!cli_options_only(cli, argc, argv, none)) {
        return CLI_USAGE;
    }

    struct config *c = cli_config(cli);

    if (!c) {
        return CLI_USAGE;
    }

    int code = cli_state(cli, c);

    if (code == CLI_DONE && !may_be_a_state(c->state)) {
        (void)fprintf(stderr,
                      "hooktrail status: %s is no state folder: nothing of hooktrail is in "
                      "it; is --state right?\n",
                      c->state);
        code = CLI_FAILED;
    }
    code = code == CLI_DONE ? report(cli, c) : code;

    config_free(c);
    return code;
}

const struct cli_command status_command = {
    "status",
    run,
    "[--json]",
    "Which roles run, the hook sets in force and whether the last reload was refused, what each\n"
    "journal holds, how much of journal.quota_mb a role has used and, of collect, whether its\n"
    "journal is full; of each sink, how many records it is behind, how many that it refused for\n"
    "good wait for somebody, when it took the last one, and what it said if it does not.\n"
    "\n"
    "Exit codes: 0 nothing is broken; 1 a role died, the journal is full or a sink is broken;\n"
    "3 the state folder cannot be read.",
};
