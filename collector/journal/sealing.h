/*
 * sealing: what the next checkpoint will say, kept up to date frame by frame.
 *
 * The writer and recovery hand it each frame in order; a checkpoint's frame
 * closes one range and is the first leaf of the next.
 * Thread: writer.
 */
#pragma once

#include "collector/base/buf.h"
#include "collector/base/err.h"
#include "collector/journal/format.h"
#include "collector/journal/keys.h"

struct sealing; /* opaque */

/* How a journal is sealed. All borrowed until sealing_free(). */
struct sealing_options {
    const char *state_dir;
    const char *role;      /* names the key */
    const char *collector; /* in each checkpoint */
    struct id journal;
    unsigned char boot[FORMAT_ID_BYTES];
    bool rotate;    /* the first checkpoint hands on to a new key */
    bool fixed_key; /* sign with a key that everyone knows: a simulated disk has no keys' folder */
};

/* A journal that begins with first_seq, or goes on behind a checkpoint. */
bool sealing_new(const struct sealing_options *o, struct sealing **ret, struct err *err) MUST_CHECK;
void sealing_free(struct sealing *s); /* accepts NULL */

/* Begin behind the checkpoint that a segment's head repeats; an empty one: at sequence 1. */
void sealing_begin(struct sealing *s, uint64_t checkpoint_seq, struct slice checkpoint);

/* The next frame of the journal. */
void sealing_add(struct sealing *s, const struct format_frame *f);

/*
 * Whether the key that the last checkpoint leaves in force is here. False: whatever
 * another key signs behind it proves nothing; *ret_key_id is the one that is lost.
 */
bool sealing_can_go_on(struct sealing *s, char ret_key_id[KEY_ID_SIZE]) MUST_CHECK;

/* The last checkpoint handed to it, for a segment's head; 0 and empty when there is none. */
uint64_t sealing_last(const struct sealing *s, struct slice *ret_checkpoint);

/* Append the checkpoint record of all since the last one. */
bool sealing_make(struct sealing *s, int64_t now_us, struct buf *out, struct err *err) MUST_CHECK;
