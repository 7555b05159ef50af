/*
 * A state folder's journals, for tests of whole programs that need many records:
 *
 *     live_journal fill STATE N [NAME=NUMBER]…   append N records; prints JOURNAL FIRST LAST
 *     live_journal read STATE                    prints JOURNAL SEQ LEAF TYPE of every record
 *
 * What is written is a tool call after the other, on `threads` threads: its start, an
 * evaluation whose two hooks ran and whose third was skipped, its end. One record
 * (counted from 1) may be spoilt: poison=I is bytes that are no record, long=I has a
 * thread's name that no index takes, name=I an evaluation with such a name of its tool,
 * big=I is as large as a record may be. days=D are the days between its time and now,
 * negative for the future.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/journal/journal.h"
#include "collector/journal/reader.h"
#include "collector/record/encode.h"

enum {
    QUEUE_BYTES = 64 * 1024 * 1024,
    SEGMENT_BYTES = 16 * 1024 * 1024,
    FULL_PAUSE_MS = 1,
    HOOKS = 3,
    LONG_BYTES = 6000, /* random, so that no compression makes it fit into an index */
    BIG_BYTES = 200 * 1024,
};

static const int64_t US_PER_DAY = INT64_C(86400) * 1000000;

struct filling {
    struct journal *j;
    uint64_t n;
    uint64_t threads;
    uint64_t poison; /* which record, from 1; 0: none */
    uint64_t too_long;
    uint64_t too_long_name;
    uint64_t big;
    int64_t days;
    _Atomic uint64_t settled;
    _Atomic uint64_t last_seq;
    _Atomic uint64_t first_seq;
    _Atomic uint64_t lost;
};

/* One batch on its way, with the bytes of its records. */
struct parcel {
    struct journal_batch batch;
    struct buf bytes[JOURNAL_BATCH_MAX];
    struct filling *filling;
};

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    struct parcel *p = b->ctx;
    struct filling *f = p->filling;

    if (outcome == JOURNAL_LOST) {
        f->lost += b->n;
    } else {
        f->first_seq = f->first_seq > 0 ? f->first_seq : first_seq;
        f->last_seq = first_seq + b->n - 1;
    }
    f->settled += b->n;
    for (size_t i = 0; i < b->n; i++) {
        buf_done(&p->bytes[i]);
    }
    free(p);
}

/* What a record's tool call is called. */
struct names {
    struct buf thread;
    struct buf call;
    struct buf tool;
};

static void add_evaluation(struct buf *b, const struct record_head *head, struct names *names,
                           bool denied)
{
    struct execution hooks[HOOKS] = {
        { .ordinal = 0,
          .hook_name = SLICE("deny-destructive-commands"),
          .hook_type = HOOK_COMMAND,
          .tier = TIER_SYSTEM,
          .decision = denied ? DECISION_DENY : DECISION_PASS,
          .matcher = SLICE("Run.*"),
          .matcher_mode = MATCHER_REGEX,
          .reason = { .text = denied ? SLICE("Destructive commands are not permitted")
                                     : (struct slice){ 0 } },
          .has_exit_code = true,
          .exit_code = denied ? 2 : 0,
          .duration_us = 14500 },
        { .ordinal = 1,
          .hook_name = SLICE("lookup-owner"),
          .hook_type = HOOK_COMMAND,
          .tier = TIER_AGENT,
          .decision = DECISION_PASS,
          .matcher_mode = MATCHER_ANY,
          .has_exit_code = true,
          .duration_us = 930 },
        { .ordinal = 2,
          .hook_name = SLICE("ticket-comment"),
          .hook_type = HOOK_COMMAND,
          .tier = TIER_USER_GLOBAL,
          .decision = DECISION_SKIPPED,
          .skip_reason = SKIP_MATCHER,
          .matcher = SLICE("Bash"),
          .matcher_mode = MATCHER_REGEX },
    };
    const struct evaluation e = {
        .head = *head,
        .dispatch_id = head->id,
        .source = SOURCE_DISPATCHER,
        .contract = SLICE("sre"),
        .chain = CHAIN_ALL,
        .duration_us = 16200,
        .thread_id = buf_slice(&names->thread),
        .call_id = buf_slice(&names->call),
        .user_id = SLICE("operator@example.com"),
        .agent_name = SLICE("meta_agent"),
        .hook_event_type = SLICE("PreToolUse"),
        .tool_name = buf_slice(&names->tool),
        .final_decision = denied ? DECISION_DENY : DECISION_PASS,
        .hooks_configured = HOOKS,
        .hooks_run = 2,
        .system_hooks_run = 1,
        .agent_hooks_run = 1,
        .hooks = hooks,
        .n_hooks = HOOKS,
    };

    encode_evaluation(&e, b);
}

