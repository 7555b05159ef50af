/*
 * postgres_days: the partitions that records are filed in, one a day and table.
 *
 * A partition is made before its first row. Which ones are there is remembered, so that
 * nobody asks again; when somebody drops one meanwhile (another collector, with a shorter
 * retention), the rows are refused, and postgres_days_gone() says whether that was why.
 * Thread: one.
 */
#pragma once

#include "collector/sql/postgres.h"

enum { POSTGRES_DAYS = 512 }; /* that we remember to be there */

struct postgres_days {
    int64_t retention_days; /* 0: for ever */
    int64_t today;          /* as of begin; since 1970, as every day here */
    int64_t first_us;       /* what is earlier is filed on the day of this time, */
    int64_t last_us;        /* and what is later on the day of this one */
    int64_t there[POSTGRES_DAYS];
    size_t n;
    size_t n_before; /* of these, those from before the transaction */
};

/*
 * A transaction is about to begin. With a new day, today's partitions and tomorrow's are made
 * first: no record waits for its day to be made. One that cannot be made now is made
 * with its first record.
 */
enum sql_class postgres_days_begin(struct postgres_days *d, struct postgres *db, struct err *err)
    MUST_CHECK;

/* Nothing is sure any more: it was rolled back, or a cut may have dropped a day. */
void postgres_days_forget(struct postgres_days *d);

/* The day a record is filed under: its own, or the nearest that is kept or made ahead. */
int64_t postgres_days_of(const struct postgres_days *d, int64_t time_us);

/* Whether its partitions are there as far as we know. */
bool postgres_days_has(const struct postgres_days *d, int64_t day);

/* Make a day's partitions where they are missing. */
enum sql_class postgres_days_make(struct postgres_days *d, struct postgres *db, int64_t day,
                                  struct err *err) MUST_CHECK;

/* Whether the last refusal means that a day is gone which we believed to be there. */
bool postgres_days_gone(const struct postgres_days *d, const struct postgres *db);
