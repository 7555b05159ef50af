#include <string.h>

#include "collector/base/log.h"
#include "collector/journal/journal_impl.h"

static void stage_frame(struct journal *j, enum record_type type, struct slice bytes,
                        const struct digest *leaf)
{
    struct format_frame f = {
        .seq = j->group_seq,
        .type = type,
        .starts_commit = j->group_len == 0,
        .durable_before = j->group_len == 0 ? j->durable_seq : 0,
        .leaf = *leaf,
        .bytes = bytes,
    };

    format_put_frame(j->id_bytes, &f, (unsigned char *)j->group + j->group_len);
    j->group_len += format_frame_bytes(bytes.len);
    j->group_seq++;
}

/* The record in `scratch`, which is the writer's own. */
static void stage_own(struct journal *j, enum record_type type)
{
    struct digest leaf = format_leaf(buf_slice(&j->scratch));

    stage_frame(j, type, buf_slice(&j->scratch), &leaf);
}

static void begin_group(struct journal *j)
{
    j->group_len = 0;
    j->group_seq = j->next_seq;
    j->n_group_gaps = 0;
}

/* The frames of the group are written for good: number on behind them. */
static void accept_group(struct journal *j)
{
    j->next_seq = j->group_seq;
    j->unsealed_len = j->group_len;
    j->group_len = 0;
}

/* Seal on behind what was accepted: after it is settled, so that nobody waits for it. */
static void seal_group(struct journal *j)
{
    struct slice rest = { .ptr = j->group, .len = j->unsealed_len };

    while (rest.len > 0) {
        struct format_frame f;
        size_t n = 0;

        format_peek_frame(rest, &f, &n);
        sealing_add(j->sealing, &f);
        rest.ptr += n;
        rest.len -= n;
    }
    j->unsealed_len = 0;
}

/* Make all that was written durable. */
static bool sync_segment(struct journal *j, struct err *err)
{
    bool ok = segment_sync(&j->segment, err);

    (void)pthread_mutex_lock(&j->lock);
    j->stats.syncs++;
    j->stats.sync_failures += ok ? 0 : 1;
    (void)pthread_mutex_unlock(&j->lock);
    return ok;
}

static void move_mark(struct journal *j)
{
    if (j->durable_seq != j->next_seq - 1) {
        j->durable_seq = j->next_seq - 1;
        mark_move(&j->mark, j->durable_seq, j->segment.first_seq);
        (void)pthread_mutex_lock(&j->lock);
        j->stats.durable_seq = j->durable_seq;
        (void)pthread_mutex_unlock(&j->lock);
    }
}

/*
 * Write what is staged, and sync it if that is asked. With durability `write` the
 * frames are accepted once written, and stay whatever the sync says.
 */
static bool store(struct journal *j, bool sync, struct err *err)
{
    bool at_once = j->o.durability == JOURNAL_WRITE;

    if (!segment_write(&j->segment, (struct slice){ .ptr = j->group, .len = j->group_len }, err)) {
        return false;
    }
    if (at_once) {
        accept_group(j);
    } else {
        segment_write_ahead(&j->segment);
    }
    if (!sync) {
        return true;
    }
    if (!sync_segment(j, err)) {
        return false;
    }
    if (!at_once) {
        accept_group(j);
    }
    move_mark(j);
    return true;
}

bool writer_checkpoint(struct journal *j, struct err *err)
{
    begin_group(j);
    buf_clear(&j->scratch);
    if (!sealing_make(j->sealing, j->io->now_us(j->io->ctx), &j->scratch, err)) {
        return false;
    }
    if (!buf_ok(&j->scratch) || j->scratch.len_bytes > FORMAT_CHECKPOINT_MAX) {
        return err_set(err, ERR_TOO_BIG, "a checkpoint does not fit into a segment's head");
    }
    stage_own(j, RECORD_CHECKPOINT);

    bool ok = store(j, true, err);

    seal_group(j);
    return ok;
}

static size_t batch_bytes(const struct journal_batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++) {
        n += format_frame_bytes(b->records[i].bytes.len);
    }
    return n;
}

/* Move whole batches from the queue to `taken`, as many as one commit holds. */
static void take(struct journal *j)
{
    struct journal_batch **end = &j->taken;
    size_t bytes = 0;

    (void)pthread_mutex_lock(&j->lock);
    while (j->first && bytes + batch_bytes(j->first) <= GROUP_BYTES - RESERVE_BYTES) {
        struct journal_batch *b = j->first;

        bytes += batch_bytes(b);
        j->first = b->next;
        b->next = NULL;
        *end = b;
        end = &b->next;
    }
    if (!j->first) {
        j->last = NULL;
    }
    (void)pthread_mutex_unlock(&j->lock);
}

