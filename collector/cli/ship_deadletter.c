/*
 * deadletter: the records that a sink refused for good: look, send again, drop. What was
 * sent or dropped leaves an admin record for each sink.
 */
#include "collector/cli/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/cli/cli_admin.h"
#include "sinks/deadletter.h"
#include "sinks/registry.h"

enum {
    NAME_BYTES = 1024,          /* of a letter, at most */
    NAMED = 100,                /* letters in an admin record; the others are counted */
    DETAILS_BYTES = 256 * 1024, /* of their names */
};

enum action { ACTION_LIST, ACTION_SHOW, ACTION_RETRY, ACTION_DROP };

/* What is asked for, and what came of it, over all sinks. */
struct work {
    const struct cli *cli;
    const struct config *config;
    enum action action;
    const char *only_sink; /* NULL: every sink */
    const char *sink;      /* whose letters are walked now */
    const char *letter;    /* the name of one; NULL: all */
    struct sink_config cfg;
    struct sink *open; /* retry: opened with the first letter */
    struct cli_table table;
    json_t *list;
    struct journal *journal_of_cli; /* owned; open while letters are sent or dropped */
    struct buf gone;                /* JSON strings of the first NAMED letters of this sink */
    uint64_t n_gone;                /* letters of this sink that were sent or dropped */
    bool met;                       /* only_sink has a file of letters */
    uint64_t matched;
    uint64_t failed;
    struct err err;
    bool broke; /* err is set */
};

static bool is_meant(const struct work *w, const struct deadletter *d)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, NAME_BYTES);
    deadletter_name(d, &name);
    return !w->letter || slice_equal(buf_slice(&name), slice_from_cstr(w->letter));
}

static json_t *text(struct slice s)
{
    return json_stringn(s.ptr ? s.ptr : "", s.len);
}

static void list_json(struct work *w, const struct deadletter *d)
{
    CLEANUP(buf_done) struct buf name;
    char time[CLOCK_TEXT_SIZE];

    buf_init(&name, NAME_BYTES);
    deadletter_name(d, &name);
    clock_format(d->time_us, time);
    (void)json_array_append_new(
        w->list,
        json_pack("{s:s, s:o, s:o, s:I, s:s, s:o, s:s, s:I, s:I}", "sink", w->sink, "letter",
                  text(buf_slice(&name)), "journal", text(d->journal), "seq", (json_int_t)d->seq,
                  "type", record_type_name(d->type), "error", text(d->error), "time", time,
                  "attempts", (json_int_t)d->attempts, "bytes", (json_int_t)d->record.len));
}

static void list_row(struct work *w, const struct deadletter *d)
{
    CLEANUP(buf_done) struct buf name;
    char time[CLOCK_TEXT_SIZE];

    buf_init(&name, NAME_BYTES);
    deadletter_name(d, &name);
    clock_format(d->time_us, time);
    cli_table_cell(&w->table, COLOR_BOLD, slice_from_cstr(w->sink));
    cli_table_cell(&w->table, COLOR_NONE, buf_slice(&name));
    cli_table_cell(&w->table, COLOR_NONE, slice_from_cstr(record_type_name(d->type)));
    cli_table_cell(&w->table, COLOR_DIM, slice_from_cstr(time));
    cli_table_cellf(&w->table, COLOR_NONE, "%" PRIu64, d->attempts);
    cli_table_cell(&w->table, COLOR_RED, d->error);
}

static bool open_sink(struct work *w, struct err *err)
{
    const struct config_sink *s = config_find_sink(w->config, w->sink);
    const struct sink_ops *ops = s ? sink_find(s->name, s->settings) : NULL;

    if (w->open) {
        return true;
    }
    if (!ops) {
        return err_set(err, ERR_INVALID, "sink %s is not configured", w->sink);
    }
    w->cfg = (struct sink_config){
        .settings = s->settings,
        .name = s->name,
        .state_dir = w->config->state,
        .timeout_ms = sink_timeout_ms(s->settings),
        .late = true,
    };
    return ops->open(&w->cfg, &w->open, err) || err_wrap(err, "%s", w->sink);
}

/* Send one letter again. What is refused anew stays, with the new reason. */
static enum deadletter_fate retry(struct work *w, struct deadletter *d)
{
    const struct slice leaf[] = { { .ptr = "", .len = 1 }, d->record };
    const struct sink_record r = {
        .seq = d->seq,
        .type = d->type,
        .leaf = digest_of_parts(leaf, 2),
        .json = d->record,
    };
    const struct span span = { d->journal, d->seq, d->seq, &r, 1, .late = true };

