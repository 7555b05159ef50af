#include <errno.h>
#include <string.h>

#include "collector/journal/adopt.h"

/* A journal on its way: everything that the struct journal takes over at the end. */
struct newborn {
    struct id id;
    unsigned char id_bytes[FORMAT_ID_BYTES];
    struct folder_path dir;
    struct folder_path unborn;
    struct mark mark;
    struct segment segment;
    struct sealing *sealing;
    struct loss gaps[LOSSES_CAUSES]; /* what its first frames tell */
    size_t n_gaps;
};

static void newborn_done(struct newborn *n)
{
    segment_close(&n->segment);
    mark_close(&n->mark);
    sealing_free(n->sealing);
}

static bool make_mark(struct journal *j, struct newborn *n, struct err *err)
{
    struct format_mark m;

    if (!adopt_describe(j, n->unborn.text, &m, err)) {
        return false;
    }
    m.generation = j->generation + 1;
    memcpy(m.journal, n->id_bytes, FORMAT_ID_BYTES);
    return mark_create(j->io, n->unborn.text, &m, &n->mark, err);
}

/* The gap records that are due, as the first frames of the journal. */
static void stage_gaps(struct journal *j, struct newborn *n, struct buf *out)
{
    uint64_t seq = 1;

    for (size_t i = 0; i < n->n_gaps; i++) {
        struct format_frame f = { .seq = seq, .type = RECORD_GAP, .starts_commit = seq == 1 };

        buf_clear(&j->scratch);
        losses_encode(&n->gaps[i], j->o.collector, j->io->now_us(j->io->ctx), &j->scratch);
        f.bytes = buf_slice(&j->scratch);
        f.leaf = format_leaf(f.bytes);

        char *at = buf_reserve(out, format_frame_bytes(f.bytes.len));

        if (at) {
            format_put_frame(n->id_bytes, &f, (unsigned char *)at);
            out->len_bytes += format_frame_bytes(f.bytes.len);
            sealing_add(n->sealing, &f);
            seq++;
        }
    }
}

static bool make_segment(struct journal *j, struct newborn *n, struct err *err)
{
    CLEANUP(buf_done) struct buf gaps;
    struct format_head head = {
        .generation = j->generation + 1,
        .first_seq = 1,
        .time_us = j->io->now_us(j->io->ctx),
    };

    memcpy(head.journal, n->id_bytes, FORMAT_ID_BYTES);
    memcpy(head.boot, j->boot, FORMAT_ID_BYTES);
    buf_init(&gaps, RESERVE_BYTES);
    stage_gaps(j, n, &gaps);
    return segment_create(j->io, n->unborn.text, &head, buf_slice(&gaps), j->o.segment_bytes,
                          &n->segment, err);
}

/* Give it its name. From here on it is the journal in use, whatever happens. */
static bool publish(struct journal *j, struct newborn *n, struct err *err)
{
    if (j->io->rename(j->io->ctx, n->unborn.text, n->dir.text) < 0) {
        return err_errno(err, errno, "rename %s", n->unborn.text);
    }
    if (j->io->sync_dir(j->io->ctx, j->role_dir.text) < 0) {
        (void)err_errno(err, errno, "fsync folder %s", j->role_dir.text);
        /* Nameless again, or whole: never half a journal under its name. */
        (void)!j->io->rename(j->io->ctx, n->dir.text, n->unborn.text);
        return false;
    }
    return true;
}

bool birth_seal(struct journal *j, const struct id *id, struct sealing **ret, struct err *err)
{
    struct sealing_options so = {
        .state_dir = j->o.state_dir,
        .role = j->o.role,
        .collector = j->o.collector,
        .journal = *id,
        .rotate = j->o.rotate_key,
        .fixed_key = j->io != &journal_io_real,
    };

    memcpy(so.boot, j->boot, FORMAT_ID_BYTES);
    return sealing_new(&so, ret, err);
}

static bool build(struct journal *j, struct newborn *n, struct err *err)
{
    if (j->io->mkdir(j->io->ctx, n->unborn.text) < 0) {
        return err_errno(err, errno, "make folder %s", n->unborn.text);
    }
    if (birth_seal(j, &n->id, &n->sealing, err) && make_mark(j, n, err) &&
        make_segment(j, n, err) && publish(j, n, err)) {
        return true;
    }
    folder_remove(j->io, n->unborn.text);
    return false;
}

/* End the one before: its readers go on to the next. */
static void end_predecessor(struct journal *j)
{
    struct err err;

    segment_close(&j->segment);
    if (j->mark.at) {
        mark_set_losses(&j->mark, &(struct mark_losses){ 0 });
        mark_set_state(&j->mark, FORMAT_MARK_ENDED);
        (void)!mark_sync(&j->mark, &err); /* else the next opening ends it again */
        mark_close(&j->mark);
    }
    sealing_free(j->sealing);
}

bool birth_begin(struct journal *j, struct err *err)
{
    CLEANUP(newborn_done) struct newborn n = { .id = id_new(), .segment = SEGMENT_NONE };

    (void)pthread_mutex_lock(&j->lock);
    n.n_gaps = j->losses.n;
    memcpy(n.gaps, j->losses.list, sizeof(n.gaps));
    (void)pthread_mutex_unlock(&j->lock);
    /* Once it has a successor nobody recovers it any more: its mark must be right before. */
    if (j->mark.at && !mark_sync(&j->mark, err)) {
        return false;
    }
    id_bytes(id_slice(&n.id), n.id_bytes);
    if (!folder_path(&n.dir, err, "%s/%s", j->role_dir.text, n.id.text) ||
        !folder_path(&n.unborn, err, "%s.new", n.dir.text) || !build(j, &n, err)) {
        return err_wrap(err, "begin a journal");
    }
    (void)pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < n.n_gaps; i++) {
        losses_told(&j->losses, &n.gaps[i]);
    }
    j->losses.gap_count = 0;
    j->losses.owed_count = 0;
    losses_save(&j->losses, &n.mark); /* what is owed goes along */
    end_predecessor(j);
    j->id = n.id;
    j->mark = n.mark;
    n.mark = (struct mark){ 0 };
    (void)pthread_mutex_unlock(&j->lock);
    j->dir = n.dir;
    memcpy(j->id_bytes, n.id_bytes, FORMAT_ID_BYTES);
    j->generation++;
    j->sealing = TAKE_PTR(n.sealing);
    j->segment = n.segment;
    n.segment = SEGMENT_NONE;
    j->next_seq = n.n_gaps + 1;
    j->durable_seq = n.n_gaps;
    mark_move(&j->mark, j->durable_seq, 1);
    return true;
}
