#include "queries/lag.h"

#include "collector/base/log.h"
#include "collector/journal/reader.h"

enum { JOURNALS_MAX = 256 }; /* of one machine; a journal beyond counts as unshipped */

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

static bool on_journal(void *ctx, const struct journal_info *info)
{
    struct measuring *m = ctx;
    uint64_t next_seq = 1;

    for (size_t i = 0; i < m->n; i++) {
        if (slice_equal(id_slice(&m->known[i].journal), id_slice(&info->id))) {
            next_seq = m->known[i].next_seq;
        }
    }
    if (next_seq < info->first_seq) { /* what is retired was delivered to whom it concerned */
        next_seq = info->first_seq;
    }
    if (info->durable_seq >= next_seq) {
        m->behind += info->durable_seq - next_seq + 1;
    }
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
