#include "collector/journal/walk.h"

/* Open the segment that begins with s.first[i]. */
static bool enter(struct walk *w, const struct folder_segments *s, size_t i, struct err *err)
{
    scan_close(&w->scan);
    w->segment = s->first[i];
    w->limit = i + 1 < s->n ? s->first[i + 1] : UINT64_MAX;
    w->next_seq = w->next_seq > w->segment ? w->next_seq : w->segment;
    return scan_open(w->io, w->dir.text, w->journal, w->segment, &w->scan, err);
}

/* Open the last segment that begins at or before `seq`, or the first there is. */
static bool enter_for(struct walk *w, uint64_t seq, struct err *err)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    size_t i = 0;

    if (!folder_segments(w->io, w->dir.text, &s, err)) {
        return false;
    }
    if (s.n == 0) {
        return err_set(err, ERR_NOT_FOUND, "%s has no segment", w->dir.text);
    }
    while (i + 1 < s.n && s.first[i + 1] <= seq) {
        i++;
    }
    return enter(w, &s, i, err);
}

/* Pass over the frames before `seq`; damage among them ends it early. */
static bool forward(struct walk *w, uint64_t seq, struct err *err)
{
    while (w->next_seq < seq) {
        struct format_frame f;

        switch (walk_next(w, &f, err)) {
        case WALK_FRAME:
            break;
        case WALK_END:
            return true;
        case WALK_DAMAGED:
            if (!walk_skip(w, err)) {
                return true;
            }
            break;
        case WALK_ERROR:
            return false;
        }
    }
    return true;
}

bool walk_open(const struct journal_io *io, const char *dir, struct slice journal_id,
               uint64_t from_seq, struct walk *ret, struct err *err)
{
    CLEANUP(walk_close) struct walk w = WALK_NONE;

    w.io = io;
    id_bytes(journal_id, w.journal);
    if (!folder_path(&w.dir, err, "%s", dir) || !enter_for(&w, from_seq, err) ||
        !forward(&w, from_seq, err)) {
        return false;
    }
    *ret = w;
    w.scan = SCAN_NONE;
    return true;
}

void walk_close(struct walk *w)
{
    scan_close(&w->scan);
}

enum walk_at walk_next(struct walk *w, struct format_frame *ret, struct err *err)
{
    if (w->next_seq >= w->limit && !enter_for(w, w->next_seq, err)) {
        return WALK_ERROR;
    }

    uint64_t offset = w->scan.offset;

    switch (scan_next(&w->scan, ret, err)) {
    case SCAN_FRAME:
        if (ret->seq != w->next_seq) {
            w->scan.offset = offset;
            return WALK_DAMAGED;
        }
        w->next_seq++;
        return WALK_FRAME;
    case SCAN_END:
        return w->limit == UINT64_MAX ? WALK_END : WALK_DAMAGED;
    case SCAN_BAD:
    case SCAN_ERROR:
        break;
    }
    return WALK_DAMAGED;
}

bool walk_refresh(struct walk *w, struct err *err)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };

    scan_refresh(&w->scan);
    if (w->limit != UINT64_MAX) {
        return true;
    }
    if (!folder_segments(w->io, w->dir.text, &s, err)) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (s.first[i] > w->segment) {
            w->limit = s.first[i];
            break;
        }
    }
    return true;
}

bool walk_skip(struct walk *w, struct err *err)
{
    if (scan_resync(&w->scan, w->next_seq)) {
        struct format_frame f;
        uint64_t offset = w->scan.offset;

        /* What it is has been seen: reading it again only tells its sequence. */
        if (scan_next(&w->scan, &f, err) == SCAN_FRAME && f.seq < w->limit) {
            w->scan.offset = offset;
            w->next_seq = f.seq;
            return true;
        }
        w->scan.offset = offset;
    }
    if (w->limit == UINT64_MAX) {
        return false;
    }
    w->next_seq = w->limit;
    return true;
}
