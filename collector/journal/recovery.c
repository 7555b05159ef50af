#include "collector/journal/recovery.h"

/* Where to begin: behind the last checkpoint that a segment's head tells of. */
static bool open_from(const struct journal_io *io, const char *dir, struct slice journal_id,
                      struct sealing *sealing, struct walk *ret, bool *ret_unsound, struct err *err)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };

    if (!folder_segments(io, dir, &s, err)) {
        return false;
    }
    for (size_t i = s.n; i > 0; i--) {
        CLEANUP(walk_close) struct walk w = WALK_NONE;
        struct format_head head;

        if (!walk_open(io, dir, journal_id, s.first[i - 1], &w, err)) {
            return false;
        }

        uint64_t offset = w.scan.offset;
        bool sound = scan_head(&w.scan, &head) && head.first_seq == s.first[i - 1];

        scan_refresh(&w.scan);
        w.scan.offset = offset;
        *ret_unsound |= !sound;
        if (i > 1 && (!sound || head.checkpoint_seq + 1 < s.first[i - 1])) {
            continue; /* the range that is open begins in an earlier segment */
        }
        if (sealing && sound) {
            sealing_begin(sealing, head.checkpoint_seq, head.checkpoint);
        }
        *ret = w;
        w.scan = SCAN_NONE;
        return true;
    }
    return err_set(err, ERR_NOT_FOUND, "%s has no segment", dir);
}

/* The highest sequence that some valid frame, the last segment or the mark calls durable. */
static bool find_highest(struct walk *w, const struct mark *mark, uint64_t *ret, struct err *err)
{
    uint64_t highest = mark ? mark_durable(mark) : 0;

    for (;;) {
        struct format_frame f;

        switch (walk_next(w, &f, err)) {
        case WALK_FRAME:
            if (f.starts_commit && f.durable_before > highest) {
                highest = f.durable_before;
            }
            break;
        case WALK_DAMAGED:
            if (walk_skip(w, err)) {
                break;
            }
            __attribute__((fallthrough));
        case WALK_END:
            *ret = w->segment - 1 > highest ? w->segment - 1 : highest;
            return true;
        case WALK_ERROR:
            return false;
        }
    }
}

static uint64_t bytes_behind(struct walk *w, uint64_t offset)
{
    int64_t size = w->io->size(w->io->ctx, w->scan.fd);

    return size > (int64_t)offset ? (uint64_t)size - offset : 1;
}

/* At a place without a valid frame: damage up to what was durable, a torn tail behind that. */
static bool pass_over(struct walk *w, struct recovery *r, struct err *err)
{
    uint64_t bad = w->next_seq;
    uint64_t offset = w->scan.behind;
    bool more = bad <= r->highest_seq && walk_skip(w, err) && w->next_seq <= r->highest_seq + 1;
    uint64_t to = more ? w->next_seq - 1 : r->highest_seq;

    r->damaged += bad <= to ? to + 1 - bad : 0;
    if (more) {
        return true;
    }
    w->scan.offset = offset;
    r->cut_bytes = scan_only_zeros(&w->scan) ? 0 : bytes_behind(w, offset);
    return false;
}

static void keep(struct walk *w, const struct format_frame *f, uint64_t marked,
                 struct sealing *sealing, struct recovery *r)
{
    if (r->segment != w->segment) {
        r->durable_end = FORMAT_HEAD_BYTES;
    }
    if (f->seq <= marked) {
        r->durable_end = w->scan.behind;
    }
    r->last_seq = f->seq;
    r->segment = w->segment;
    r->end = w->scan.behind;
    if (sealing) {
        sealing_add(sealing, f);
    }
}

static bool read_frames(struct walk *w, const struct mark *mark, struct sealing *sealing,
                        struct recovery *r, struct err *err)
{
    uint64_t marked = mark ? mark_durable(mark) : 0;
    uint64_t void_from = mark ? mark_void(mark) : 0;
    bool more = true;

    while (more) {
        struct format_frame f;
        enum walk_at at = walk_next(w, &f, err);

        if (at == WALK_ERROR) {
            return false;
        }
        if (at == WALK_FRAME && void_from > r->highest_seq && f.seq >= void_from) {
            r->cut_bytes = bytes_behind(w, r->end);
            break; /* told to be lost: it must not come back */
        }
        if (at == WALK_FRAME) {
            keep(w, &f, marked, sealing, r);
        } else {
            more = pass_over(w, r, err);
        }
    }
    return true;
}

bool recovery_read(const struct journal_io *io, const char *dir, struct slice journal_id,
                   const struct mark *mark, struct sealing *sealing, struct recovery *ret,
                   struct err *err)
{
    CLEANUP(walk_close) struct walk evidence = WALK_NONE;
    CLEANUP(walk_close) struct walk w = WALK_NONE;
    struct recovery r = { 0 };

    if (!open_from(io, dir, journal_id, NULL, &evidence, &r.unsound, err) ||
        !find_highest(&evidence, mark, &r.highest_seq, err) ||
        !open_from(io, dir, journal_id, sealing, &w, &r.unsound, err)) {
        return false;
    }
    r.last_seq = w.next_seq - 1;
    r.segment = w.segment;
    r.end = w.scan.offset;
    r.durable_end = FORMAT_HEAD_BYTES;
    if (!read_frames(&w, mark, sealing, &r, err)) {
        return false;
    }
    if (r.segment != w.segment) { /* no frame of the last one is kept */
        r.segment = w.segment;
        r.end = FORMAT_HEAD_BYTES;
        r.durable_end = FORMAT_HEAD_BYTES;
    }
    *ret = r;
    return true;
}
