#include "sinks/postgres_days.h"

#include <string.h>

#include "collector/base/clock.h"

enum { LONGEST_DAYS = 36500 }; /* how far back a record is filed where nothing is ever cut */

static const char no_partition[] = "23514"; /* check_violation; our tables check nothing else */

void postgres_days_begin(struct postgres_days *d)
{
    int64_t today = clock_now_us() / CLOCK_DAY_US;

    if (today != d->today) { /* a day may have been dropped meanwhile */
        d->today = today;
        d->n = 0;
    }
    d->n_before = d->n;
}

void postgres_days_forget(struct postgres_days *d)
{
    d->n = 0;
}

int64_t postgres_days_of(const struct postgres_days *d, int64_t time_us)
{
    int64_t day = time_us / CLOCK_DAY_US;
    int64_t first = d->today - (d->retention_days > 0 ? d->retention_days : LONGEST_DAYS);

    if (day < first) {
        return first > 0 ? first : 0;
    }
    return day > d->today + 1 ? d->today + 1 : day;
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

bool postgres_days_gone(const struct postgres_days *d, const struct postgres *db)
{
    return d->n_before > 0 && strcmp(db->sqlstate, no_partition) == 0;
}
