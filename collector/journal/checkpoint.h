/*
 * checkpoint: the record that seals what a journal holds up to itself.
 *
 *     {"type":"checkpoint","schema":1,"id":…,"collector":…,"time":…,
 *      "journal":JOURNAL-ID,"first_seq":N,"last_seq":M,   the frames it covers
 *      "root":HEX,                 RFC 9162 root over their leaves
 *      "previous":HEX,             SHA-256 of the checkpoint record before it; absent: none
 *      "boot_id":UUID,"key_id":HEX,
 *      "next_key_id":HEX,"next_key":HEX,    a rotation: the next key and its 32 bytes
 *      "signature":HEX,            Ed25519 of all bytes before ,"signature"
 *      "next_signature":HEX}       a rotation: the next key's, of the same bytes
 *
 * The journal's id is signed, so a checkpoint of one journal proves nothing of
 * another. There is one way to write a checkpoint: decoding one that is written
 * in any other way fails.
 * Pure, apart from the signing. Thread: any.
 */
#pragma once

#include <stdint.h>

#include "collector/base/arena.h"
#include "collector/base/buf.h"
#include "collector/base/digest.h"
#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/journal/keys.h"

struct checkpoint {
    struct id id;
    struct slice collector; /* borrowed; after decoding: in the record or the arena */
    int64_t time_us;
    struct id journal;
    uint64_t first_seq;
    uint64_t last_seq; /* first_seq - 1: it covers nothing */
    struct digest root;
    bool has_previous;
    struct digest previous;
    struct id boot;

    /* What follows is filled in by checkpoint_write() and checkpoint_read(). */
    char key_id[KEY_ID_SIZE];
    bool rotates;
    char next_key_id[KEY_ID_SIZE];
    unsigned char next_key[KEY_PUBLIC_BYTES];
    struct signature signature;
    struct signature next_signature;
};

/*
 * Append the signed record to *out, without a newline. `next` is NULL, or the
 * key that is in force behind this checkpoint.
 */
void checkpoint_write(struct checkpoint *c, struct key *key, struct key *next, struct buf *out);

/* Read a record. Errors: ERR_CORRUPT when it is no checkpoint as we write it. */
bool checkpoint_read(struct slice record, struct arena *a, struct checkpoint *ret, struct err *err)
    MUST_CHECK;

/*
 * True when `key`, whose id must be the record's, signed it, and the next key did too
 * where it rotates. `c` was read from `record`.
 */
bool checkpoint_holds(struct slice record, const struct checkpoint *c, struct key *key);

/* The id of the key that must sign the checkpoint behind this one. */
const char *checkpoint_key_in_force(const struct checkpoint *c);
