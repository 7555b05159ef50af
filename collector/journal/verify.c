/*
 * verify: one pass over the durable frames, range by range.
 *
 *     [checkpoint] record record … [checkpoint] record … [checkpoint] record
 *     └────────── a range: one tree ──────────┘└── the next ─┘        └ unsealed
 *
 * A checkpoint must cover exactly the range before it, name the checkpoint before
 * it, and be signed by the key that was in force. What follows the first thing
 * that does not fit proves nothing, so the pass ends there.
 */
#include "collector/journal/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/arena.h"
#include "collector/journal/checkpoint.h"
#include "collector/journal/missing.h"
#include "collector/journal/reader.h"
#include "collector/journal/scan.h"
#include "collector/record/decode.h"
#include "collector/record/payload.h"

enum {
    ARENA_BYTES = 4 * 1024 * 1024, /* one record that is read */
    PROGRESS_EVERY = 4096,         /* records */
};

struct verifier {
    const struct verify_options *o;
    struct verify_report *report;
    struct verify_proof *proof;
    struct journal_reader *reader;
    struct arena arena;
    struct merkle_prover range; /* its index is the wanted record's, once it is known */
    uint64_t range_first;
    bool whole_range; /* false: the range begins in a segment that is not kept any more */
    bool has_previous;
    struct digest previous;
    char key_in_force[KEY_ID_SIZE]; /* "": not known yet */
    struct key *key;                /* owned: the public key that was used last */
    bool done;
};

/* The pass ends here. */
static void end_with(struct verifier *v, enum verify_state state, uint64_t seq, const char *fmt,
                     ...) PRINTF_LIKE(4, 5);
static void end_with(struct verifier *v, enum verify_state state, uint64_t seq, const char *fmt,
                     ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(v->report->text, sizeof(v->report->text), fmt, ap);
    va_end(ap);
    v->report->state = state;
    v->report->at_seq = seq;
    v->done = true;
}

/* A new range, whose first leaf is the checkpoint at `seq`, where there is one. */
static void begin_range(struct verifier *v, uint64_t seq, const struct digest *leaf)
{
    merkle_prover_init(&v->range, UINT64_MAX);
    v->range_first = seq;
    if (leaf) {
        merkle_prover_add(&v->range, leaf);
    }
}

/* The public key of that id. False: it is not there, or no key; the pass has ended then. */
static bool find_key(struct verifier *v, const char *id, uint64_t seq)
{
    struct err err;

    if (v->key && strcmp(key_id(v->key), id) == 0) {
        return true;
    }
    key_free(v->key);
    v->key = NULL;
    if (key_open_public(v->o->key_dir, id, &v->key, &err)) {
        return true;
    }
    end_with(v, VERIFY_NO_KEY, seq, "the checkpoint at %" PRIu64 " needs the key %s: %s", seq, id,
             err.text);
    return false;
}

/* The wanted record is in the range that this checkpoint seals: keep its proof. */
static void keep_proof(struct verifier *v, uint64_t seq, const struct checkpoint *c)
{
    struct verify_proof *p = v->proof;

    if (!p || !p->found || p->sealed || p->seq < v->range_first ||
        !merkle_prover_path(&v->range, &p->path)) {
        return;
    }
    p->index = v->range.index;
    p->leaves = v->range.tree.leaves;
    p->root = c->root;
    p->checkpoint_seq = seq;
    memcpy(p->key_id, c->key_id, sizeof(p->key_id));
    p->sealed = merkle_path_holds(&p->path, p->index, p->leaves, &p->leaf, &p->root);
}

/* What a checkpoint says of its range, against what is there. False: the pass has ended. */
static bool fits(struct verifier *v, uint64_t seq, const struct checkpoint *c)
{
    struct digest root = merkle_root(&v->range.tree);
    const struct id *journal = &v->report->journal;

    if (strcmp(c->journal.text, journal->text) != 0) {
        end_with(v, VERIFY_BROKEN, seq, "the checkpoint at %" PRIu64 " is of another journal", seq);
    } else if (c->first_seq != v->range_first || c->last_seq != seq - 1) {
        end_with(v, VERIFY_BROKEN, seq,
                 "the checkpoint at %" PRIu64 " covers %" PRIu64 " to %" PRIu64
                 ", not all since the one before",
                 seq, c->first_seq, c->last_seq);
    } else if (v->whole_range && !digest_equal(&root, &c->root)) {
        end_with(v, VERIFY_BROKEN, v->range_first,
                 "the records from %" PRIu64 " to %" PRIu64 " are not those that were sealed",
                 v->range_first, seq - 1);
    } else if (c->has_previous != v->has_previous ||
               (c->has_previous && !digest_equal(&c->previous, &v->previous))) {
        end_with(v, VERIFY_BROKEN, seq,
                 "the checkpoint at %" PRIu64 " follows another one than the one before it", seq);
    } else if (v->key_in_force[0] != '\0' && strcmp(v->key_in_force, c->key_id) != 0) {
        end_with(v, VERIFY_BROKEN, seq,
                 "the checkpoint at %" PRIu64 " is signed by the key %s, to which %s was not"
                 " handed on",
                 seq, c->key_id, v->key_in_force);
    }
    return !v->done;
}

