#include <errno.h>
#include <stdlib.h>

#include "collector/base/mem.h"
#include "collector/journal/adopt.h"
#include "collector/journal/journal_impl.h"

static bool take_lock(struct journal *j, struct err *err)
{
    struct folder_path path;

    if (!folder_path(&path, err, "%s/role.lock", j->role_dir.text)) {
        return false;
    }
    j->lock_fd = j->io->lock(j->io->ctx, path.text);
    if (j->lock_fd >= 0) {
        return true;
    }
    return errno == EWOULDBLOCK
               ? err_set(err, ERR_AGAIN, "%s is written by another process", j->role_dir.text)
               : err_errno(err, errno, "lock %s", path.text);
}

static struct journal *new_journal(const struct journal_options *o)
{
    struct journal *j = xcalloc(1, sizeof(*j));
    pthread_condattr_t attr;

    j->o = *o;
    j->when_full = o->when_full;
    j->quota_bytes = o->quota_bytes;
    j->keep_ms = o->keep_ms;
    j->io = o->io ? o->io : &journal_io_real;
    j->lock_fd = -1;
    j->segment = SEGMENT_NONE;
    j->group = xcalloc(1, GROUP_BYTES);
    /* Less than the quota by far: or the segment in use could never be followed and retired. */
    if (j->o.quota_bytes > 0 && j->o.segment_bytes > j->o.quota_bytes / 4) {
        j->o.segment_bytes = j->o.quota_bytes / 4;
    }
    buf_init(&j->scratch, RECORD_MAX_BYTES);
    (void)pthread_mutex_init(&j->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&j->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    j->io->machine(j->io->ctx, j->machine, j->boot);
    return j;
}

static bool open_all(struct journal *j, struct journal_recovery *ret, struct err *err)
{
    if (!folder_path(&j->role_dir, err, "%s/journals/%s", j->o.state_dir, j->o.role) ||
        !folder_make(j->io, j->role_dir.text, err) || !take_lock(j, err)) {
        return false;
    }
    folder_remove_unborn(j->io, j->role_dir.text);
    return adopt_last(j, ret, err);
}

bool open_core(const struct journal_options *o, struct journal **ret,
               struct journal_recovery *ret_recovery, struct err *err)
{
    struct journal *j = new_journal(o);

    *ret_recovery = (struct journal_recovery){ 0 };
    if (!open_all(j, ret_recovery, err)) {
        free_core(j);
        return err_wrap(err, "journal");
    }
    j->checkpoint_at_ms = j->io->mono_ms(j->io->ctx) + o->checkpoint_ms;
    j->sync_at_ms = j->io->mono_ms(j->io->ctx) + SYNC_MS;
    j->stats.bytes_on_disk = folder_bytes(j->io, j->role_dir.text);
    j->stats.durable_seq = j->durable_seq;
    *ret = j;
    return true;
}

static void start_closing(struct journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    j->closing = true;
    (void)pthread_mutex_unlock(&j->lock);
}

void close_core(struct journal *j)
{
    struct err err;

    start_closing(j);
    while (writer_round(j)) {
    }
    writer_say_lost(j);

    bool sealed = j->segment.fd >= 0 && (!j->segment.failed || room_make(j, 0, &err)) &&
                  writer_checkpoint(j, &err);

    segment_close(&j->segment);
    if (sealed) {
        mark_set_state(&j->mark, FORMAT_MARK_CLOSED);
    }
    (void)!mark_sync(&j->mark, &err); /* a late mark is harmless */
}

void free_core(struct journal *j)
{
    if (!j) {
        return;
    }
    segment_close(&j->segment);
    mark_close(&j->mark);
    sealing_free(j->sealing);
    if (j->lock_fd >= 0) {
        j->io->close(j->io->ctx, j->lock_fd);
    }
    buf_done(&j->scratch);
    free(j->group);
    (void)pthread_cond_destroy(&j->wake);
    (void)pthread_mutex_destroy(&j->lock);
    free(j);
}