    if (w->broke || !open_sink(w, &w->err)) {
        w->broke = true;
        return DEADLETTER_KEEP;
    }

    enum sink_result result = w->open->ops->write(w->open, &span, &w->err);

    if (result == SINK_OK) {
        return DEADLETTER_DROP;
    }
    w->failed++;
    w->broke = result != SINK_REJECT; /* the sink itself: the others would fare no better */
    d->attempts++;
    d->time_us = clock_now_us();
    d->error = slice_from_cstr(w->err.text);
    return DEADLETTER_KEEP;
}

static void note_gone(struct work *w, const struct deadletter *d)
{
    CLEANUP(buf_done) struct buf letter;

    if (w->n_gone++ < NAMED) {
        buf_init(&letter, NAME_BYTES);
        deadletter_name(d, &letter);
        buf_add(&w->gone, w->n_gone > 1 ? SLICE(",") : SLICE(""));
        buf_add_json_string(&w->gone, buf_slice(&letter));
    }
}

/* {"sink","count","letters":[the first NAMED]} */
static void record_gone(struct work *w)
{
    const char *action = w->action == ACTION_DROP ? "deadletter_drop" : "deadletter_retry";
    CLEANUP(buf_done) struct buf details;
    struct err err;

    buf_init(&details, (size_t)2 * DETAILS_BYTES);
    buf_add(&details, SLICE("{\"sink\":"));
    buf_add_json_string(&details, slice_from_cstr(w->sink));
    buf_addf(&details, ",\"count\":%" PRIu64 ",\"letters\":[", w->n_gone);
    buf_add(&details, buf_slice(&w->gone));
    buf_add(&details, SLICE("]}"));
    if (!admin_record(w->journal_of_cli, w->config, action, buf_slice(&details), &err) &&
        !w->broke) {
        w->broke = true;
        w->err = err;
    }
}

static enum deadletter_fate decide(struct work *w, struct deadletter *d)
{
    switch (w->action) {
    case ACTION_LIST:
        if (w->list) {
            list_json(w, d);
        } else {
            list_row(w, d);
        }
        return DEADLETTER_KEEP;
    case ACTION_SHOW:
        (void)fwrite(d->record.ptr, 1, d->record.len, stdout);
        (void)putchar('\n');
        return DEADLETTER_KEEP;
    case ACTION_RETRY:
        return retry(w, d);
    case ACTION_DROP:
        return DEADLETTER_DROP;
    }
    return DEADLETTER_KEEP;
}

static enum deadletter_fate on_letter(void *ctx, struct deadletter *d)
{
    struct work *w = ctx;

    if (!is_meant(w, d)) {
        return DEADLETTER_KEEP;
    }
    w->matched++;

    enum deadletter_fate fate = decide(w, d);

    if (fate == DEADLETTER_DROP) {
        note_gone(w, d);
    }
    return fate;
}

static void on_sink(void *ctx, const char *sink)
{
    struct work *w = ctx;
    struct deadletter_count count;
    bool rewrite = w->action == ACTION_RETRY || w->action == ACTION_DROP;

    if (w->broke || (w->only_sink && strcmp(w->only_sink, sink) != 0)) {
        return;
    }
    w->met = true;
    w->sink = sink;
    w->n_gone = 0;
    buf_clear(&w->gone);
    if (!deadletter_walk(w->config->state, sink, rewrite, on_letter, w, &count, &w->err)) {
        w->broke = true;
    } else if (w->n_gone > 0) {
        record_gone(w);
    }
    if (w->open) {
        w->open->ops->close(w->open);
        w->open = NULL;
    }
}

static int print_list(struct work *w)
{
    if (w->list) {
        json_t *all = json_pack("{s:O}", "dead_letters", w->list);
        int code = cli_print_json(w->cli, all);

        json_decref(all);
        return code;
    }
    if (w->matched == 0) {
        (void)puts("There are no dead letters.");
    } else {
        cli_table_print(&w->table);
    }
    return CLI_DONE;
}

