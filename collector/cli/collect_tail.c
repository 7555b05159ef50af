/* hooktrail tail: the newest records of all journals, and those that follow. */
#include "collector/cli/commands.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/cli/collect_line.h"
#include "collector/journal/reader.h"

enum {
    LINES_MAX = 10000,
    WAIT_MS = 200,
    JOINED_BYTES = 64, /* an option and its number */
};

struct source {
    struct id id;
    struct journal_reader *reader;
};

/* A record that is held until it is known whether it is among the newest. */
struct kept {
    int64_t time_us;
    char *text; /* owned */
    size_t len;
};

struct tail {
    const struct cli *cli;
    struct slice thread;    /* empty: all */
    struct source *sources; /* of all journals, old ones included */
    size_t n_sources;
    bool failed;  /* one of them cannot be read */
    size_t lines; /* how many of the past */
    bool past;    /* records are held, not printed */
    struct kept *kept;
    size_t n_kept;
};

/* ---- The past --------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct kept *x = a;
    const struct kept *y = b;

    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* Keep the newest `lines`; there is room for twice as many, so that sorting is rare. */
static void shrink(struct tail *t)
{
    qsort(t->kept, t->n_kept, sizeof(*t->kept), by_time);
    if (t->n_kept > t->lines) {
        size_t drop = t->n_kept - t->lines;

        for (size_t i = 0; i < drop; i++) {
            free(t->kept[i].text);
        }
        memmove(t->kept, t->kept + drop, t->lines * sizeof(*t->kept));
        t->n_kept = t->lines;
    }
}

static void keep(struct tail *t, int64_t time_us, struct slice text)
{
    if (t->n_kept == 2 * t->lines + 1) {
        shrink(t);
    }
    t->kept[t->n_kept++] = (struct kept){
        .time_us = time_us,
        .text = memcpy(xcalloc(1, text.len + 1), text.ptr, text.len),
        .len = text.len,
    };
}

static void print_kept(struct tail *t)
{
    shrink(t);
    for (size_t i = 0; i < t->n_kept; i++) {
        line_print(t->cli, (struct slice){ .ptr = t->kept[i].text, .len = t->kept[i].len });
        free(t->kept[i].text);
    }
    t->n_kept = 0;
    t->past = false;
}

/* ---- Reading ---------------------------------------------------------------- */

static void take(struct tail *t, struct slice record)
{
    int64_t time_us;

    if (!line_wanted(record, t->thread, &time_us)) {
        return;
    }
    if (t->past) {
        keep(t, time_us, record);
    } else {
        line_print(t->cli, record);
    }
}

/* Read what there is. False when the journal gets no more. */
static bool drain(struct tail *t, struct journal_reader *r)
{
    struct journal_frame frame;
    struct err err;

    for (;;) {
        switch (journal_reader_next(r, &frame, &err)) {
        case JOURNAL_READ_FRAME:
            take(t, frame.bytes);
            break;
        case JOURNAL_READ_WAIT:
            return true;
        case JOURNAL_READ_ENDED:
            return false;
        case JOURNAL_READ_RETIRED:
        case JOURNAL_READ_DAMAGED:
            (void)fprintf(stderr, "hooktrail tail: records before %llu are not there\n",
                          (unsigned long long)frame.seq);
            break;
        case JOURNAL_READ_ERROR:
            (void)cli_fail(t->cli, &err);
            t->failed = true;
            return false;
        }
    }
}

static bool is_known(const struct tail *t, const struct id *id)
{
    for (size_t i = 0; i < t->n_sources; i++) {
        if (strcmp(t->sources[i].id.text, id->text) == 0) {
            return true;
        }
    }
    return false;
}

/* Where the last lines of a journal begin; with a filter they may be anywhere. */
static uint64_t first_of(const struct tail *t, const struct journal_info *info)
{
    uint64_t last = info->durable_seq;

    if (!t->past || t->thread.len > 0 || last < info->first_seq + t->lines) {
        return info->first_seq;
    }
    return last - t->lines + 1;
}

