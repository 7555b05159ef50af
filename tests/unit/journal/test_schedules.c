/* Faults and deaths by the thousand, then: is what is there what was acknowledged? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "collector/journal/folder.h"
#include "collector/journal/journal_impl.h"
#include "collector/journal/reader_impl.h"
#include "tests/unit/journal/fake_disk.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

enum { RECORDS_MAX = 512, TEXT = 2048, SCHEDULES = 3000 };

enum fate { UNKNOWN, STORED, LOST };

/* All that happened in one schedule. */
struct history {
    struct fake_disk *disk;
    struct journal_options o;
    size_t n; /* records accepted */
    enum fate fate[RECORDS_MAX];
    bool owes;              /* in this life */
    bool owed[RECORDS_MAX]; /* the submitter went on as if it were stored */
    int seen[RECORDS_MAX];
    bool power_lost;
    uint64_t told;   /* losses that gap records count */
    uint64_t unsure; /* gap records of an unknown number */
    uint64_t seed;
};

/* A batch, and the first of its records in the history. */
struct sent {
    struct journal_batch batch;
    struct history *h;
    size_t first;
    char text[3][TEXT];
};

static void on_settled(struct journal_batch *b, enum journal_outcome outcome, uint64_t first_seq)
{
    struct sent *s = CONTAINER_OF(b, struct sent, batch);

    (void)first_seq;
    for (size_t i = 0; i < b->n && !fake_disk_is_dead(s->h->disk); i++) {
        assert_int_equal(s->h->fate[s->first + i], UNKNOWN);
        s->h->fate[s->first + i] = outcome == JOURNAL_STORED ? STORED : LOST;
    }
    free(s);
}

static void submit(struct history *h, struct journal *j)
{
    size_t n = 1 + fake_disk_chance(h->disk, 3);
    struct err err;

    if (h->n + n > RECORDS_MAX) {
        return;
    }

    struct sent *s = xcalloc(1, sizeof(*s));

    s->h = h;
    s->first = h->n;
    s->batch.n = n;
    s->batch.on_settled = on_settled;
    for (size_t i = 0; i < n; i++) {
        size_t len = 20 + fake_disk_chance(h->disk, TEXT - 20);

        memset(s->text[i], 'x', len);
        (void)snprintf(s->text[i], TEXT, "{\"n\":%zu,", h->n + i);
        s->text[i][strlen(s->text[i])] = '"';
        s->batch.records[i].type = RECORD_ADMIN;
        s->batch.records[i].bytes = (struct slice){ .ptr = s->text[i], .len = len };
    }

    bool owed = h->owes;

    if (owed && fake_disk_chance(h->disk, 2)) { /* it may come before, too */
        journal_owe(j, &s->batch);
    }
    if (journal_submit(j, &s->batch, &err)) {
        for (size_t i = 0; i < n; i++) {
            h->owed[h->n + i] = owed;
        }
        h->n += n;
        if (owed) {
            journal_owe(j, &s->batch);
        }
    } else {
        free(s);
    }
}

/* Batches that a dead writer never settled: the memory of a process that is gone. */
static void bury(struct journal *j)
{
    struct journal_batch *lists[] = { j->taken, j->first };

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        while (lists[i]) {
            struct journal_batch *next = lists[i]->next;

            free(CONTAINER_OF(lists[i], struct sent, batch));
            lists[i] = next;
        }
    }
    free_core(j);
}

static void work(struct history *h, struct journal *j)
{
    size_t rounds = 2 + fake_disk_chance(h->disk, 20);

    for (size_t i = 0; i < rounds && !fake_disk_is_dead(h->disk); i++) {
        for (size_t k = fake_disk_chance(h->disk, 5); k > 0 && !fake_disk_is_dead(h->disk); k--) {
            submit(h, j);
        }
        (void)writer_round(j);
        if (fake_disk_chance(h->disk, 4) == 0) {
            fake_disk_sleep(h->disk, 1 + (int64_t)fake_disk_chance(h->disk, 3000));
        }
    }
}

