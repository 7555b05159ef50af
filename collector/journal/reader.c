#include "collector/journal/reader.h"

#include <poll.h>
#include <stdlib.h>

#include "collector/base/mem.h"
#include "collector/journal/missing.h"
#include "collector/journal/reader_impl.h"
#include "collector/journal/walk.h"

enum { LOOK_MS = 100 }; /* between looks for a mark that can be waited on */

struct journal_reader {
    const struct journal_io *io;
    struct mark mark; /* closed when the journal has none: then all that is there counts */
    struct walk walk;
    uint64_t durable; /* as far as the window of the walk is known to be good */
    uint64_t seen;    /* the durable sequence and the state that the caller knows of */
    uint32_t seen_state;
    uint64_t retired_from; /* from_seq was older than what is kept: told once, then 0 */
    uint64_t missing_from; /* what follows is gone, and was not retired: as above */
    bool trusts;           /* the mark was sound once */
    bool mark_cut;         /* there is one, too short to be mapped */
};

/* A mark that cannot be believed says nothing: then all that is there counts, as without one. */
uint64_t journal_reader_durable(struct journal_reader *r)
{
    struct err err;

    if (r->mark_cut && mark_open(r->io, r->walk.dir.text, false, &r->mark, &err)) {
        r->mark_cut = false; /* the writer has made it whole */
    }
    if (r->mark.at && mark_sound(&r->mark)) {
        r->trusts = true;
        return mark_durable(&r->mark);
    }
    return r->trusts ? r->durable : UINT64_MAX;
}

/* Of what is not there any more: which part is retired, and which is lost. */
static bool look_before(struct journal_reader *r, const char *dir, uint64_t from_seq,
                        struct err *err)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };

    if (!folder_segments(r->io, dir, &s, err)) {
        return false;
    }

    struct missing m = missing_before(&r->mark, &s);

    if (s.n == 0 || r->walk.next_seq <= from_seq) {
        return true;
    }
    r->retired_from = r->walk.next_seq;
    if (m.from > 0 && m.to + 1 == r->walk.next_seq) {
        r->missing_from = m.from > from_seq ? m.from : from_seq;
        r->retired_from = m.from > from_seq ? m.from : 0;
    }
    return true;
}

bool reader_open(const struct journal_io *io, const char *dir, uint64_t from_seq,
                 struct journal_reader **ret, struct err *err)
{
    struct slice id = { 0 };

    if (!folder_journal_id(dir, &id, err)) {
        return false;
    }

    struct journal_reader *r = xcalloc(1, sizeof(*r));

    r->io = io;
    r->walk = WALK_NONE;
    from_seq = from_seq > 0 ? from_seq : 1;

    bool marked = mark_open(io, dir, false, &r->mark, err);

    r->mark_cut = !marked && err->code == ERR_CORRUPT;
    if ((!marked && err->code == ERR_IO) || !walk_open(io, dir, id, from_seq, &r->walk, err) ||
        !look_before(r, dir, from_seq, err)) {
        journal_reader_close(r);
        return false;
    }
    *ret = r;
    return true;
}

bool journal_reader_open(const char *dir, uint64_t from_seq, struct journal_reader **ret,
                         struct err *err)
{
    return reader_open(&journal_io_real, dir, from_seq, ret, err);
}

void journal_reader_close(struct journal_reader *r)
{
    if (r) {
        walk_close(&r->walk);
        mark_close(&r->mark);
        free(r);
    }
}

/* Nothing more is durable: is it so for ever? */
static enum journal_read at_the_end(struct journal_reader *r)
{
    if (!r->mark.at) {
        return r->mark_cut ? JOURNAL_READ_WAIT : JOURNAL_READ_ENDED;
    }
    r->seen_state = mark_state(&r->mark);
    r->seen = mark_durable(&r->mark);
    if (!r->trusts || r->seen >= r->walk.next_seq) { /* it says nothing, or it moved meanwhile */
        return JOURNAL_READ_WAIT;
    }
    return r->seen_state == FORMAT_MARK_ENDED ? JOURNAL_READ_ENDED : JOURNAL_READ_WAIT;
}

/* Step behind what cannot be read: to the next valid frame, or behind all that is durable. */
static enum journal_read pass_damage(struct journal_reader *r, struct journal_frame *ret,
                                     struct err *err)
{
    uint64_t bad = r->walk.next_seq;

    if (!walk_skip(&r->walk, err) || r->walk.next_seq - 1 > r->durable) {
        if (r->durable == UINT64_MAX) { /* a torn tail, as far as anybody can tell */
            r->durable = bad - 1;       /* so that the next call looks again */
            return at_the_end(r);
        }
        r->walk.next_seq = r->durable + 1;
    }
    if (r->walk.next_seq == bad) { /* known damage, and what was written behind it */
        return journal_reader_next(r, ret, err);
    }
    *ret = (struct journal_frame){ .seq = bad };
    return JOURNAL_READ_DAMAGED;
}

/* Learn how far the journal is durable, and forget what was read before it was. */
static bool look_again(struct journal_reader *r, struct err *err)
{
    uint64_t durable = journal_reader_durable(r);

    if (durable == r->durable) {
        return true;
    }
    r->durable = durable;
    return walk_refresh(&r->walk, err);
}

enum journal_read journal_reader_next(struct journal_reader *r, struct journal_frame *ret,
                                      struct err *err)
{
    struct format_frame f;

    if (r->retired_from > 0) {
        *ret = (struct journal_frame){ .seq = r->retired_from };
        r->retired_from = 0;
        return JOURNAL_READ_RETIRED;
    }
    if (r->missing_from > 0) {
        *ret = (struct journal_frame){ .seq = r->missing_from };
        r->missing_from = 0;
        return JOURNAL_READ_DAMAGED;
    }
    if (r->walk.next_seq > r->durable && !look_again(r, err)) {
        return JOURNAL_READ_ERROR;
    }
    if (r->walk.next_seq > r->durable) {
        return at_the_end(r);
    }
    switch (walk_next(&r->walk, &f, err)) {
    case WALK_FRAME:
        *ret = (struct journal_frame){
            .seq = f.seq, .type = f.type, .leaf = f.leaf, .bytes = f.bytes
        };
        return JOURNAL_READ_FRAME;
    case WALK_END:
    case WALK_DAMAGED:
        return pass_damage(r, ret, err);
    case WALK_ERROR:
        break;
    }
    return JOURNAL_READ_ERROR;
}

bool journal_reader_wait(struct journal_reader *r, int64_t timeout_ms)
{
    if (r->mark_cut) {
        (void)poll(NULL, 0, (int)(timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS));
        return false;
    }
    return r->mark.at && mark_wait(&r->mark, r->seen, r->seen_state, timeout_ms);
}
