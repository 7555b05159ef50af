#include "collector/journal/sealing.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/journal/checkpoint.h"
#include "collector/journal/merkle.h"

enum { ARENA_BYTES = 64 * 1024 }; /* one checkpoint that is read */

struct sealing {
    struct sealing_options o;
    struct key *key;    /* owned */
    struct key *next;   /* owned: its successor, from its making until its checkpoint is stored */
    struct merkle tree; /* of the range that is open */
    uint64_t first_seq;
    uint64_t last_seq; /* 0: no frame yet */
    uint64_t checkpoint_seq;
    struct buf checkpoint; /* the last one */
};

static bool open_key(const struct sealing_options *o, struct key **ret, struct err *err)
{
    static const unsigned char seed[KEY_PUBLIC_BYTES] = "no secret: for tests alone";

    if (o->fixed_key) {
        key_from_seed(seed, ret);
        return true;
    }
    return key_open(o->state_dir, o->role, NULL, ret, err);
}

bool sealing_new(const struct sealing_options *o, struct sealing **ret, struct err *err)
{
    struct key *key = NULL;

    if (!open_key(o, &key, err)) {
        return false;
    }

    struct sealing *s = xcalloc(1, sizeof(*s));

    s->o = *o;
    s->key = key;
    buf_init(&s->checkpoint, FORMAT_CHECKPOINT_MAX);
    sealing_begin(s, 0, (struct slice){ 0 });
    *ret = s;
    return true;
}

void sealing_free(struct sealing *s)
{
    if (s) {
        key_free(s->key);
        key_free(s->next);
        buf_done(&s->checkpoint);
        free(s);
    }
}

void sealing_begin(struct sealing *s, uint64_t checkpoint_seq, struct slice checkpoint)
{
    buf_clear(&s->checkpoint);
    buf_add(&s->checkpoint, checkpoint);
    s->checkpoint_seq = checkpoint_seq;
    s->first_seq = checkpoint_seq > 0 ? checkpoint_seq : 1;
    s->last_seq = checkpoint_seq;
    merkle_init(&s->tree);
    if (checkpoint_seq > 0) {
        struct digest leaf = format_leaf(checkpoint);

        merkle_add(&s->tree, &leaf);
    }
}

/* The checkpoint that hands on is stored: from here on the next key signs. */
static void adopt_next(struct sealing *s)
{
    struct err err;

    /* If it cannot be put in force now, the next opening does it: the journal tells so. */
    (void)!key_adopt_next(s->o.state_dir, s->o.role, &err);
    key_free(s->key);
    s->key = TAKE_PTR(s->next);
}

void sealing_add(struct sealing *s, const struct format_frame *f)
{
    if (f->type == RECORD_CHECKPOINT) {
        sealing_begin(s, f->seq, f->bytes);
        if (s->next) {
            adopt_next(s);
        }
        return;
    }
    merkle_add(&s->tree, &f->leaf);
    s->last_seq = f->seq;
}

uint64_t sealing_last(const struct sealing *s, struct slice *ret_checkpoint)
{
    *ret_checkpoint = buf_slice(&s->checkpoint);
    return s->checkpoint_seq;
}

/*
 * Take the key that the last checkpoint leaves in force, where it is not ours: a
 * rotation was interrupted. False: it is nowhere; *ret_key_id tells which it was.
 */
bool sealing_can_go_on(struct sealing *s, char ret_key_id[KEY_ID_SIZE])
{
    CLEANUP(arena_clear) struct arena a;
    struct checkpoint last;
    struct key *key = NULL;
    struct err err;

    arena_init(&a, ARENA_BYTES);
    if (s->o.fixed_key || s->checkpoint_seq == 0 ||
        !checkpoint_read(buf_slice(&s->checkpoint), &a, &last, &err) ||
        strcmp(checkpoint_key_in_force(&last), key_id(s->key)) == 0) {
        return true;
    }
    memcpy(ret_key_id, checkpoint_key_in_force(&last), KEY_ID_SIZE);
    if (key_open(s->o.state_dir, s->o.role, ret_key_id, &key, &err)) {
        key_free(s->key);
        s->key = key;
    }
    return strcmp(ret_key_id, key_id(s->key)) == 0;
}

bool sealing_make(struct sealing *s, int64_t now_us, struct buf *out, struct err *err)
{
    char ignored[KEY_ID_SIZE];
    struct checkpoint c = {
        .id = id_new(),
        .collector = slice_from_cstr(s->o.collector),
        .time_us = now_us,
        .journal = s->o.journal,
        .first_seq = s->first_seq,
        .last_seq = s->last_seq,
        .root = merkle_root(&s->tree),
        .has_previous = s->checkpoint_seq > 0,
        .boot = id_from_bytes(s->o.boot),
    };

    if (c.has_previous) {
        c.previous = digest_of(buf_slice(&s->checkpoint));
    }
    (void)!sealing_can_go_on(s, ignored); /* else ours signs on, and verify tells */
    if (s->o.rotate && !s->o.fixed_key && !s->next) {
        if (!key_make_next(s->o.state_dir, s->o.role, &s->next, err)) {
            return false;
        }
        s->o.rotate = false;
    }
    checkpoint_write(&c, s->key, s->next, out);
    return true;
}
