#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/journal/journal_impl.h"

static bool fits(const struct journal *j, uint64_t bytes)
{
    const struct segment *s = &j->segment;

    return s->fd >= 0 && !s->failed && s->end + bytes + RESERVE_BYTES <= s->size;
}

/* Room for the usual, or for one commit that is larger. */
static uint64_t size_for(const struct journal *j, uint64_t bytes)
{
    uint64_t least = FORMAT_HEAD_BYTES + bytes + 2 * (uint64_t)RESERVE_BYTES;

    return least > j->o.segment_bytes ? least : j->o.segment_bytes;
}

static bool quota_allows(struct journal *j, uint64_t more, struct err *err)
{
    uint64_t used = folder_bytes(j->io, j->role_dir.text);
    uint64_t quota = j->quota_bytes;
    bool ok = quota == 0 || used + more <= quota;

    (void)pthread_mutex_lock(&j->lock);
    j->stats.bytes_on_disk = used;
    j->stats.full = !ok;
    (void)pthread_mutex_unlock(&j->lock);
    return ok ? true
              : err_set(err, ERR_AGAIN, "quota: %" PRIu64 " of %" PRIu64 " bytes are used", used,
                        quota);
}

/* True when these are the frames from durable_seq + 1 to next_seq - 1, and nothing else. */
static bool are_whole(const struct journal *j, struct slice bytes)
{
    uint64_t seq = j->durable_seq + 1;

    while (bytes.len > 0) {
        struct format_frame f;
        size_t n;

        if (format_get_frame(j->id_bytes, bytes, &f, &n) != FORMAT_FRAME || f.seq != seq) {
            return false;
        }
        bytes.ptr += n;
        bytes.len -= n;
        seq++;
    }
    return seq == j->next_seq;
}

static bool create(struct journal *j, struct slice carried, uint64_t bytes, struct err *err)
{
    struct segment made = SEGMENT_NONE;
    struct format_head head = {
        .generation = j->generation,
        .first_seq = j->durable_seq + 1,
        .time_us = j->io->now_us(j->io->ctx),
    };

    memcpy(head.journal, j->id_bytes, FORMAT_ID_BYTES);
    memcpy(head.boot, j->boot, FORMAT_ID_BYTES);
    head.checkpoint_seq = sealing_last(j->sealing, &head.checkpoint);
    if (!segment_create(j->io, j->dir.text, &head, carried, size_for(j, bytes + carried.len), &made,
                        err)) {
        return false;
    }
    if (j->segment.failed) { /* what was not durable is void now */
        j->segment.failed = false;
        j->segment.end = j->segment.durable;
    }
    segment_close(&j->segment);
    j->segment = made;
    j->durable_seq = j->next_seq - 1;
    mark_move(&j->mark, j->durable_seq, made.first_seq);
    mark_set_void(&j->mark, 0);
    return true;
}

/*
 * Settled already (durability write), and now the disk does not give it back:
 * those positions were told, so another journal has to go on.
 */
static bool lose_settled(struct journal *j, struct err *err)
{
    (void)pthread_mutex_lock(&j->lock);
    losses_add(&j->losses, j->next_seq - 1 - j->durable_seq, "io", j->io->now_us(j->io->ctx));
    (void)pthread_mutex_unlock(&j->lock);
    if (!birth_begin(j, err)) {
        (void)pthread_mutex_lock(&j->lock);
        j->losses.total -= j->next_seq - 1 - j->durable_seq; /* counted again by the next try */
        losses_told(&j->losses,
                    &(struct loss){ .cause = "io", .count = j->next_seq - 1 - j->durable_seq });
        (void)pthread_mutex_unlock(&j->lock);
        return false;
    }
    return true;
}

/* From a failed segment, what is settled and not durable goes along to the next. */
static bool replace_failed(struct journal *j, uint64_t bytes, struct err *err)
{
    struct segment *s = &j->segment;
    uint64_t n = j->o.durability == JOURNAL_WRITE ? s->end - s->durable : 0;
    char *carried = xcalloc(1, n + 1);
    bool ok;

    if (j->next_seq - 1 == j->durable_seq) {
        n = 0;
    }
    if (n > 0 && (!segment_read_unsynced(s, carried, err) ||
                  !are_whole(j, (struct slice){ .ptr = carried, .len = n }))) {
        ok = lose_settled(j, err);
    } else {
        ok = create(j, (struct slice){ .ptr = carried, .len = n }, bytes, err);
    }
    free(carried);
    return ok;
}

bool room_make(struct journal *j, uint64_t bytes, struct err *err)
{
    struct err ignored;

    if (fits(j, bytes)) {
        return true;
    }
    if (j->segment.fd >= 0 && j->segment.failed) {
        return replace_failed(j, bytes, err);
    }
    if (!quota_allows(j, size_for(j, bytes), err)) {
        return false;
    }
    if (j->segment.fd >= 0 && !writer_checkpoint(j, &ignored)) {
        return replace_failed(j, bytes, err);
    }
    segment_close(&j->segment);
    return create(j, (struct slice){ 0 }, bytes, err);
}
