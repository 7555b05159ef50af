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

/*
 * Verify the journal in `dir` with the public keys in key_dir (files KEYID.pub).
 * on_progress (may be NULL) hears now and then how many bytes of how many are done.
 * Errors: the journal cannot be read at all.
 */
bool verify_journal(const char *dir, const char *key_dir,
                    void (*on_progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes),
                    void *ctx, struct verify_report *ret, struct err *err) MUST_CHECK;

/* "verified", "broken", "incomplete", "cannot verify". */
const char *verify_state_name(enum verify_state s);
