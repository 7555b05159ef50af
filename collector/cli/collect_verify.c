/* verify: prove that journals are whole and unchanged, or that one record is in them. */
#include "collector/cli/commands.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/plural.h"
#include "collector/journal/reader.h"
#include "collector/journal/verify.h"

enum { PATH_SIZE = 4096 };

struct run {
    const struct cli *cli;
    struct verify_options o;
    json_t *results; /* with --json: one object a journal */
    size_t bad;      /* journals that are not verified */
    size_t journals;
    struct verify_proof proof; /* of --record; found in proof_journal */
    struct id proof_journal;
    struct err err; /* the first one */
    bool failed;
};

static void draw_progress(void *ctx, uint64_t done, uint64_t all)
{
    (void)ctx;
    (void)fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " records\033[K", done, all);
}

static void clear_progress(const struct run *r)
{
    if (r->o.on_progress) {
        (void)fprintf(stderr, "\r\033[K");
    }
}

static json_t *report_json(const char *dir, const struct verify_report *v)
{
    json_t *o = json_pack("{ss,ss,ss,ss,sI,sI,sI,sI}", "journal", v->journal.text, "dir", dir,
                          "state", verify_state_name(v->state), "text", v->text, "first_seq",
                          (json_int_t)v->first_seq, "last_seq", (json_int_t)v->last_seq, "records",
                          (json_int_t)v->records, "checkpoints", (json_int_t)v->checkpoints);

    if (v->at_seq > 0) {
        (void)json_object_set_new(o, "at_seq", json_integer((json_int_t)v->at_seq));
    }
    if (v->gaps > 0) {
        (void)json_object_set_new(o, "gaps", json_integer((json_int_t)v->gaps));
        (void)json_object_set_new(o, "lost", json_integer((json_int_t)v->lost));
    }
    if (v->unsealed_from > 0) {
        (void)json_object_set_new(o, "unsealed_from", json_integer((json_int_t)v->unsealed_from));
    }
    if (v->key_id[0] != '\0') {
        (void)json_object_set_new(o, "key_id", json_string(v->key_id));
    }
    return o;
}

static void print_report(const struct run *r, const struct verify_report *v)
{
    bool good = v->state == VERIFY_OK;
    enum color color = good                            ? COLOR_GREEN
                       : v->state == VERIFY_INCOMPLETE ? COLOR_YELLOW
                                                       : COLOR_RED;

    (void)printf("%s%-13s%s %s  %" PRIu64 " record%s, %" PRIu64 " checkpoint%s\n",
                 cli_color(r->cli, color), verify_state_name(v->state), cli_plain(r->cli),
                 v->journal.text, v->records, plural(v->records), v->checkpoints,
                 plural(v->checkpoints));
    (void)printf("              %s", v->text);
    if (v->state == VERIFY_BROKEN) {
        (void)printf(" (broken at %" PRIu64 ")", v->at_seq);
    }
    if (v->key_id[0] != '\0') {
        (void)printf("; key %s", v->key_id);
    }
    (void)printf("\n");
}

/* Verify one journal, and say what came of it. */
static void verify_one(struct run *r, const char *dir)
{
    struct verify_report report;
    struct verify_proof proof;
    struct err err;
    bool ok = verify_journal(dir, &r->o, &report, &proof, &err);

    clear_progress(r);
    r->journals++;
    if (!ok) {
        r->err = r->failed ? r->err : err;
        r->failed = true;
        return;
    }
    r->bad += report.state != VERIFY_OK;
    if (proof.found) {
        r->proof = proof;
        r->proof_journal = report.journal;
    }
    if (r->cli->json) {
        (void)json_array_append_new(r->results, report_json(dir, &report));
    } else if (r->o.record.len == 0 || report.state != VERIFY_OK) {
        print_report(r, &report);
    }
}

static bool on_journal(void *ctx, const struct journal_info *info)
{
    verify_one(ctx, info->dir);
    return true;
}

static json_t *digest_json(const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    return json_string(hex);
}

static json_t *proof_json(const struct run *r)
{
    const struct verify_proof *p = &r->proof;
    json_t *path = json_array();

    for (size_t i = 0; i < p->path.n; i++) {
        (void)json_array_append_new(path, digest_json(&p->path.nodes[i]));
    }
    return json_pack("{ss,sI,sb,sI,sI,so,so,so,sI,ss}", "journal", r->proof_journal.text, "seq",
                     (json_int_t)p->seq, "sealed", p->sealed, "index", (json_int_t)p->index,
                     "leaves", (json_int_t)p->leaves, "leaf", digest_json(&p->leaf), "path", path,
                     "root", digest_json(&p->root), "checkpoint_seq", (json_int_t)p->checkpoint_seq,
                     "key_id", p->key_id);
}

