/*
 * live_fill STATE N POISONED DAYS: append N sample records of DAYS ago to the `cli`
 * journal of a state folder, one after the other; every POISONED-th (0: none) is
 * bytes that are no record. Prints the journal's id and its last sequence. A tool for tests of
 * whole programs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/journal/journal.h"
#include "tests/unit/sinks/sink_contract.h"

enum { QUEUE_BYTES = 16 * 1024 * 1024, APPEND_MS = 10000 };

static const int64_t US_PER_DAY = INT64_C(86400) * 1000000;

static bool fill(struct journal *j, size_t n, size_t poisoned, int64_t days, struct err *err)
{
    CLEANUP(sink_samples_freep)
    struct sink_samples *s = sink_samples_at(1, n, clock_now_us() - days * US_PER_DAY);
    uint64_t seq = 0;
    bool stored = true;

    for (size_t i = 0; stored && i < n; i++) {
        const struct sink_record *r = &sink_samples_list(s)[i];
        bool poison = poisoned > 0 && (i + 1) % poisoned == 0;

        stored = journal_append(j, r->type, poison ? SLICE("{\"poison\":true}") : r->json,
                                APPEND_MS, &seq, err);
    }
    if (stored) {
        (void)printf("%s %llu\n", journal_id(j).text, (unsigned long long)seq);
    }
    return stored;
}

int main(int argc, char **argv)
{
    struct journal_options o = {
        .role = "cli",
        .collector = "host-a",
        .durability = JOURNAL_WRITE, /* synced at its close */
        .quota_bytes = UINT64_C(4) << 30,
        .segment_bytes = 1 << 20,
        .keep_ms = 3600 * 1000,
        .checkpoint_ms = 3600 * 1000,
        .queue_bytes = QUEUE_BYTES,
    };
    struct journal_recovery recovery;
    struct journal *j = NULL;
    struct err err;

    if (argc != 5) {
        return 2;
    }
    o.state_dir = argv[1];

    bool filled = journal_open(&o, &j, &recovery, &err) &&
                  fill(j, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
                       strtol(argv[4], NULL, 10), &err);

    journal_close(j);
    if (!filled) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return filled ? 0 : 3;
}
