/*
 * keys: the Ed25519 keys (RFC 8032, by OpenSSL) that sign checkpoints.
 *
 *     STATE/keys/ROLE.key        0600, PEM: the key that is in force
 *     STATE/keys/ROLE.key.next   0600, PEM: its successor, from before the rotation's
 *                                checkpoint is written until that is durable
 *     STATE/keys/KEYID.pub       0644, PEM: every public key there ever was
 *
 * A key's id is the first 16 hexadecimal digits of the SHA-256 of its 32 public
 * bytes, so a public key that is named so cannot be exchanged for another.
 * Thread: a key may be used by any, by one at a time.
 */
#pragma once

#include "collector/base/err.h"
#include "collector/base/slice.h"

enum {
    KEY_ID_LEN = 16,
    KEY_ID_SIZE = KEY_ID_LEN + 1, /* with the NUL */
    KEY_PUBLIC_BYTES = 32,
    KEY_SIGNATURE_BYTES = 64,
};

struct signature {
    unsigned char bytes[KEY_SIGNATURE_BYTES];
};

struct key; /* opaque: a private and public key, or a public one alone */

/*
 * The key in force of this role; made, durably, when there is none.
 *
 * `expected`, when not NULL, is the id that the journal's last checkpoint leaves in
 * force (checkpoint_key_in_force()): an interrupted rotation is finished, or forgotten,
 * accordingly; NULL leaves it alone. When no key here has that id, the result has
 * another one, key_id() tells, and verify will say of what it signs that the key
 * was not handed on.
 * Errors: ERR_IO; ERR_CORRUPT for a file that holds no Ed25519 key; ERR_INVALID
 * for one that others can read.
 */
bool key_open(const char *state_dir, const char *role, const char *expected, struct key **ret,
              struct err *err) MUST_CHECK;

/* A successor, stored as ROLE.key.next. Sign a checkpoint with both, make it durable, then: */
bool key_make_next(const char *state_dir, const char *role, struct key **ret, struct err *err)
    MUST_CHECK;

/* …make it the key in force. */
bool key_adopt_next(const char *state_dir, const char *role, struct err *err) MUST_CHECK;

/* The public key of that id, from KEY_DIR/KEYID.pub. ERR_NOT_FOUND when it is not there. */
bool key_open_public(const char *key_dir, const char *id, struct key **ret, struct err *err)
    MUST_CHECK;

/* A new key in memory alone, and one that always comes out of the same 32 bytes; for tests. */
void key_generate(struct key **ret);
void key_from_seed(const unsigned char seed[KEY_PUBLIC_BYTES], struct key **ret);

/* From 32 raw bytes. */
bool key_from_public(const unsigned char bytes[KEY_PUBLIC_BYTES], struct key **ret, struct err *err)
    MUST_CHECK;

/* Accepts NULL. */
void key_free(struct key *k);

/* 16 hexadecimal digits, and the raw public bytes; borrowed. */
const char *key_id(const struct key *k);
const unsigned char *key_public(const struct key *k);

/* Sign. The key must be a private one. */
void key_sign(struct key *k, struct slice bytes, struct signature *ret);

/* True when k's owner signed these bytes. */
bool key_signed(struct key *k, struct slice bytes, const struct signature *s);
