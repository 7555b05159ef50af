#include "collector/journal/adopt.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "collector/base/log.h"
#include "collector/journal/missing.h"
#include "collector/journal/recovery.h"

/* The journal that a role wrote last, as far as its files tell. */
struct candidate {
    struct id id;
    struct folder_path dir;
    uint64_t generation;
};

/* The generation in the head of a journal's newest segment that is sound; 0: unknown. */
static uint64_t generation_in_heads(const struct journal *j, const char *dir, struct slice id)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    unsigned char bytes[FORMAT_ID_BYTES];
    struct err err;

    id_bytes(id, bytes);
    if (!folder_segments(j->io, dir, &s, &err)) {
        return 0;
    }
    for (size_t i = s.n; i > 0; i--) {
        CLEANUP(scan_close) struct scan scan = SCAN_NONE;
        struct format_head head;

        if (scan_open(j->io, dir, bytes, s.first[i - 1], &scan, &err) && scan_head(&scan, &head)) {
            return head.generation;
        }
    }
    return 0;
}

static uint64_t generation_of(const struct journal *j, const char *dir, struct slice id)
{
    CLEANUP(mark_close) struct mark mark = { 0 };
    struct format_mark m;
    struct err err;

    if (mark_open(j->io, dir, false, &mark, &err) && mark_get(&mark, &m)) {
        return m.generation;
    }
    return generation_in_heads(j, dir, id);
}

/* What is left of a journal. */
enum rest {
    REST_SEGMENTS,
    REST_NOTHING, /* it was being removed, and no record is missed */
    REST_MISSED,  /* no segment, but a mark that tells of records, or cannot be believed */
};

static enum rest look(const struct journal *j, const char *dir, struct missing *ret)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    CLEANUP(mark_close) struct mark mark = { 0 };
    struct err err;
    bool listed = folder_segments(j->io, dir, &s, &err);
    bool marked = mark_open(j->io, dir, false, &mark, &err);

    *ret = missing_before(&mark, &s);
    if (!listed || s.n > 0) {
        return REST_SEGMENTS;
    }
    if (marked && mark_sound(&mark)) {
        return missing_count(*ret) > 0 ? REST_MISSED : REST_NOTHING;
    }
    return !marked && err.code == ERR_NOT_FOUND ? REST_NOTHING : REST_MISSED;
}

/* The journal in use: the highest generation. */
static bool find_last(struct journal *j, struct candidate *ret, bool *ret_found, struct err *err)
{
    CLEANUP(folder_journals_done) struct folder_journals all = { 0 };

    *ret_found = false;
    if (!folder_journals(j->io, j->role_dir.text, &all, err)) {
        return false;
    }
    for (size_t i = 0; i < all.n; i++) {
        struct candidate c = { .id = all.ids[i] };
        struct missing ignored;

        if (!folder_path(&c.dir, err, "%s/%s", j->role_dir.text, c.id.text)) {
            return false;
        }
        if (look(j, c.dir.text, &ignored) == REST_NOTHING) {
            folder_remove(j->io, c.dir.text);
            continue;
        }
        c.generation = generation_of(j, c.dir.text, id_slice(&c.id));
        if (!*ret_found || c.generation >= ret->generation) {
            *ret = c;
            *ret_found = true;
        }
    }
    return true;
}

/* A crash may have come between a birth and the end of the one before: make up for it. */
static void end_others(struct journal *j)
{
    CLEANUP(folder_journals_done) struct folder_journals all = { 0 };
    struct err err;

    if (!folder_journals(j->io, j->role_dir.text, &all, &err)) {
        return;
    }
    for (size_t i = 0; i < all.n; i++) {
        CLEANUP(mark_close) struct mark mark = { 0 };
        struct folder_path dir;

        if (strcmp(all.ids[i].text, j->id.text) != 0 &&
            folder_path(&dir, &err, "%s/%s", j->role_dir.text, all.ids[i].text) &&
            mark_open(j->io, dir.text, true, &mark, &err) &&
            mark_state(&mark) != FORMAT_MARK_ENDED) {
            mark_set_state(&mark, FORMAT_MARK_ENDED);
            (void)!mark_sync(&mark, &err); /* else the next opening does it again */
        }
    }
}

/* What the mark tells of how the journal was left. */
struct left {
    bool ended;
    bool moved;         /* the folder is a copy */
    bool other_boot;    /* not closed, and the machine was started anew since */
    bool write_through; /* it was settled before it was durable */
};

static struct left how_left(struct journal *j)
{
    struct left left = { .write_through = j->o.durability == JOURNAL_WRITE };
    struct format_mark m;
    struct io_place place;
    bool closed = mark_state(&j->mark) == FORMAT_MARK_CLOSED;

    left.ended = mark_state(&j->mark) == FORMAT_MARK_ENDED;
    if (!mark_get(&j->mark, &m)) {
        left.other_boot = !closed;
        return left;
    }