static void add_tool(struct buf *b, const struct record_head *head, struct names *names, bool big,
                     bool is_end)
{
    CLEANUP(buf_done) struct buf input;

    buf_init(&input, RECORD_MAX_BYTES);
    buf_add(&input, SLICE("{\"command\":\"kubectl get pods -n shop "));
    for (size_t i = 0; big && i < BIG_BYTES / 4; i++) {
        buf_add(&input, SLICE("abcd"));
    }
    buf_add(&input, SLICE("\"}"));

    const struct tool_execution t = {
        .head = *head,
        .source = SOURCE_DISPATCHER,
        .contract = SLICE("sre"),
        .phase = is_end ? PHASE_END : PHASE_START,
        .thread_id = buf_slice(&names->thread),
        .call_id = buf_slice(&names->call),
        .tool_name = buf_slice(&names->tool),
        .tool_input = buf_slice(&input),
        .tool_output = is_end ? SLICE("\"checkout-5d9c 1/1 Running 0 3d\"") : (struct slice){ 0 },
        .has_succeeded = is_end,
        .tool_succeeded = is_end,
    };

    encode_tool_execution(&t, b);
}

static void add_random(struct buf *b)
{
    unsigned char random[LONG_BYTES / 2];

    if (RAND_bytes(random, sizeof(random)) == 1) {
        for (size_t n = 0; n < sizeof(random); n++) {
            buf_addf(b, "%02x", random[n]);
        }
    }
}

/* Those of record i, over-long where that is asked for. */
static void make_names(struct names *names, const struct filling *f, uint64_t i)
{
    buf_init(&names->thread, 2 * LONG_BYTES);
    buf_init(&names->call, 64);
    buf_init(&names->tool, 2 * LONG_BYTES);
    buf_addf(&names->thread, "thread-%04" PRIu64, (i / 3) % f->threads);
    buf_addf(&names->call, "call-%" PRIu64, i / 3);
    buf_add(&names->tool, SLICE("RunInTerminal"));
    if (i + 1 == f->too_long) {
        add_random(&names->thread);
    }
    if (i + 1 == f->too_long_name) {
        add_random(&names->tool);
    }
}

static void free_names(struct names *names)
{
    buf_done(&names->thread);
    buf_done(&names->call);
    buf_done(&names->tool);
}

/* Record i, and its type. */
static enum record_type add_record(struct buf *b, const struct filling *f, uint64_t i)
{
    struct id id = id_new();
    CLEANUP(free_names) struct names names;
    const struct record_head head = {
        .id = id_slice(&id),
        .collector = SLICE("host-a"),
        .time_us = clock_now_us() - f->days * US_PER_DAY,
    };

    buf_init(b, RECORD_MAX_BYTES);
    make_names(&names, f, i);
    if (i + 1 == f->poison) {
        buf_add(b, SLICE("{\"poison\":true}"));
        return RECORD_TOOL_EXECUTION;
    }
    if (i % 3 == 1 && i + 1 != f->big) {
        add_evaluation(b, &head, &names, i % 10 == 1);
        return RECORD_HOOK_EVALUATION;
    }
    add_tool(b, &head, &names, i + 1 == f->big, i % 3 == 2);
    return RECORD_TOOL_EXECUTION;
}

/* Records from i on; how many. */
static struct parcel *pack(struct filling *f, uint64_t i)
{
    struct parcel *p = xcalloc(1, sizeof(*p));

