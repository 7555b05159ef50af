/*
 * verify: is a journal what its collector wrote, whole and unchanged?
 *
 * Reads segments and public keys alone, so that an auditor can do it on another
 * machine with a copy. Design: "Seal".
 */
#pragma once

#include <stdint.h>

#include "collector/base/err.h"
#include "collector/base/id.h"
#include "collector/journal/merkle.h"

enum verify_state {
    VERIFY_OK,         /* everything up to the last checkpoint is sealed and fits */
    VERIFY_BROKEN,     /* at seq: bytes, hash, root, chain or signature do not fit */
    VERIFY_INCOMPLETE, /* fits, and says itself that records were lost (gap records) */
    VERIFY_NO_KEY,     /* a checkpoint's key is not there: cannot verify */
};

struct verify_report {
    struct id journal;
    enum verify_state state;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t records;
    uint64_t checkpoints;
    uint64_t at_seq; /* where it is broken */
    uint64_t gaps;   /* gap records, and how many records they count */
    uint64_t lost;
    uint64_t unsealed_from; /* first sequence behind the last checkpoint; 0: none */
    char key_id[17];        /* of the last checkpoint */
    char text[256];         /* one sentence for people */
};

/* How one record is proved: its leaf, and the way from there to a signed root. */
struct verify_proof {
    bool found;  /* a record of that id is in the journal */
    bool sealed; /* a checkpoint covers it, and the path below leads to its root */
    uint64_t seq;
    struct digest leaf;
    uint64_t index;  /* of the leaf, from 0, among… */
    uint64_t leaves; /* …those that the checkpoint covers */
    struct merkle_path path;
    struct digest root;
    uint64_t checkpoint_seq;
    char key_id[17];
};

struct verify_options {
    const char *key_dir; /* public keys, files KEYID.pub */
    struct slice record; /* id of a record to prove; empty: none */
    /* Hears now and then how many records of how many are done; may be NULL. */
    void (*on_progress)(void *ctx, uint64_t done, uint64_t all);
    void *ctx;
};

/*
 * Verify the journal in `dir`, up to the first thing that does not fit. ret_proof
 * may be NULL. Errors: the journal cannot be read at all.
 */
bool verify_journal(const char *dir, const struct verify_options *o, struct verify_report *ret,
                    struct verify_proof *ret_proof, struct err *err) MUST_CHECK;

/* "verified", "broken", "incomplete", "cannot verify". */
const char *verify_state_name(enum verify_state s);