    bool same_boot = memcmp(m.boot, j->boot, FORMAT_ID_BYTES) == 0;

    left.other_boot = !same_boot && !closed;
    left.write_through = m.durability == FORMAT_DURABILITY_WRITE;
    /* Devices may be numbered anew at each start of the machine. */
    left.moved = j->io->place(j->io->ctx, j->dir.text, &place) < 0 || place.inode != m.inode ||
                 memcmp(m.machine, j->machine, FORMAT_ID_BYTES) != 0 ||
                 (same_boot && place.device != m.device);
    return left;
}

bool adopt_describe(struct journal *j, const char *dir, struct format_mark *ret, struct err *err)
{
    struct io_place place;

    if (j->io->place(j->io->ctx, dir, &place) < 0) {
        return err_errno(err, errno, "stat %s", dir);
    }
    *ret = (struct format_mark){
        .device = place.device,
        .inode = place.inode,
        .durability =
            j->o.durability == JOURNAL_FSYNC ? FORMAT_DURABILITY_FSYNC : FORMAT_DURABILITY_WRITE,
    };
    memcpy(ret->machine, j->machine, FORMAT_ID_BYTES);
    memcpy(ret->boot, j->boot, FORMAT_ID_BYTES);
    return true;
}

/* Say in the mark who has it now. */
static bool sign_mark(struct journal *j, struct err *err)
{
    struct format_mark m;

    if (!adopt_describe(j, j->dir.text, &m, err)) {
        return false;
    }
    m.generation = j->generation;
    memcpy(m.journal, j->id_bytes, FORMAT_ID_BYTES);
    mark_put(&j->mark, &m);
    mark_set_void(&j->mark, 0); /* what was void is not there: else this journal were not gone on */
    mark_set_state(&j->mark, FORMAT_MARK_OPEN);
    return mark_sync(&j->mark, err);
}

/* The mark of the journal in use; a new one where it is lost. */
static bool take_mark(struct journal *j, struct err *err)
{
    struct format_mark m;

    if (mark_open(j->io, j->dir.text, true, &j->mark, err)) {
        return true;
    }
    if (err->code == ERR_IO || !adopt_describe(j, j->dir.text, &m, err)) {
        return false;
    }
    memset(m.boot, 0, FORMAT_ID_BYTES); /* nobody knows */
    m.generation = j->generation;
    memcpy(m.journal, j->id_bytes, FORMAT_ID_BYTES);
    return mark_create(j->io, j->dir.text, &m, &j->mark, err);
}

/* Go on where it stopped. */
static bool go_on(struct journal *j, const struct recovery *r, struct err *err)
{
    struct segment_place at = { r->segment, r->durable_end, r->end };

    if (!segment_reopen(j->io, j->dir.text, &at, j->o.segment_bytes, &j->segment, err) ||
        !sign_mark(j, err)) {
        return false;
    }
    j->next_seq = r->last_seq + 1;
    j->durable_seq = r->last_seq;
    mark_move(&j->mark, j->durable_seq, r->segment);
    return true;
}

/* Cut the torn tail, if there is one, and leave the mark where readers may go. */
static bool cut(struct journal *j, const struct recovery *r, struct err *err)
{
    struct segment_place at = { r->segment, r->durable_end, r->end };
    struct segment s = SEGMENT_NONE;

    if (!segment_reopen(j->io, j->dir.text, &at, 0, &s, err)) {
        return false;
    }
    if (r->cut_bytes > 0) {
        segment_close(&s);
    } else {
        j->io->close(j->io->ctx, s.fd); /* damaged frames are evidence: they stay */
    }
    mark_move(&j->mark, r->highest_seq > r->last_seq ? r->highest_seq : r->last_seq, r->segment);
    return true;
}

static void count(struct journal *j, uint64_t n, const char *cause)
{
    losses_add(&j->losses, n, cause, j->io->now_us(j->io->ctx));
}

/* No frame can be read: of how many, the mark may know. */
static void count_all(struct journal *j, struct journal_recovery *ret)
{
    struct missing m;

    if (look(j, j->dir.text, &m) == REST_MISSED && missing_count(m) > 0) {
        ret->missing = missing_count(m);
        count(j, ret->missing, "missing");
    } else {
        count(j, 0, "damage");
    }
}

/* What is not there any more, and whether the journal can go on under its id. */
static bool count_missing(struct journal *j, struct left left, const struct recovery *r)
{
    bool unsure = left.other_boot && left.write_through;

    if (r->damaged > 0) {
        count(j, r->damaged, "damage");
    }
    if (unsure) {
        count(j, 0, "unclean_boot");
    }
    return !unsure && r->damaged == 0 && r->cut_bytes == 0 && !r->unsound;
}

