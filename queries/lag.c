#include "queries/lag.h"

#include "collector/base/log.h"
#include "collector/journal/reader.h"

enum {
    JOURNALS_MAX = 256, /* of one machine; a journal beyond counts as unshipped */
    LOOK_MAX = 10000,   /* records of a journal whose types are looked at */
};

struct position {
    struct id journal;
    uint64_t next_seq;
};

struct measuring {
    struct position known[JOURNALS_MAX];
    size_t n;
    uint64_t behind;
};

static bool on_position(void *ctx, const struct store_position *p)
{
    struct measuring *m = ctx;
    struct position *place = &m->known[m->n];

    if (p->journal.len < sizeof(place->journal.text)) {
        (void)snprintf(place->journal.text, sizeof(place->journal.text), "%" SLICE_FMT,
                       SLICE_ARG(p->journal));
        place->next_seq = p->next_seq;
        m->n++;
    }
    return m->n < JOURNALS_MAX;
}

/* A checkpoint or a registry is nothing that an answer could lack. */
static bool counts(enum record_type type)
{
    return type == RECORD_HOOK_EVALUATION || type == RECORD_TOOL_EXECUTION;
}

/*
 * How many of the last `behind` records count. What is far behind, or cannot be read, is
 * taken to count: too much is told rather than too little.
 */
static uint64_t behind_in(const struct journal_info *info, uint64_t behind)
{
    uint64_t next_seq = info->durable_seq - behind + 1;
    struct journal_reader *r = NULL;
    struct journal_frame frame;
    struct err err;

    if (behind > LOOK_MAX || !journal_reader_open(info->dir, next_seq, &r, &err)) {
        return behind;
    }
    for (uint64_t seq = next_seq; seq <= info->durable_seq; seq++) {
        if (journal_reader_next(r, &frame, &err) != JOURNAL_READ_FRAME) {
            break;
        }
        behind -= !counts(frame.type);
    }
    journal_reader_close(r);
    return behind;
}

static bool on_journal(void *ctx, const struct journal_info *info)
{
    struct measuring *m = ctx;
    uint64_t next_seq = 1;

    for (size_t i = 0; i < m->n; i++) {
        if (slice_equal(id_slice(&m->known[i].journal), id_slice(&info->id))) {
            next_seq = m->known[i].next_seq;
        }
    }

    uint64_t behind =
        journal_behind(info, next_seq); /* the retired was delivered to whom it concerned */

    m->behind += behind > 0 ? behind_in(info, behind) : 0;
    return true;
}

bool lag_measure(struct store *s, const char *state_dir, uint64_t *ret_records, struct err *err)
{
    struct measuring m = { 0 };
    struct err unread; /* whoever may read the store alone gets its answer all the same */

    if (!s->ops->positions(s, on_position, &m, err)) {
        return false;
    }
    if (!journal_list(state_dir, on_journal, &m, &unread)) {
        log_warn("how much is not shipped yet is unknown", log_str("err", unread.text));
    }
    *ret_records = m.behind;
    return true;
}