static void print_digest(const char *label, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    (void)printf("  %-10s %s\n", label, hex);
}

static void print_proof(const struct run *r)
{
    const struct verify_proof *p = &r->proof;

    (void)printf("Record %" SLICE_FMT " is number %" PRIu64 " of journal %s.\n",
                 SLICE_ARG(r->o.record), p->seq, r->proof_journal.text);
    print_digest("leaf", &p->leaf);
    if (!p->sealed) {
        (void)printf("It is not sealed yet: no checkpoint covers it.\n");
        return;
    }
    for (size_t i = 0; i < p->path.n; i++) {
        print_digest("with", &p->path.nodes[i]);
    }
    print_digest("root", &p->root);
    (void)printf("Leaf %" PRIu64 " of %" PRIu64 " leads to the root that the checkpoint at %" PRIu64
                 " has, signed by key %s: %sproved%s.\n",
                 p->index, p->leaves, p->checkpoint_seq, p->key_id, cli_color(r->cli, COLOR_GREEN),
                 cli_plain(r->cli));
}

/* What the whole run comes to. */
static int conclude(struct run *r)
{
    if (r->cli->json) {
        json_t *all =
            json_pack("{sbsO}", "verified", r->bad == 0 && !r->failed, "journals", r->results);

        if (r->o.record.len > 0) {
            (void)json_object_set_new(all, "proof", r->proof.found ? proof_json(r) : json_null());
        }
        (void)cli_print_json(r->cli, all);
        json_decref(all);
    } else if (r->proof.found) {
        print_proof(r);
    }
    if (r->failed) {
        return cli_fail(r->cli, &r->err);
    }
    if (r->journals == 0) {
        (void)fprintf(stderr, "hooktrail verify: there is no journal\n");
        return CLI_NEGATIVE;
    }
    if (r->o.record.len > 0 && !r->proof.found) {
        (void)fprintf(stderr, "hooktrail verify: no journal has that record\n");
    }
    return r->bad > 0 || (r->o.record.len > 0 && !r->proof.sealed) ? CLI_NEGATIVE : CLI_DONE;
}

/* The journals that were named, or all of the state folder. */
static int verify_all(struct run *r, int n, char **dirs, const struct config *c)
{
    for (int i = 0; i < n; i++) {
        verify_one(r, dirs[i]);
    }
    if (n == 0 && !journal_list(c->state, on_journal, r, &r->err)) {
        return cli_fail(r->cli, &r->err);
    }
    return conclude(r);
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const char *key_dir = NULL;
    const char *record = NULL;
    const struct cli_option options[] = {
        { .name = "key-dir", .value = &key_dir },
        { .name = "record", .value = &record },
        { 0 },
    };
    int first = cli_options(cli, argc, argv, options);

    if (first < 0) {
        return CLI_USAGE;
    }
    if (record && !id_valid(slice_from_cstr(record))) {
        return cli_usage(cli, "'%s' is not the id of a record", record);
    }

    struct config *c = cli_config(cli);
    char keys[PATH_SIZE];

    if (!c) {
        return CLI_USAGE;
    }
    (void)snprintf(keys, sizeof(keys), "%s/keys", c->state);

    struct run r = { .cli = cli,
                     .o = { .key_dir = key_dir ? key_dir : keys,
                            .record = slice_from_cstr(record),
                            .on_progress =
                                cli->terminal && isatty(STDERR_FILENO) ? draw_progress : NULL },
                     .results = json_array() };
    int code = first < argc ? CLI_DONE : cli_state(cli, c); /* an auditor may have no more */

    code = code == CLI_DONE ? verify_all(&r, argc - first, argv + first, c) : code;

    json_decref(r.results);
    config_free(c);
    return code;
}

const struct cli_command verify_command = {
    "verify",
    run,
    "[JOURNAL-DIR...] [--key-dir DIR] [--record ID] [--json]",
    "Prove that journals are what their collector wrote, whole and unchanged: every byte\n"
    "against its hash, every hash against a signed Merkle root (RFC 9162, Ed25519), every\n"
    "checkpoint against the one before it. Without JOURNAL-DIR: all of the state folder.\n"
    "\n"
    "  --key-dir DIR  the public keys, files KEYID.pub (default: STATE/keys). An auditor\n"
    "                 gets these from somebody else than the journal.\n"
    "  --record ID    prove one record: print the path from it to a signed root\n"
    "\n"
    "A journal is verified; broken at a record; incomplete (it fits, and says itself that\n"
    "records were lost); or cannot be verified (a key is missing).\n"
    "\n"
    "Exit codes: 0 verified; 1 broken, incomplete, a key is missing, or no such record;\n"
    "3 a journal cannot be read.",
};
