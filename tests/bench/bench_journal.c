/*
 * bench_journal: append with group commit of 64 records, beside a bare
 * preallocated write + fdatasync of the same bytes. Prints the median ratio of
 * five alternating runs; the target is 0.7. While one group is synced the next is
 * submitted, as dispatches do that wait for nobody but themselves.
 *
 *     bench_journal FOLDER [RECORD-BYTES [GROUPS]]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/journal/format.h"
#include "collector/journal/journal.h"
#include "tests/bench/events.h"

enum { RUNS = 5, GROUP = 64, IN_FLIGHT = 2 };

struct bench {
    const char *folder;
    size_t record_bytes;
    size_t groups;
    char *record;
    pthread_mutex_t lock;
    pthread_cond_t all_settled;
    struct group {
        struct bench *bench;
        size_t left; /* batches that are not settled */
        struct journal_batch batches[GROUP];
    } groups_in_flight[IN_FLIGHT];
};

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    struct group *g = b->ctx;

    (void)first_seq;
    if (outcome != JOURNAL_STORED) {
        (void)fputs("a record was lost\n", stderr);
        exit(3);
    }
    (void)pthread_mutex_lock(&g->bench->lock);
    if (--g->left == 0) {
        (void)pthread_cond_signal(&g->bench->all_settled);
    }
    (void)pthread_mutex_unlock(&g->bench->lock);
}

static void wait_settled(struct bench *b, struct group *g)
{
    (void)pthread_mutex_lock(&b->lock);
    while (g->left > 0) {
        (void)pthread_cond_wait(&b->all_settled, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
}

/* One group: 64 batches of one record, as 64 dispatches would submit them. */
static void submit_group(struct bench *b, struct group *g, struct journal *j)
{
    struct err err;

    wait_settled(b, g);
    g->bench = b;
    g->left = GROUP;
    for (size_t i = 0; i < GROUP; i++) {
        g->batches[i] = (struct journal_batch){ .n = 1, .on_settled = on_settled, .ctx = g };
        g->batches[i].records[0].type = RECORD_HOOK_EVALUATION;
        g->batches[i].records[0].bytes = (struct slice){ b->record, b->record_bytes };
        if (!journal_submit(j, &g->batches[i], &err)) {
            die(&err);
        }
    }
}

static double journal_groups_per_s(struct bench *b)
{
    struct journal_options o = {
        .state_dir = b->folder,
        .role = "bench",
        .collector = "bench",
        .segment_bytes = FORMAT_SEGMENT_BYTES,
        .checkpoint_ms = 60000,
        .queue_bytes = 64 * 1024 * 1024,
    };
    struct journal *j;
    struct journal_recovery found;
    struct err err;

    if (!journal_open(&o, &j, &found, &err)) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(3);
    }

    struct journal_stats before;
    struct journal_stats after;
    int64_t from_us = clock_mono_us();

    journal_stats(j, &before);
    for (size_t i = 0; i < b->groups; i++) {
        submit_group(b, &b->groups_in_flight[i % IN_FLIGHT], j);
    }
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        wait_settled(b, &b->groups_in_flight[i]);
    }

    int64_t took_us = clock_mono_us() - from_us;

    journal_stats(j, &after);
    journal_close(j);
    (void)printf("  %.2f syncs a group", (double)(after.syncs - before.syncs) / (double)b->groups);
    return (double)b->groups * 1e6 / (double)took_us;
}

static double bare_groups_per_s(struct bench *b)
{
    size_t n = GROUP * format_frame_bytes(b->record_bytes);
    char *bytes = xcalloc(1, n);
    char path[4096];

    memset(bytes, 'x', n);
    (void)snprintf(path, sizeof(path), "%s/bare", b->folder);

    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || fallocate(fd, 0, 0, FORMAT_SEGMENT_BYTES) < 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(3);
    }

    off_t at = FORMAT_HEAD_BYTES;
    int64_t from_us = clock_mono_us();

    for (size_t i = 0; i < b->groups; i++) {
        if (at + (off_t)n > FORMAT_SEGMENT_BYTES) { /* never within the default numbers */
            at = FORMAT_HEAD_BYTES;
        }
        if (pwrite(fd, bytes, n, at) != (ssize_t)n || fdatasync(fd) < 0) {
            (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
            exit(3);
        }
        at += (off_t)n;
    }

    int64_t took_us = clock_mono_us() - from_us;

    free(bytes);
    (void)unlink(path);
    return (double)b->groups * 1e6 / (double)took_us;
}

int main(int argc, char **argv)
{
    struct bench b = { .folder = argc > 1 ? argv[1] : ".", .record_bytes = 800, .groups = 800 };
    double bare[RUNS];
    double ours[RUNS];
    double ratios[RUNS];
    uint64_t n;

    if (argc > 2 && slice_to_u64(slice_from_cstr(argv[2]), &n) && n > 0 && n < RECORD_MAX_BYTES) {
        b.record_bytes = n;
    }
    if (argc > 3 && slice_to_u64(slice_from_cstr(argv[3]), &n) && n > 0) {
        b.groups = n;
    }
    b.record = xcalloc(1, b.record_bytes);
    memset(b.record, 'x', b.record_bytes);
    (void)pthread_mutex_init(&b.lock, NULL);
    (void)pthread_cond_init(&b.all_settled, NULL);
    for (int i = 0; i < RUNS; i++) {
        bare[i] = bare_groups_per_s(&b);
        ours[i] = journal_groups_per_s(&b);
        ratios[i] = ours[i] / bare[i];
        (void)printf("  bare %.0f groups/s, journal %.0f groups/s, %.2f x\n", bare[i], ours[i],
                     ratios[i]);
    }
    (void)printf("journal append of %d records of %zu bytes: bare %.0f groups/s, "
                 "journal %.0f groups/s: %.2f x (target 0.70)\n",
                 GROUP, b.record_bytes, median(bare, RUNS), median(ours, RUNS),
                 median(ratios, RUNS));
    free(b.record);
    return ratios[RUNS / 2] >= 0.7 ? 0 : 1;
}