/* The signature, and what follows from it. False: the pass has ended. */
static bool is_signed(struct verifier *v, uint64_t seq, struct slice record,
                      const struct checkpoint *c)
{
    if (!find_key(v, c->key_id, seq)) {
        return false;
    }
    if (!checkpoint_holds(record, c, v->key)) {
        end_with(v, VERIFY_BROKEN, seq, "the signature of the checkpoint at %" PRIu64 " is false",
                 seq);
        return false;
    }
    return true;
}

static void go_on_behind(struct verifier *v, uint64_t seq, struct slice record,
                         const struct checkpoint *c)
{
    struct digest leaf = format_leaf(record);

    v->has_previous = true;
    v->previous = digest_of(record);
    v->whole_range = true;
    memcpy(v->key_in_force, checkpoint_key_in_force(c), KEY_ID_SIZE);
    memcpy(v->report->key_id, c->key_id, KEY_ID_SIZE);
    begin_range(v, seq, &leaf);
}

static void on_checkpoint(struct verifier *v, const struct journal_frame *f)
{
    struct checkpoint c;
    struct err err;

    if (!checkpoint_read(f->bytes, &v->arena, &c, &err)) {
        end_with(v, VERIFY_BROKEN, f->seq, "at %" PRIu64 ": %s", f->seq, err.text);
        return;
    }
    if (fits(v, f->seq, &c) && is_signed(v, f->seq, f->bytes, &c)) {
        keep_proof(v, f->seq, &c);
        v->report->checkpoints++;
        go_on_behind(v, f->seq, f->bytes, &c);
    }
}

static void on_gap(struct verifier *v, const struct journal_frame *f)
{
    struct gap gap = { 0 };
    struct err err;

    v->report->gaps++;
    if (decode_gap(f->bytes, &v->arena, &gap, &err)) {
        v->report->lost += gap.lost;
    }
}

/* True when this is the wanted record. */
static bool is_wanted(struct verifier *v, const struct journal_frame *f)
{
    struct slice id = v->o->record;
    struct json_value record;
    struct err err;

    return v->proof && !v->proof->found && id.len > 0 &&
           memmem(f->bytes.ptr, f->bytes.len, id.ptr, id.len) &&
           payload_check(f->bytes, &record, &err) &&
           payload_string_is(payload_get(record, SLICE("id")).raw, id);
}

static void on_frame(struct verifier *v, const struct journal_frame *f)
{
    v->report->last_seq = f->seq;
    v->report->records++;
    if (f->type == RECORD_CHECKPOINT) {
        on_checkpoint(v, f);
    } else {
        if (is_wanted(v, f)) {
            v->proof->found = true;
            v->proof->seq = f->seq;
            v->proof->leaf = f->leaf;
            v->range.index = v->range.tree.leaves;
        }
        merkle_prover_add(&v->range, &f->leaf);
        if (f->type == RECORD_GAP) {
            on_gap(v, f);
        }
    }
    arena_clear(&v->arena);
    if (v->o->on_progress && v->report->records % PROGRESS_EVERY == 0) {
        uint64_t last = journal_reader_durable(v->reader);

        v->o->on_progress(v->o->ctx, v->report->records,
                          last == UINT64_MAX ? 0 : last + 1 - v->report->first_seq);
    }
}

/* All durable frames. False, and err, when the disk does not give them. */
static bool read_frames(struct verifier *v, struct err *err)
{
    while (!v->done) {
        struct journal_frame f;

        switch (journal_reader_next(v->reader, &f, err)) {
        case JOURNAL_READ_FRAME:
            on_frame(v, &f);
            break;
        case JOURNAL_READ_RETIRED:
            break;
        case JOURNAL_READ_WAIT:
        case JOURNAL_READ_ENDED:
            return true;
        case JOURNAL_READ_DAMAGED:
            end_with(v, VERIFY_BROKEN, f.seq, "the bytes of record %" PRIu64 " are damaged", f.seq);
            break;
        case JOURNAL_READ_ERROR:
            return false;
        }
    }
    return true;
}