/* A life of the writer, under a plan, to a close or a death. */
static void live(struct history *h, const struct fake_plan *plan)
{
    struct journal *j;
    struct journal_recovery found;
    struct err err;

    fake_disk_plan(h->disk, plan);
    h->owes = fake_disk_chance(h->disk, 2);
    if (open_core(&h->o, &j, &found, &err)) {
        assert_int_equal(found.damaged, 0);
        assert_false(found.moved);
        work(h, j);
        if (!fake_disk_is_dead(h->disk) && fake_disk_chance(h->disk, 2) == 0) {
            close_core(j);
        }
        fake_disk_die(h->disk);
        bury(j);
    }
    h->power_lost |= plan->death == FAKE_POWER;
    fake_disk_restart(h->disk, plan->death);
}

static uint64_t number_behind(struct slice bytes, const char *key)
{
    const char *at = memmem(bytes.ptr, bytes.len, key, strlen(key));

    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void read_one(struct history *h, const struct journal_frame *f)
{
    if (f->type == RECORD_ADMIN) {
        uint64_t n = number_behind(f->bytes, "{\"n\":");

        assert_true(n < h->n);
        h->seen[n]++;
    }
    if (f->type == RECORD_GAP) {
        uint64_t lost = number_behind(f->bytes, "\"lost\":");

        h->told += lost;
        h->unsure += lost == 0;
    }
}

static void read_journal(struct history *h, const char *dir)
{
    struct journal_reader *r = NULL;
    struct journal_frame f;
    enum journal_read got;
    uint64_t next = 1;
    struct err err;

    if (!reader_open(fake_disk_io(h->disk), dir, 1, &r, &err)) {
        if (err.code == ERR_NOT_FOUND) {
            return; /* the rest of a journal that was not to be */
        }
        fail_msg("seed %llu: %s", (unsigned long long)h->seed, err.text);
    }
    for (got = journal_reader_next(r, &f, &err); got == JOURNAL_READ_FRAME;
         got = journal_reader_next(r, &f, &err)) {
        assert_int_equal(f.seq, next++);
        read_one(h, &f);
    }
    if (got != JOURNAL_READ_WAIT && got != JOURNAL_READ_ENDED) {
        fail_msg("seed %llu: read says %d at %llu", (unsigned long long)h->seed, (int)got,
                 (unsigned long long)next);
    }
    journal_reader_close(r);
}

static void read_all(struct history *h)
{
    CLEANUP(folder_journals_done) struct folder_journals all = { 0 };
    struct folder_path role;
    struct err err;

    assert_true(folder_path(&role, &err, "%s/journals/collect", h->o.state_dir));
    assert_true(folder_journals(fake_disk_io(h->disk), role.text, &all, &err));
    for (size_t i = 0; i < all.n; i++) {
        struct folder_path dir;

        assert_true(folder_path(&dir, &err, "%s/%s", role.text, all.ids[i].text));
        read_journal(h, dir.text);
    }
}

static void compare(struct history *h)
{
    uint64_t lost = 0;
    uint64_t missing = 0;

    for (size_t i = 0; i < h->n; i++) {
        if (h->seen[i] > 1 || (h->fate[i] == LOST && h->seen[i] > 0 && !h->power_lost)) {
            fail_msg("seed %llu: record %zu is there %d times, fate %d",
                     (unsigned long long)h->seed, i, h->seen[i], h->fate[i]);
        }
        lost += h->fate[i] == LOST || (h->fate[i] == UNKNOWN && h->owed[i] && h->seen[i] == 0);
        missing += h->fate[i] == STORED && h->seen[i] == 0;
    }
    if (h->o.durability == JOURNAL_WRITE && (h->unsure > 0 || h->told >= lost + missing)) {
        missing = 0; /* told, by number or as a number nobody knows */
    }
    if (missing > 0) {
        fail_msg("seed %llu: %llu stored records are gone", (unsigned long long)h->seed,
                 (unsigned long long)missing);
    }
    if (h->o.durability == JOURNAL_FSYNC && !h->power_lost && h->told != lost) {
        fail_msg("seed %llu: %llu lost, %llu told", (unsigned long long)h->seed,
                 (unsigned long long)lost, (unsigned long long)h->told);
    }
}

/* What the last life left is recovered, and closed. */
static void close_in_peace(struct history *h)
{
    struct journal *j;
    struct journal_recovery found;
    struct err err;

    if (!open_core(&h->o, &j, &found, &err)) {
        fail_msg("seed %llu: %s", (unsigned long long)h->seed, err.text);
    }
    close_core(j);
    free_core(j);
}

static void run(uint64_t seed, const struct fake_plan *plans, size_t n)
{
    struct history h = {
        .disk = fake_disk_new(seed),
        .seed = seed,
        .o = { .state_dir = fake_folder_path(),
               .role = "collect",
               .collector = "here",
               .segment_bytes = 48 * 1024,
               .checkpoint_ms = 2000,
               .queue_bytes = 64 * 1024 },
    };

    h.o.io = fake_disk_io(h.disk);
    h.o.durability = seed % 3 == 2 ? JOURNAL_WRITE : JOURNAL_FSYNC;
    h.o.when_full = seed % 2 ? JOURNAL_FULL_BLOCK : JOURNAL_FULL_DROP_NEW;
    for (size_t i = 0; i < n; i++) {
        live(&h, &plans[i]);
    }

    struct fake_plan calm = { .death = FAKE_KILL };

    live(&h, &calm);
    close_in_peace(&h);
    read_all(&h);
    compare(&h);
    fake_disk_free(h.disk);
}

static void whatever_fails_and_dies_what_was_acknowledged_is_there(void **state)
{
    const char *only = getenv("SCHEDULE");      /* one seed, as a failure names it */
    const char *how_many = getenv("SCHEDULES"); /* more, for a long test */
    uint64_t from = only ? strtoull(only, NULL, 10) : 0;
    uint64_t to = how_many ? strtoull(how_many, NULL, 10) : SCHEDULES;

    (void)state;
    to = only ? from + 1 : to;
    for (uint64_t seed = from; seed < to; seed++) {
        struct fake_disk *dice = fake_disk_new(seed + 1000000);
        struct fake_plan plans[3] = { 0 };

        for (size_t i = 0; i < COUNT_OF(plans); i++) {
            plans[i] = (struct fake_plan){
                .fail_at = fake_disk_chance(dice, 2) ? 1 + fake_disk_chance(dice, 120) : 0,
                .fail_errno = fake_disk_chance(dice, 2) ? EIO : ENOSPC,
                .fail_for = 1 + (unsigned)fake_disk_chance(dice, 12),
                .die_at = fake_disk_chance(dice, 2) ? 1 + fake_disk_chance(dice, 150) : 0,
                .death = fake_disk_chance(dice, 2) ? FAKE_KILL : FAKE_POWER,
            };
        }
        run(seed, plans, COUNT_OF(plans));
        fake_disk_free(dice);
    }
}

static void each_single_call_may_fail_or_be_the_last(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 120; n++) {
        for (uint64_t kind = 0; kind < 4; kind++) {
            struct fake_plan plan = {
                .fail_at = kind < 2 ? n : 0,
                .fail_errno = kind == 0 ? EIO : ENOSPC,
                .fail_for = 1,
                .die_at = kind < 2 ? 0 : n,
                .death = kind == 3 ? FAKE_POWER : FAKE_KILL,
            };

            run(n * 6 + kind, &plan, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_single_call_may_fail_or_be_the_last),
        cmocka_unit_test(whatever_fails_and_dies_what_was_acknowledged_is_there),
    };

    log_set_level((enum log_level)(LOG_ERROR + 1)); /* it fails all the time */
    return cmocka_run_group_tests_name("journal/schedules", tests, fake_folder_begin,
                                       fake_folder_end);
}
