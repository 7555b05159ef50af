#include "sinks/rejoin.h"

#include <inttypes.h>

#define ADVICE                                                              \
    ": the state folder is an older copy. Stop hooktrail and move journals" \
    "/%s/%s out of it: a new journal begins"

/*
 * No sink is given what is not durable. One that has more has it of a later state of this
 * folder, whose numbers this one is about to give away a second time.
 */
static bool reaches(const struct journal_info *journal, struct journal_reader *r, uint64_t from_seq,
                    struct err *err)
{
    uint64_t durable = journal_reader_durable(r);

    if (durable == UINT64_MAX || from_seq <= durable + 1) {
        return true;
    }
    if (journal_mark_may_be_late(journal->dir)) {
        return err_set(err, ERR_AGAIN,
                       "it ends at %" PRIu64 ", and the sink has it up to %" PRIu64
                       ": a power loss may be why, until its %s role has opened it again",
                       durable, from_seq - 1, journal->role);
    }
    return err_set(err, ERR_INVALID,
                   "it ends at %" PRIu64 ", and the sink has it up to %" PRIu64 ADVICE, durable,
                   from_seq - 1, journal->role, journal->id.text);
}

/* The reader stands before the last record that the sink has. *ret_found: it is there. */
static bool is_the_same(const struct journal_info *journal, const struct sink_position *at,
                        struct journal_reader *r, bool *ret_found, struct err *err)
{
    struct journal_frame frame;
    struct err ignored; /* what cannot be read shows nothing */

    *ret_found =
        journal_reader_next(r, &frame, &ignored) == JOURNAL_READ_FRAME && frame.seq == at->last;
    if (!*ret_found || digest_equal(&frame.leaf, &at->leaf)) {
        return true;
    }
    return err_set(err, ERR_INVALID,
                   "its record %" PRIu64 " is another one than the sink has" ADVICE, at->last,
                   journal->role, journal->id.text);
}

bool rejoin_open(const struct journal_info *journal, const struct sink_position *at,
                 uint64_t from_seq, struct journal_reader **ret, struct err *err)
{
    bool compares = at->last > 0 && at->last < from_seq;
    bool found = false;

    if (!journal_reader_open(journal->dir, compares ? at->last : from_seq, ret, err)) {
        return false;
    }
    if (!reaches(journal, *ret, from_seq, err) ||
        (compares && !is_the_same(journal, at, *ret, &found, err))) {
        journal_reader_close(*ret);
        return false;
    }
    if (!compares || (found && at->last + 1 == from_seq)) {
        return true;
    }
    journal_reader_close(*ret); /* it stands elsewhere */
    return journal_reader_open(journal->dir, from_seq, ret, err);
}