/* What is read is kept in the same journal, or followed by another one that tells what is not. */
static bool recover(struct journal *j, struct journal_recovery *ret, struct err *err)
{
    struct left left = how_left(j);
    struct recovery r = { 0 };
    char key[KEY_ID_SIZE] = "";

    static_assert(sizeof(key) == sizeof(ret->key_lost), "a key's id");
    if (!birth_seal(j, &j->id, &j->sealing, err)) {
        return false;
    }

    bool readable = recovery_read(j->io, j->dir.text, id_slice(&j->id),
                                  mark_sound(&j->mark) ? &j->mark : NULL, j->sealing, &r, err);

    losses_load(&j->losses, &j->mark, r.last_seq, j->io->now_us(j->io->ctx));
    ret->moved = left.moved;
    if (left.moved) {
        return birth_begin(j, err);
    }
    if (!readable) {
        count_all(j, ret);
        return birth_begin(j, err);
    }
    if (left.ended) {
        return birth_begin(j, err);
    }
    ret->cut_bytes = r.cut_bytes;
    ret->damaged = r.damaged;
    if (count_missing(j, left, &r)) {
        if (sealing_can_go_on(j->sealing, key)) {
            return go_on(j, &r, err);
        }
        memcpy(ret->key_lost, key, sizeof(key));
        log_warn("the key that signed the journal is lost, another one signs a new journal",
                 log_str("key", key), log_str("journal", j->id.text));
    }
    return cut(j, &r, err) && birth_begin(j, err);
}

/* A predecessor may have died between a rename and the sync of its folder. */
static bool sync_names(struct journal *j, struct err *err)
{
    if (j->io->sync_dir(j->io->ctx, j->role_dir.text) < 0 ||
        j->io->sync_dir(j->io->ctx, j->dir.text) < 0) {
        return err_errno(err, errno, "fsync folder %s", j->dir.text);
    }
    return true;
}

/* The loss of a journal without segments is in our mark: do not count it again. */
static void settle_missed(struct journal *j, const char *dir, struct missing m)
{
    CLEANUP(mark_close) struct mark mark = { 0 };
    struct err err;

    if (missing_count(m) == 0) {
        folder_remove(j->io, dir);
    } else if (mark_open(j->io, dir, true, &mark, &err)) {
        mark_set_retired(&mark, m.to + 1);
        (void)!mark_sync(&mark, &err); /* else it is counted twice rather than never */
    }
}

/* Count what is missing of another journal in our mark, before its own is settled. */
static bool count_missed(struct journal *j, struct missing m, struct err *err)
{
    count(j, missing_count(m), "missing");
    losses_save(&j->losses, &j->mark);
    return mark_sync(&j->mark, err);
}

/*
 * A journal whose segments are gone. Where some are left, readers tell of the others
 * where they stand; of one without any nobody would: it is counted here, unless it
 * is counted already.
 */
static bool tell_one(struct journal *j, const struct id *id, bool counted, struct err *err)
{
    struct folder_path dir;
    struct missing m;

    if (!folder_path(&dir, err, "%s/%s", j->role_dir.text, id->text)) {
        return false;
    }

    enum rest rest = look(j, dir.text, &m);

    if (missing_count(m) > 0 || rest == REST_MISSED) {
        log_error("segments of the journal are missing, and were not retired",
                  log_str("journal", id->text), log_i64("from", (int64_t)m.from),
                  log_i64("to", (int64_t)m.to));
    }
    if (rest == REST_MISSED) {
        if (!counted && !count_missed(j, m, err)) {
            return false;
        }
        settle_missed(j, dir.text, m);
    }
    return true;
}

/* All journals of the role; the loss of the one that was `adopted` is counted. */
static bool tell_missing(struct journal *j, const struct id *adopted, struct err *err)
{
    CLEANUP(folder_journals_done) struct folder_journals all = { 0 };

    if (!folder_journals(j->io, j->role_dir.text, &all, err)) {
        return false;
    }
    for (size_t i = 0; i < all.n; i++) {
        if (!tell_one(j, &all.ids[i], strcmp(all.ids[i].text, adopted->text) == 0, err)) {
            return false;
        }
    }
    return true;
}

bool adopt_last(struct journal *j, struct journal_recovery *ret, struct err *err)
{
    struct candidate c;
    bool found;

    if (!find_last(j, &c, &found, err)) {
        return false;
    }
    ret->created = !found;
    if (!found) {
        return birth_begin(j, err);
    }
    j->id = c.id;
    j->dir = c.dir;
    j->generation = c.generation;
    id_bytes(id_slice(&c.id), j->id_bytes);
    folder_remove_unborn(j->io, j->dir.text);
    if (!sync_names(j, err) || !take_mark(j, err) || !recover(j, ret, err)) {
        return false;
    }
    end_others(j);
    return tell_missing(j, &c.id, err);
}