/* The sentence for a pass that found nothing wrong. */
static void conclude(struct verifier *v)
{
    struct verify_report *r = v->report;

    if (!v->reader) {
        return;
    }

    uint64_t sealed = v->has_previous ? v->range_first : r->first_seq - 1;

    r->unsealed_from = r->last_seq > sealed ? sealed + 1 : 0;
    if (v->done) {
        return;
    }
    r->state = r->gaps > 0 ? VERIFY_INCOMPLETE : VERIFY_OK;
    if (r->records == 0) {
        (void)snprintf(r->text, sizeof(r->text), "nothing was written yet");
    } else if (r->unsealed_from > 0) {
        (void)snprintf(r->text, sizeof(r->text),
                       "all fits; the records from %" PRIu64 " on are not sealed yet",
                       r->unsealed_from);
    } else {
        (void)snprintf(r->text, sizeof(r->text), "all fits and is sealed");
    }
    if (r->gaps > 0) {
        size_t used = strlen(r->text);

        (void)snprintf(r->text + used, sizeof(r->text) - used,
                       "; it says itself that %" PRIu64 " records were lost", r->lost);
    }
}

/*
 * Retention removed the segments before the first one that is kept: its head
 * repeats the checkpoint before it, from which all goes on.
 */
static bool begin_behind_head(struct verifier *v, const char *dir, struct err *err)
{
    CLEANUP(scan_close) struct scan scan = SCAN_NONE;
    unsigned char id[FORMAT_ID_BYTES];
    struct format_head head;
    struct checkpoint c;

    id_bytes(id_slice(&v->report->journal), id);
    if (!scan_open(&journal_io_real, dir, id, v->report->first_seq, &scan, err)) {
        return false;
    }
    begin_range(v, v->report->first_seq, NULL);
    v->whole_range = v->report->first_seq == 1;
    if (!scan_head(&scan, &head)) {
        end_with(v, VERIFY_BROKEN, v->report->first_seq,
                 "the head of its first segment is damaged");
        return true;
    }
    if (head.checkpoint_seq == 0 || v->report->first_seq == 1) {
        return true;
    }
    if (!checkpoint_read(head.checkpoint, &v->arena, &c, err)) {
        end_with(v, VERIFY_BROKEN, head.checkpoint_seq, "the head of its first segment: %s",
                 err->text);
    } else if (is_signed(v, head.checkpoint_seq, head.checkpoint, &c)) {
        go_on_behind(v, head.checkpoint_seq, head.checkpoint, &c);
        v->whole_range = head.checkpoint_seq + 1 == v->report->first_seq;
    }
    return true;
}

/* Segments that are gone without having been retired end the pass before it begins. */
static bool is_whole(struct verifier *v, const char *dir, const struct folder_segments *s)
{
    CLEANUP(mark_close) struct mark mark = { 0 };
    struct missing m = { 0 };
    struct err err;

    if (mark_open(&journal_io_real, dir, false, &mark, &err)) {
        m = missing_before(&mark, s);
    }
    if (missing_count(m) > 0) {
        end_with(v, VERIFY_BROKEN, m.from,
                 "the records from %" PRIu64 " to %" PRIu64
                 " are missing with their segments, and no retention removed them",
                 m.from, m.to);
    }
    return missing_count(m) == 0;
}

/* From the first segment there is. */
static bool begin(struct verifier *v, const char *dir, struct err *err)
{
    CLEANUP(folder_segments_done) struct folder_segments s = { 0 };
    struct slice id;

    if (!folder_journal_id(dir, &id, err)) {
        return false;
    }
    memcpy(v->report->journal.text, id.ptr, ID_TEXT_LEN);
    if (!folder_segments(&journal_io_real, dir, &s, err)) {
        return false;
    }
    if (!is_whole(v, dir, &s)) {
        return true;
    }
    if (s.n == 0) {
        return err_set(err, ERR_NOT_FOUND, "%s has no segment", dir);
    }
    v->report->first_seq = s.first[0];
    return begin_behind_head(v, dir, err) && journal_reader_open(dir, s.first[0], &v->reader, err);
}

bool verify_journal(const char *dir, const struct verify_options *o, struct verify_report *ret,
                    struct verify_proof *ret_proof, struct err *err)
{
    struct verifier v = { .o = o, .report = ret, .proof = ret_proof };

    *ret = (struct verify_report){ 0 };
    if (ret_proof) {
        *ret_proof = (struct verify_proof){ 0 };
    }
    arena_init(&v.arena, ARENA_BYTES);

    bool ok = begin(&v, dir, err) && read_frames(&v, err);

    if (ok) {
        conclude(&v);
    }
    journal_reader_close(v.reader);
    key_free(v.key);
    arena_clear(&v.arena);
    return ok;
}

const char *verify_state_name(enum verify_state s)
{
    switch (s) {
    case VERIFY_OK:
        return "verified";
    case VERIFY_BROKEN:
        return "broken";
    case VERIFY_INCOMPLETE:
        return "incomplete";
    case VERIFY_NO_KEY:
        return "cannot verify";
    }
    return "";
}
