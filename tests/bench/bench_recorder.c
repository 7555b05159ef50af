/*
 * bench_recorder: what recording a dispatch costs the thread that dispatches, beside
 * handing ready-made bytes of the same length to the journal.
 *
 *     bench_recorder FOLDER
 *
 * No hook runs, so recorder_run() is the recorder's own work: it makes the evaluation,
 * redacts it, encodes it and submits it to a real journal. Processor time of the calling
 * thread; medians of five alternating runs. Exit 1 over the target of 15 us.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/dispatcher/hookset.h"
#include "collector/journal/format.h"
#include "collector/recorder/recorder.h"
#include "tests/bench/events.h"

enum { RUNS = 5, ROUNDS = 200, GROUP = 64, RECORDS = ROUNDS * GROUP };

static const double TARGET_US = 15;

/* A Start of an incident, and a hook that wants another source: over 800 bytes. */
static const char hooks[] =
    "{kind: Hook, metadata: {name: weekly-report}, spec: {eventType: Start, activationMode: always, "
    "sources: [Schedule], hook: {type: command, command: 'true'}}}\n";
static const char request[] =
    "{\"contract\":\"sre\",\"thread_id\":\"incident-20261130-153052\",\"payload\":{"
    "\"hook_event_name\":\"Start\",\"agent_name\":\"meta_agent\",\"current_turn\":1,\"max_turns\":50,"
    "\"thread_source\":\"Incident\",\"start_message\":\"Checkout is slow.\"}}";

/* How many of a group the journal has not settled. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t none;
    size_t left;
};

static void one_less(struct waiting *w)
{
    (void)pthread_mutex_lock(&w->lock);
    if (--w->left == 0) {
        (void)pthread_cond_signal(&w->none);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

static void wait_for_none(struct waiting *w)
{
    (void)pthread_mutex_lock(&w->lock);
    while (w->left > 0) {
        (void)pthread_cond_wait(&w->none, &w->lock);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

struct bench {
    struct waiting waiting;
    struct journal *journal;
    struct recorder *recorder;
    struct hookset *set;
    struct dispatch dispatches[GROUP];
    struct journal_batch batches[GROUP];
    struct buf record; /* what the recorder makes of the dispatch */
};

static double thread_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void make_dispatch(struct bench *b, struct dispatch *d)
{
    struct err err;

    dispatch_init(d, b->set, slice_from_cstr(request));
    if (!chain_prepare(d, &err)) {
        die(&err);
    }
}

static void on_recorded(void *ctx, struct dispatch *d, enum recorded outcome)
{
    (void)d, (void)outcome;
    one_less(ctx);
}

static double recorded_us(struct bench *b)
{
    double sum = 0;

    for (size_t round = 0; round < ROUNDS; round++) {
        b->waiting.left = GROUP;
        for (size_t i = 0; i < GROUP; i++) {
            make_dispatch(b, &b->dispatches[i]);
        }

        double from = thread_us();

        for (size_t i = 0; i < GROUP; i++) {
            recorder_run(b->recorder, &b->dispatches[i], on_recorded, &b->waiting);
        }
        sum += thread_us() - from;
        wait_for_none(&b->waiting);
        for (size_t i = 0; i < GROUP; i++) {
            dispatch_done(&b->dispatches[i]);
        }
    }
    return sum / RECORDS;
}

static void on_settled(struct journal_batch *batch, enum journal_outcome outcome, uint64_t seq)
{
    (void)outcome, (void)seq;
    one_less(batch->ctx);
}

static double bare_us(struct bench *b)
{
    struct err err;
    double sum = 0;

    for (size_t round = 0; round < ROUNDS; round++) {
        b->waiting.left = GROUP;

        double from = thread_us();

        for (size_t i = 0; i < GROUP; i++) {
            b->batches[i] = (struct journal_batch){ .records[0] = { RECORD_HOOK_EVALUATION,
                                                                    buf_slice(&b->record) },
                                                    .n = 1,
                                                    .on_settled = on_settled,
                                                    .ctx = &b->waiting };
            if (!journal_submit(b->journal, &b->batches[i], &err)) {
                die(&err);
            }
        }
        sum += thread_us() - from;
        wait_for_none(&b->waiting);
    }
    return sum / RECORDS;
}

static void keep_record(void *ctx, enum record_type type, struct slice json,
                        const struct evaluation *e)
{
    (void)type, (void)e;
    buf_clear(ctx);
    buf_add(ctx, json);
}

static void load_hooks(struct bench *b, const char *folder)
{
    CLEANUP(fs_closep) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(faults_done) struct faults faults;
    char path[4096];
    struct err err;

    if (!fs_replace(dir, "hooks.yaml", slice_from_cstr(hooks), &err)) {
        die(&err);
    }
    (void)snprintf(path, sizeof(path), "%s/hooks.yaml", folder);
    faults_init(&faults);
    b->set = hookset_load(contract_find(SLICE("sre")),
                          &(struct hook_source){ .path = path, .script_dir = folder }, &faults);
    if (!b->set) {
        (void)fprintf(stderr, "%s\n", faults.first->text);
        exit(3);
    }
}

static void open_all(struct bench *b, const char *folder)
{
    const struct journal_options o = { .state_dir = folder,
                                       .role = "recorder",
                                       .collector = "bench",
                                       .durability = JOURNAL_WRITE,
                                       .segment_bytes = FORMAT_SEGMENT_BYTES,
                                       .checkpoint_ms = 60000,
                                       .queue_bytes = 64 * 1024 * 1024 };
    struct journal_recovery found;
    struct dispatch d;
    struct err err;

    load_hooks(b, folder);
    if (!journal_open(&o, &b->journal, &found, &err)) {
        die(&err);
    }
    b->recorder = recorder_new(&(struct recorder_options){
        .collector = "bench", .journal = b->journal, .record_wait_ms = 60000 });
    (void)pthread_mutex_init(&b->waiting.lock, NULL);
    (void)pthread_cond_init(&b->waiting.none, NULL);
    buf_init(&b->record, RECORD_MAX_BYTES);
    make_dispatch(b, &d);
    recorder_encode(b->recorder, &d, keep_record, &b->record);
    dispatch_done(&d);
}

int main(int argc, char **argv)
{
    struct bench *b = xcalloc(1, sizeof(*b));
    double with[RUNS];
    double bare[RUNS];

    open_all(b, argc > 1 ? argv[1] : ".");
    for (size_t i = 0; i < RUNS; i++) {
        bare[i] = bare_us(b);
        with[i] = recorded_us(b);
    }
    recorder_free(b->recorder);
    journal_close(b->journal);
    hookset_unref(b->set);

    double us = median(with, RUNS);

    (void)printf("recorder: an evaluation of %zu bytes: %.1f us, its journal_submit alone %.1f us "
                 "(target %.0f us)\n",
                 b->record.len_bytes, us, median(bare, RUNS), TARGET_US);
    buf_done(&b->record);
    free(b);
    return us <= TARGET_US ? 0 : 1;
}
