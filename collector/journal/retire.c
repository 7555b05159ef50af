#include <string.h>

#include "collector/journal/journal_impl.h"
#include "collector/journal/scan.h"

/* One journal of the role that is looked through. */
struct retiring {
    struct journal *j;
    struct mark mark;
    struct folder_path dir;
    unsigned char id[FORMAT_ID_BYTES];
    uint64_t needed; /* lowest sequence that some sink still needs */
    bool in_use;
    uint64_t durable;
};

/* When the segment was begun; INT64_MAX where its head is damaged: then it stays. */
static int64_t begun_us(const struct retiring *r, uint64_t first_seq)
{
    CLEANUP(scan_close) struct scan scan = SCAN_NONE;
    struct format_head head;
    struct err err;

    if (scan_open(r->j->io, r->dir.text, r->id, first_seq, &scan, &err) &&
        scan_head(&scan, &head)) {
        return head.time_us;
    }
    return INT64_MAX;
}

/*
 * Whether a sink may still want what is before `behind`. Of the last segment the mark
 * alone tells where it ends: who wants what is behind that knows it better.
 */
static bool is_needed(const struct retiring *r, uint64_t behind, bool last)
{
    return r->needed < behind || (last && r->needed > behind && r->needed != UINT64_MAX);
}

/* A clock that was set back makes nothing older. */
static bool is_old(const struct retiring *r, int64_t since_us)
{
    int64_t now_us = r->j->io->now_us(r->j->io->ctx);

    return since_us <= now_us && now_us - since_us >= r->j->keep_ms * 1000;
}

/* Say in the mark that what is before `seq` goes on purpose: what else is missing is lost. */
static bool tell(struct retiring *r, uint64_t seq)
{
    struct err err;

    if (mark_retired(&r->mark) < seq) {
        mark_set_retired(&r->mark, seq);
    }
    return mark_sync(&r->mark, &err);
}

/*
 * Remove segments from the oldest on, until one is still needed. A segment is as
 * old as the beginning of the one behind it; the last of a journal that has
 * ended, as its own beginning.
 */
static bool retire_segments(struct retiring *r, const struct folder_segments *s)
{
    for (size_t i = 0; i < s->n; i++) {
        bool last = i + 1 == s->n;
        uint64_t behind = last ? r->durable + 1 : s->first[i + 1];
        struct folder_path path;
        struct err err;

        if ((last && r->in_use) || is_needed(r, behind, last) ||
            !is_old(r, begun_us(r, last ? s->first[i] : s->first[i + 1])) ||
            !folder_segment_path(r->dir.text, s->first[i], &path, &err) || !tell(r, behind) ||
            r->j->io->unlink(r->j->io->ctx, path.text) < 0) {
            return false;
        }
    }
    return true;
}

static void retire_journal(struct retiring *r)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    struct err err;

    if (!mark_open(r->j->io, r->dir.text, true, &r->mark, &err)) {
        return;
    }
    r->in_use = r->in_use || mark_state(&r->mark) != FORMAT_MARK_ENDED;
    r->durable = mark_durable(&r->mark);
    if (folder_segments(r->j->io, r->dir.text, &s, &err) && s.n > 0 && retire_segments(r, &s)) {
        folder_remove(r->j->io, r->dir.text);
    }
    mark_close(&r->mark);
}

void journal_retire(struct journal *j, uint64_t (*past)(void *ctx, struct slice journal_id),
                    void *ctx)
{
    CLEANUP(folder_journals_done) struct folder_journals all = { 0 };
    struct id in_use = journal_id(j);
    struct err err;

    if (!folder_journals(j->io, j->role_dir.text, &all, &err)) {
        return;
    }
    for (size_t i = 0; i < all.n; i++) {
        struct retiring r = { .j = j, .needed = past(ctx, id_slice(&all.ids[i])) };

        r.in_use = strcmp(all.ids[i].text, in_use.text) == 0;
        id_bytes(id_slice(&all.ids[i]), r.id);
        if (folder_path(&r.dir, &err, "%s/%s", j->role_dir.text, all.ids[i].text)) {
            retire_journal(&r);
        }
    }

    uint64_t used = folder_bytes(j->io, j->role_dir.text);

    (void)pthread_mutex_lock(&j->lock);
    j->stats.bytes_on_disk = used;
    (void)pthread_cond_broadcast(&j->wake);
    (void)pthread_mutex_unlock(&j->lock);
}