static bool add_journal(void *ctx, const struct journal_info *info)
{
    struct tail *t = ctx;
    struct err err;

    if (is_known(t, &info->id)) {
        return true;
    }
    t->sources = xrealloc(t->sources, (t->n_sources + 1) * sizeof(*t->sources));

    struct source *s = &t->sources[t->n_sources++];

    *s = (struct source){ .id = info->id };
    if (!journal_reader_open(info->dir, first_of(t, info), &s->reader, &err)) {
        t->failed = true;
        (void)cli_fail(t->cli, &err);
    }
    return true;
}

/* One round over all journals; those that have ended are closed. */
static void round_over(struct tail *t)
{
    for (size_t i = 0; i < t->n_sources; i++) {
        struct source *s = &t->sources[i];

        if (s->reader && !drain(t, s->reader)) {
            journal_reader_close(s->reader);
            s->reader = NULL;
        }
    }
}

/* Wait for more in the newest journal that is open; the others are looked at in between. */
static void wait_for_more(struct tail *t)
{
    struct journal_reader *newest = NULL;

    for (size_t i = 0; i < t->n_sources; i++) {
        newest = t->sources[i].reader ? t->sources[i].reader : newest;
    }
    if (newest) {
        (void)journal_reader_wait(newest, WAIT_MS);
    } else {
        const struct timespec pause = { .tv_nsec = WAIT_MS * 1000000L };

        (void)nanosleep(&pause, NULL);
    }
}

static int tail_all(struct tail *t, const char *state, bool follow)
{
    struct err err;

    if (!journal_list(state, add_journal, t, &err)) {
        return cli_fail(t->cli, &err);
    }
    round_over(t);
    print_kept(t);
    while (follow && cli_flush(t->cli)) {
        wait_for_more(t);
        if (!journal_list(state, add_journal, t, &err)) {
            return cli_fail(t->cli, &err);
        }
        round_over(t);
    }
    return t->failed ? CLI_FAILED : CLI_DONE;
}

/* -f and -n have long names too; `joined` gets "-nN" (of two, which are refused, the last). */
static void lengthen(int argc, char **argv, char joined[JOINED_BYTES])
{
    static char follow[] = "--follow";
    static char lines[] = "--lines";

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-f") == 0) {
            argv[i] = follow;
        } else if (strcmp(argv[i], "-n") == 0) {
            argv[i] = lines;
        } else if (strncmp(argv[i], "-n", 2) == 0) {
            (void)snprintf(joined, JOINED_BYTES, "--lines=%s", argv[i] + 2);
            argv[i] = joined;
        }
    }
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const char *thread = NULL;
    bool follow = false;
    int64_t lines = 10;
    char joined[JOINED_BYTES];
    const struct cli_option options[] = {
        { "thread", .value = &thread },
        { "follow", .flag = &follow },
        { "lines", .number = &lines, .min = 0, .max = LINES_MAX },
        { 0 },
    };

    lengthen(argc, argv, joined);
    if (!cli_options_only(cli, argc, argv, options)) {
        return CLI_USAGE;
    }

    struct config *c = cli_config(cli);

    if (!c) {
        return CLI_USAGE;
    }

    int code = cli_state(cli, c);

    if (code != CLI_DONE) {
        config_free(c);
        return code;
    }

    struct tail t = {
        .cli = cli,
        .thread = slice_from_cstr(thread),
        .lines = (size_t)lines,
        .past = true,
        .kept = xcalloc(2 * (size_t)lines + 1, sizeof(*t.kept)),
    };

    code = tail_all(&t, c->state, follow);
    for (size_t i = 0; i < t.n_sources; i++) {
        journal_reader_close(t.sources[i].reader);
    }
    free(t.sources);
    free(t.kept);
    config_free(c);
    return code;
}

const struct cli_command tail_command = {
    "tail",
    run,
    "[-f] [-n LINES] [--thread THREAD]",
    "The newest records of this machine's journals, oldest first: it asks no store, and shows\n"
    "what no sink has yet. -f (--follow) goes on with those that come. -n (--lines) says how\n"
    "many of the past, 10 by default. --thread shows one thread's alone. --json prints each\n"
    "record as it is in the journal, one a line.\n"
    "\n"
    "Exit codes: 0 printed; 3 a journal cannot be read; the others are printed all the same.",
};
