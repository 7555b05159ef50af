/*
 * fake_disk: a disk in memory that fails, dies and forgets as a seed tells.
 *
 * What was written is in the cache; what was synced is on the disk, in sectors.
 * Names are synced by folder. After its death every call fails and changes
 * nothing; fake_disk_restart() then gives back what survived.
 */
#pragma once

#include "collector/journal/io.h"

struct fake_disk; /* opaque */

enum fake_death {
    FAKE_KILL,  /* the process dies: the cache survives */
    FAKE_POWER, /* what was not synced is there, gone or torn, sector by sector */
};

struct fake_plan {
    uint64_t fail_at;  /* the call that changes something and fails, from 1; 0: none */
    int fail_errno;    /* what it says */
    unsigned fail_for; /* how many calls in a row fail */
    uint64_t die_at;   /* the call at which it dies; 0: never */
    enum fake_death death;
};

/* An empty disk; all its chances come from the seed. */
struct fake_disk *fake_disk_new(uint64_t seed);
void fake_disk_free(struct fake_disk *d);

/* The functions that the journal calls; borrowed. */
const struct journal_io *fake_disk_io(struct fake_disk *d);

/* From now on, and counting calls from now on. */
void fake_disk_plan(struct fake_disk *d, const struct fake_plan *plan);
bool fake_disk_is_dead(const struct fake_disk *d);
uint64_t fake_disk_calls(const struct fake_disk *d); /* since the plan */

/* Die now, if not dead yet. */
void fake_disk_die(struct fake_disk *d);

/* Come back. */
void fake_disk_restart(struct fake_disk *d, enum fake_death death);

/* Let time pass. */
void fake_disk_sleep(struct fake_disk *d, int64_t ms);

/* A number below n, from the seed. */
uint64_t fake_disk_chance(struct fake_disk *d, uint64_t n);