    p->filling = f;
    p->batch.ctx = p;
    p->batch.on_settled = on_settled;
    for (; p->batch.n < JOURNAL_BATCH_MAX && i < f->n; i++) {
        struct buf *b = &p->bytes[p->batch.n];

        p->batch.records[p->batch.n].type = add_record(b, f, i);
        p->batch.records[p->batch.n].bytes = buf_slice(b);
        p->batch.n++;
    }
    return p;
}

/* A full queue is waited for; the whole is done when all is settled. */
static void fill(struct filling *f)
{
    uint64_t i = 0;

    while (i < f->n) {
        struct parcel *p = pack(f, i);
        struct err err;

        i += p->batch.n;
        while (!journal_submit(f->j, &p->batch, &err)) {
            (void)poll(NULL, 0, FULL_PAUSE_MS);
        }
    }
    while (f->settled < f->n) {
        (void)poll(NULL, 0, FULL_PAUSE_MS);
    }
}

static bool parse(struct filling *f, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        long long number = value ? strtoll(value + 1, NULL, 10) : 0;
        struct slice name = { .ptr = argv[i], .len = value ? (size_t)(value - argv[i]) : 0 };

        if (slice_equal(name, SLICE("threads"))) {
            f->threads = (uint64_t)number;
        } else if (slice_equal(name, SLICE("poison"))) {
            f->poison = (uint64_t)number;
        } else if (slice_equal(name, SLICE("long"))) {
            f->too_long = (uint64_t)number;
        } else if (slice_equal(name, SLICE("name"))) {
            f->too_long_name = (uint64_t)number;
        } else if (slice_equal(name, SLICE("big"))) {
            f->big = (uint64_t)number;
        } else if (slice_equal(name, SLICE("days"))) {
            f->days = number;
        } else {
            return false;
        }
    }
    return f->threads > 0;
}

static bool fill_state(const char *state, struct filling *f, struct err *err)
{
    const struct journal_options o = {
        .state_dir = state,
        .role = "collect",
        .collector = "host-a",
        .durability = JOURNAL_FSYNC,
        .quota_bytes = UINT64_C(8) << 30,
        .segment_bytes = SEGMENT_BYTES,
        .keep_ms = 3600 * 1000,
        .checkpoint_ms = 3600 * 1000,
        .queue_bytes = QUEUE_BYTES,
    };
    struct journal_recovery recovery;

    if (!journal_open(&o, &f->j, &recovery, err)) {
        return false;
    }
    fill(f);
    (void)printf("%s %" PRIu64 " %" PRIu64 "\n", journal_id(f->j).text, f->first_seq, f->last_seq);
    journal_close(f->j);
    return f->lost == 0 || err_set(err, ERR_IO, "%" PRIu64 " records were lost", f->lost);
}

static void print_frame(const struct journal_info *info, const struct journal_frame *frame)
{
    char leaf[DIGEST_HEX_SIZE];

    digest_hex(&frame->leaf, leaf);
    (void)printf("%s %" PRIu64 " %s %s\n", info->id.text, frame->seq, leaf,
                 record_type_name(frame->type));
}

/* From the first record that is kept. */
static bool read_journal(void *ctx, const struct journal_info *info)
{
    struct err *err = ctx;
    struct journal_reader *r;
    struct journal_frame frame;

    if (!journal_reader_open(info->dir, info->first_seq, &r, err)) {
        return false;
    }
    while (journal_reader_next(r, &frame, err) == JOURNAL_READ_FRAME) {
        print_frame(info, &frame);
    }
    journal_reader_close(r);
    return true;
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    struct filling f = { .threads = 200 };
    bool done = false;

    if (argc == 3 && strcmp(argv[1], "read") == 0) {
        done = journal_list(argv[2], read_journal, &err, &err);
    } else if (argc >= 4 && strcmp(argv[1], "fill") == 0 && parse(&f, argc - 4, argv + 4)) {
        f.n = strtoull(argv[3], NULL, 10);
        done = fill_state(argv[2], &f, &err);
    } else {
        (void)fputs("usage: live_journal fill STATE N [NAME=NUMBER]… | read STATE\n", stderr);
        return 2;
    }
    if (!done) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return done ? 0 : 3;
}