static int print_change(const struct work *w)
{
    const char *what = w->action == ACTION_DROP ? "dropped" : "delivered";
    uint64_t done = w->matched - w->failed;

    if (w->cli->json) {
        json_t *all =
            json_pack("{s:I, s:I}", what, (json_int_t)done, "failed", (json_int_t)w->failed);
        int code = cli_print_json(w->cli, all);

        json_decref(all);
        return code;
    }
    (void)printf("%" PRIu64 " %s", done, what);
    if (w->action == ACTION_RETRY) {
        (void)printf(", %" PRIu64 " refused again", w->failed);
    }
    (void)putchar('\n');
    return CLI_DONE;
}

static int finish(struct work *w)
{
    if (w->broke) {
        return cli_fail(w->cli, &w->err);
    }
    if (w->only_sink && !w->met && !config_find_sink(w->config, w->only_sink)) {
        (void)err_set(&w->err, ERR_NOT_FOUND, "there is no sink '%s'", w->only_sink);
        return cli_fail(w->cli, &w->err);
    }
    if (w->letter && w->matched == 0) {
        (void)err_set(&w->err, ERR_NOT_FOUND, "there is no such dead letter");
        return cli_fail(w->cli, &w->err);
    }

    bool changes = w->action == ACTION_RETRY || w->action == ACTION_DROP;
    int code = w->action == ACTION_LIST ? print_list(w) : changes ? print_change(w) : CLI_DONE;

    return code == CLI_DONE && w->failed > 0 ? CLI_NEGATIVE : code;
}

static bool parse_action(const char *word, enum action *ret)
{
    static const char *const words[] = { "list", "show", "retry", "drop" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0) {
            *ret = (enum action)i;
            return true;
        }
    }
    return false;
}

static int walk(struct work *w)
{
    static const char *const heads[] = { "SINK", "=LETTER", "TYPE", "TIME", ">TRIES", "ERROR" };

    cli_table_init(&w->table, w->cli, heads, sizeof(heads) / sizeof(heads[0]));
    w->list = w->cli->json ? json_array() : NULL;
    buf_init(&w->gone, DETAILS_BYTES);
    if (w->action == ACTION_RETRY || w->action == ACTION_DROP) {
        w->broke = !admin_open(w->config, &w->journal_of_cli, &w->err);
    }
    if (!w->broke) {
        w->broke = !deadletter_sinks(w->config->state, on_sink, w, &w->err) || w->broke;
    }
    admin_close(w->config, w->journal_of_cli);

    int code = finish(w);

    buf_done(&w->gone);
    cli_table_done(&w->table);
    json_decref(w->list);
    return code;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct work w = { .cli = cli };
    bool all = false;
    const struct cli_option options[] = {
        { "sink", .value = &w.only_sink },
        { "all", .flag = &all },
        { 0 },
    };
    int first = cli_options(cli, argc, argv, options);

    if (first < 0) {
        return CLI_USAGE;
    }
    if (first == argc || argc - first > 2 || !parse_action(argv[first], &w.action)) {
        return cli_usage(cli, "wants list, show, retry or drop");
    }
    w.letter = first + 1 < argc ? argv[first + 1] : NULL;
    if (w.letter ? all : !all && w.action != ACTION_LIST) {
        return cli_usage(cli, "%s wants one LETTER (see list) or --all", argv[first]);
    }

    struct config *c = cli_config(cli);

    if (!c) {
        return CLI_USAGE;
    }
    w.config = c;

    int code = cli_state(cli, c);

    code = code == CLI_DONE ? walk(&w) : code;

    config_free(c);
    return code;
}

const struct cli_command deadletter_command = {
    "deadletter",
    run,
    "list|show|retry|drop [LETTER | --all] [--sink NAME] [--json]",
    "The records that a sink refused for good, kept until somebody decides.\n"
    "\n"
    "  list               which there are, and why\n"
    "  show               the record itself\n"
    "  retry              send again; what is refused anew stays\n"
    "  drop               forget\n"
    "  LETTER             its name, as list prints it: JOURNAL:SEQ; of a message of Kafka that\n"
    "                     is no record TOPIC/PARTITION@OFFSET\n"
    "  --all              instead of LETTER: every one (of --sink NAME)\n"
    "\n"
    "What was sent or dropped leaves an admin record of each sink.\n"
    "\n"
    "Exit codes: 0 done; 1 some were refused again, or there is no such letter or sink; 3 the sink\n"
    "cannot be reached.",
};
