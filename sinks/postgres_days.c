#include "sinks/postgres_days.h"

#include <string.h>

#include "collector/base/clock.h"

enum { LONGEST_DAYS = 36500 }; /* how far back a record is filed where nothing is ever cut */

static const char no_partition[] = "23514"; /* check_violation; our tables check nothing else */

void postgres_days_forget(struct postgres_days *d)
{
    d->n = 0;
}

int64_t postgres_days_of(const struct postgres_days *d, int64_t time_us)
{
    if (time_us < d->first_us) {
        return d->first_us / CLOCK_DAY_US;
    }
    return (time_us > d->last_us ? d->last_us : time_us) / CLOCK_DAY_US;
}

bool postgres_days_has(const struct postgres_days *d, int64_t day)
{
    for (size_t i = d->n; i > 0; i--) { /* the latest first: it is the usual one */
        if (d->there[i - 1] == day) {
            return true;
        }
    }
    return false;
}

enum sql_class postgres_days_make(struct postgres_days *d, struct postgres *db, int64_t day,
                                  struct err *err)
{
    const struct postgres_value value = postgres_of_integer(day);
    enum sql_class class = postgres_query(
        db,
        "SELECT hooktrail_make_day(name, date '1970-01-01' + $1::int) FROM "
        "unnest(ARRAY['hook_evaluation', 'hook_execution', 'tool_execution', 'audit_record']) "
        "AS name",
        &value, 1, NULL, NULL, NULL, err);

    if (class == SQL_DONE) {
        if (d->n == POSTGRES_DAYS) {
            d->n = 0;
        }
        d->there[d->n++] = day;
    }
    return class;
}

/* A day may have been dropped meanwhile, too: nothing is sure any more. */
static void turn_to(struct postgres_days *d, int64_t today)
{
    int64_t first = today - (d->retention_days > 0 ? d->retention_days : LONGEST_DAYS);

    d->today = today;
    d->first_us = (first > 0 ? first : 0) * CLOCK_DAY_US;
    d->last_us = (today + 2) * CLOCK_DAY_US - 1;
    d->n = 0;
}

enum sql_class postgres_days_begin(struct postgres_days *d, struct postgres *db, struct err *err)
{
    int64_t today = clock_now_us() / CLOCK_DAY_US;
    enum sql_class class = SQL_DONE;

    if (today != d->today) {
        turn_to(d, today);
        for (int64_t ahead = 0; class == SQL_DONE && ahead <= 1; ahead++) {
            class = postgres_days_make(d, db, today + ahead, err);
        }
    }
    d->n_before = d->n;
    return class;
}

bool postgres_days_gone(const struct postgres_days *d, const struct postgres *db)
{
    return d->n_before > 0 && strcmp(db->sqlstate, no_partition) == 0;
}