static size_t taken_bytes(const struct journal *j)
{
    size_t bytes = 0;

    for (const struct journal_batch *b = j->taken; b; b = b->next) {
        bytes += batch_bytes(b);
    }
    return bytes;
}

/* Gap records for what was lost so far; the losses stay until these are durable. */
static void stage_gaps(struct journal *j)
{
    uint64_t sum = 0;

    (void)pthread_mutex_lock(&j->lock);
    j->n_group_gaps = j->losses.n;
    memcpy(j->group_gaps, j->losses.list, sizeof(j->group_gaps));
    (void)pthread_mutex_unlock(&j->lock);
    for (size_t i = 0; i < j->n_group_gaps; i++) {
        buf_clear(&j->scratch);
        losses_encode(&j->group_gaps[i], j->o.collector, j->io->now_us(j->io->ctx), &j->scratch);
        stage_own(j, RECORD_GAP);
        sum += j->group_gaps[i].count;
    }
    if (sum > 0) {
        (void)pthread_mutex_lock(&j->lock);
        j->losses.gap_seq = j->group_seq - 1;
        j->losses.gap_count = sum;
        losses_save(&j->losses, &j->mark);
        (void)pthread_mutex_unlock(&j->lock);
    }
}

/* What callers take for stored is being written now: the mark tells where. */
static void stage_owed(struct journal *j, uint64_t first_seq)
{
    uint64_t owed = 0;

    (void)pthread_mutex_lock(&j->lock);
    for (struct journal_batch *b = j->taken; b; b = b->next) {
        b->staged = true;
        owed += b->owed ? b->n : 0;
    }
    j->losses.owed_seq = first_seq;
    if (owed != j->losses.owed_count || owed > 0) {
        j->losses.owed_count = owed;
        losses_save(&j->losses, &j->mark);
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* The whole group; where its first batch begins. */
static uint64_t stage(struct journal *j)
{
    begin_group(j);
    stage_gaps(j);

    uint64_t first_seq = j->group_seq;

    for (const struct journal_batch *b = j->taken; b; b = b->next) {
        for (size_t i = 0; i < b->n; i++) {
            stage_frame(j, b->records[i].type, b->records[i].bytes, &b->records[i].leaf);
        }
    }
    stage_owed(j, first_seq);
    return first_seq;
}

/* The gap records are stored: what they tell of is not to be told again. */
static void gaps_stored(struct journal *j)
{
    if (j->n_group_gaps == 0) {
        return;
    }
    (void)pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < j->n_group_gaps; i++) {
        losses_told(&j->losses, &j->group_gaps[i]);
    }
    j->losses.gap_count = 0;
    losses_save(&j->losses, &j->mark);
    (void)pthread_mutex_unlock(&j->lock);
    j->n_group_gaps = 0;
}

/* Count what becomes of the batches that were taken. `lost_to`: NULL when they are stored. */
static void count(struct journal *j, const char *lost_to)
{
    uint64_t records = 0;
    uint64_t owed = 0;

    (void)pthread_mutex_lock(&j->lock);
    for (struct journal_batch *b = j->taken; b; b = b->next) {
        b->counted = true;
        records += b->n;
        owed += b->owed ? b->n : 0;
    }
    j->stats.queue_bytes -= taken_bytes(j);
    j->stats.durable_seq = j->durable_seq;
    j->losses.owed -= owed;
    if (!lost_to) {
        j->stats.stored_records += records;
        j->stats.full = false;
    } else if (records > 0) {
        losses_add(&j->losses, records, lost_to, j->io->now_us(j->io->ctx));
        j->losses.gap_count = 0;
    }
    if (owed > 0 || (lost_to && records > 0)) {
        j->losses.owed_count = 0;
        losses_save(&j->losses, &j->mark);
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* Tell each batch; its owner may free it in that very call. */
static void settle(struct journal *j, enum journal_outcome outcome, uint64_t first_seq)
{
    struct journal_batch *b = j->taken;

    j->taken = NULL;
    j->n_settled = 0;
    while (b) {
        struct journal_batch *next = b->next;
        uint64_t seq = first_seq;

        first_seq += outcome == JOURNAL_STORED ? b->n : 0;
        b->on_settled(b, outcome, seq);
        j->n_settled++;
        b = next;
    }
}

static void say_well_again(struct journal *j)
{
    const char *cause;
    uint64_t lost;

    j->retry_at_ms = 0;
    (void)pthread_mutex_lock(&j->lock);
    cause = j->stats.refuses;
    lost = j->losses.total - j->lost_before;
    j->stats.refuses = NULL;
    (void)pthread_mutex_unlock(&j->lock);
    if (cause) {
        log_info("journal stores records again", log_str("cause", cause),
                 log_i64("lost", (int64_t)lost));
    }
}

void writer_say_lost(struct journal *j)
{
    (void)pthread_mutex_lock(&j->lock);

    const char *cause = j->stats.refuses;
    uint64_t lost = j->losses.total - j->lost_before;

    (void)pthread_mutex_unlock(&j->lock);
    if (cause && lost > 0) {
        log_error("journal closed without records that it could not store, a gap will tell them",
                  log_str("cause", cause), log_i64("lost", (int64_t)lost));
    }
}

/* The disk takes nothing now: hold what was taken, or lose it and say so. */
static bool refused(struct journal *j, const struct err *err)
{
    const char *cause = err->code == ERR_AGAIN ? "disk_full" : "io";

    j->retry_at_ms = j->io->mono_ms(j->io->ctx) + RETRY_MS;
    (void)pthread_mutex_lock(&j->lock);

    bool drop = j->closing || j->when_full == JOURNAL_FULL_DROP_NEW;

    cause = j->stats.full ? "quota" : cause;

    bool said = j->stats.refuses; /* once, until it is well again */

    j->lost_before = said ? j->lost_before : j->losses.total;
    j->stats.refuses = cause;
    (void)pthread_mutex_unlock(&j->lock);
    if (!said) {
        log_error("journal cannot store records", log_str("cause", cause),
                  log_str("when_full", drop ? "drop_new" : "block"), log_str("err", err->text));
    }
    if (!drop || !j->taken) {
        return false;
    }
    if (j->segment.failed) { /* its frames may be in the file all the same */
        mark_set_void(&j->mark, j->next_seq);
    }
    count(j, cause);
    settle(j, JOURNAL_LOST, 0);
    return true;
}

static bool commit(struct journal *j)
{
    size_t bytes = taken_bytes(j);
    struct err err;

    for (int tries = 0; tries < 2; tries++) { /* a failed segment is followed by a new one */
        if (!room_make(j, bytes, &err)) {
            return refused(j, &err);
        }

        uint64_t first_seq = stage(j);

        if (j->group_len == 0) { /* the gaps went to the head of a new journal */
            say_well_again(j);
            return false;
        }
        if (store(j, j->o.durability == JOURNAL_FSYNC, &err)) {
            say_well_again(j);
            gaps_stored(j);
            count(j, NULL);
            settle(j, JOURNAL_STORED, first_seq);
            seal_group(j);
            return true;
        }
    }
    return refused(j, &err);
}

/* What callers have counted is put into the mark here: a gap record may be long in coming. */
static void save_losses(struct journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    if (j->losses_unsaved) {
        losses_save(&j->losses, &j->mark);
        j->losses_unsaved = false;
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* What comes with time: a checkpoint, a sync. A failure is met by the next commit. */
static void keep_house(struct journal *j)
{
    int64_t now_ms = j->io->mono_ms(j->io->ctx);
    struct err err;

    if (now_ms >= j->checkpoint_at_ms) {
        j->checkpoint_at_ms = now_ms + j->o.checkpoint_ms;
        if (room_make(j, 0, &err)) {
            (void)!writer_checkpoint(j, &err);
        }
    }
    if (now_ms >= j->sync_at_ms) {
        j->sync_at_ms = now_ms + SYNC_MS;
        if (j->segment.fd >= 0 && !j->segment.failed && j->segment.end > j->segment.durable &&
            sync_segment(j, &err)) {
            move_mark(j);
        }
    }
}

/* True while the disk has refused and need not be asked again so soon. */
static bool is_pausing(struct journal *j)
{
    return j->retry_at_ms > 0 && j->io->mono_ms(j->io->ctx) < j->retry_at_ms;
}

static bool losses_due(struct journal *j)
{
    (void)pthread_mutex_lock(&j->lock);

    bool due = losses_any(&j->losses);

    (void)pthread_mutex_unlock(&j->lock);
    return due;
}

bool writer_round(struct journal *j)
{
    bool hold;

    keep_house(j);
    save_losses(j);
    (void)pthread_mutex_lock(&j->lock);
    hold = !j->closing && j->when_full == JOURNAL_FULL_BLOCK;
    (void)pthread_mutex_unlock(&j->lock);
    if (is_pausing(j) && hold) {
        return false;
    }
    if (!j->taken) {
        take(j);
    }
    return (j->taken || (losses_due(j) && !is_pausing(j))) && commit(j);
}

int64_t writer_due_ms(const struct journal *j)
{
    int64_t due_ms = j->checkpoint_at_ms;

    if (j->o.durability == JOURNAL_WRITE && j->sync_at_ms < due_ms) {
        due_ms = j->sync_at_ms;
    }
    if (j->retry_at_ms > 0 && j->retry_at_ms < due_ms) {
        due_ms = j->retry_at_ms;
    }
    return due_ms;
}
