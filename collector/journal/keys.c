#include "collector/journal/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "collector/base/digest.h"
#include "collector/base/fs.h"
#include "collector/base/mem.h"

enum {
    PEM_BYTES = 4096, /* an Ed25519 key takes some 120 */
    PUBLIC_MODE = 0644,
    FOLDER_MODE = 0755, /* the public keys are for everyone; private ones guard themselves */
};

struct key {
    EVP_PKEY *pkey; /* owned */
    char id[KEY_ID_SIZE];
    unsigned char public[KEY_PUBLIC_BYTES];
};

/* Only memory or a broken build of OpenSSL can make these fail. */
static void must(int ok)
{
    if (ok != 1) {
        abort();
    }
}

void key_free(struct key *k)
{
    if (k) {
        EVP_PKEY_free(k->pkey);
        free(k);
    }
}

static void key_freep(struct key **k)
{
    key_free(*k);
    *k = NULL;
}

/* Wrap pkey (taken). NULL when it is no Ed25519 key. */
static struct key *wrap(EVP_PKEY *pkey)
{
    struct key *k = xcalloc(1, sizeof(*k));
    size_t len = sizeof(k->public);
    char hex[DIGEST_HEX_SIZE];

    k->pkey = pkey;
    if (EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(pkey, k->public, &len) != 1 || len != sizeof(k->public)) {
        key_free(k);
        return NULL;
    }

    struct digest d =
        digest_of((struct slice){ .ptr = (const char *)k->public, .len = sizeof(k->public) });

    digest_hex(&d, hex);
    memcpy(k->id, hex, KEY_ID_LEN);
    return k;
}

void key_generate(struct key **ret)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    EVP_PKEY *pkey = NULL;

    must(ctx && EVP_PKEY_keygen_init(ctx) == 1 && EVP_PKEY_keygen(ctx, &pkey) == 1);
    EVP_PKEY_CTX_free(ctx);
    *ret = wrap(pkey);
    must(*ret != NULL);
}

void key_from_seed(const unsigned char seed[KEY_PUBLIC_BYTES], struct key **ret)
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, KEY_PUBLIC_BYTES);

    must(pkey != NULL);
    *ret = wrap(pkey);
    must(*ret != NULL);
}

bool key_from_public(const unsigned char bytes[KEY_PUBLIC_BYTES], struct key **ret, struct err *err)
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, KEY_PUBLIC_BYTES);
    struct key *k = pkey ? wrap(pkey) : NULL;

    if (!k) {
        return err_set(err, ERR_CORRUPT, "32 bytes that are no Ed25519 key");
    }
    *ret = k;
    return true;
}

/* The folder of the keys, made when it is not there. */
static bool open_folder(const char *state_dir, int *ret, struct err *err)
{
    CLEANUP(fs_closep) int state = -1;

    if (mkdir(state_dir, FOLDER_MODE) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "create %s", state_dir);
    }
    state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state < 0) {
        return err_errno(err, errno, "open %s", state_dir);
    }
    if (mkdirat(state, "keys", FOLDER_MODE) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "create %s/keys", state_dir);
    }
    if (fsync(state) < 0) {
        return err_errno(err, errno, "fsync %s", state_dir);
    }

    CLEANUP(fs_closep) int fd = openat(state, "keys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return err_errno(err, errno, "open %s/keys", state_dir);
    }
    /* Who may write there may put a key of his own in the place of ours. */
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_set(err, ERR_INVALID, "%s/keys: others may write there; chmod go-w", state_dir);
    }
    *ret = TAKE_FD(fd);
    return true;
}

/* A PEM file; others must not be able to read a private one. */
static bool read_pem(int dir, const char *name, bool private, struct key **ret, struct err *err)
{
    CLEANUP(fs_closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char text[PEM_BYTES];
    struct stat st;

    if (fd < 0) {
        (void)err_errno(err, errno, "%s", name);
        err->code = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
        return false;
    }
    if (fstat(fd, &st) < 0) {
        return err_errno(err, errno, "%s", name);
    }
    if (private && (st.st_mode & 077) != 0) {
        return err_set(err, ERR_INVALID, "%s: others can read it; its mode must be 0600", name);
    }

    ssize_t n = read(fd, text, sizeof(text));

    if (n < 0) {
        return err_errno(err, errno, "%s", name);
    }

    BIO *bio = BIO_new_mem_buf(text, (int)n);
    EVP_PKEY *pkey = NULL;

    must(bio != NULL);
    if (private) {
        pkey = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    } else {
        pkey = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    }
    (void)BIO_free(bio);
    OPENSSL_cleanse(text, sizeof(text));
    *ret = pkey ? wrap(pkey) : NULL;
    return *ret || err_set(err, ERR_CORRUPT, "%s: holds no Ed25519 key", name);
}

/* Write the private key, or the public one, durably. */
static bool write_pem(int dir, const char *name, const struct key *k, bool private, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    const char *text = NULL;

    must(bio != NULL);
    must(private ? PEM_write_bio_PrivateKey(bio, k->pkey, NULL, NULL, 0, NULL, NULL)
                 : PEM_write_bio_PUBKEY(bio, k->pkey));

    long len = BIO_get_mem_data(bio, &text);
    bool ok = fs_replace(dir, name, (struct slice){ .ptr = text, .len = (size_t)len }, err);

    (void)BIO_free(bio);
    if (ok && !private && fchmodat(dir, name, PUBLIC_MODE, 0) < 0) {
        return err_errno(err, errno, "chmod %s", name);
    }
    return ok;
}

static void name_of(char ret[NAME_MAX + 1], const char *stem, const char *end)
{
    (void)snprintf(ret, NAME_MAX + 1, "%s%s", stem, end);
}

/* Public first: nothing must ever be signed by a key that nobody can check. */
static bool store(int dir, const char *name, const struct key *k, struct err *err)
{
    char public[NAME_MAX + 1];

    name_of(public, k->id, ".pub");
    return write_pem(dir, public, k, false, err) && write_pem(dir, name, k, true, err);
}

/* Read a private key; *ret is NULL when there is no such file. */
static bool read_private(int dir, const char *name, struct key **ret, struct err *err)
{
    *ret = NULL;
    return read_pem(dir, name, true, ret, err) || err->code == ERR_NOT_FOUND;
}

static bool rename_key(int dir, const char *from, const char *to, struct err *err)
{
    if (renameat(dir, from, dir, to) < 0) {
        return err_errno(err, errno, "rename %s to %s", from, to);
    }
    return fsync(dir) == 0 || err_errno(err, errno, "fsync the keys' folder");
}

/* What a rotation that did not end left: finish it when the journal says so, else forget it. */
static bool settle_next(int dir, const char *role, const char *expected, struct err *err)
{
    CLEANUP(key_freep) struct key *next = NULL;
    char name[NAME_MAX + 1];
    char next_name[NAME_MAX + 1];

    name_of(name, role, ".key");
    name_of(next_name, role, ".key.next");
    if (!read_private(dir, next_name, &next, err)) {
        return false;
    }
    if (!next || !expected) {
        return true;
    }
    if (strcmp(next->id, expected) == 0) {
        return rename_key(dir, next_name, name, err);
    }
    return unlinkat(dir, next_name, 0) == 0 || err_errno(err, errno, "remove %s", next_name);
}

/* The key in force, and its public half beside it. */
static bool load_or_make(int dir, const char *role, struct key **ret, struct err *err)
{
    CLEANUP(key_freep) struct key *k = NULL;
    char name[NAME_MAX + 1];
    char public[NAME_MAX + 1];

    name_of(name, role, ".key");
    if (!read_private(dir, name, &k, err)) {
        return false;
    }
    if (!k) {
        key_generate(&k);
        if (!store(dir, name, k, err)) {
            return false;
        }
    }
    name_of(public, k->id, ".pub");
    if (faccessat(dir, public, F_OK, 0) < 0 && !write_pem(dir, public, k, false, err)) {
        return false;
    }
    *ret = TAKE_PTR(k);
    return true;
}

bool key_open(const char *state_dir, const char *role, const char *expected, struct key **ret,
              struct err *err)
{
    CLEANUP(fs_closep) int dir = -1;

    if (!open_folder(state_dir, &dir, err)) {
        return false;
    }
    if (!settle_next(dir, role, expected, err) || !load_or_make(dir, role, ret, err)) {
        return err_wrap(err, "%s/keys", state_dir);
    }
    return true;
}

bool key_make_next(const char *state_dir, const char *role, struct key **ret, struct err *err)
{
    CLEANUP(fs_closep) int dir = -1;
    CLEANUP(key_freep) struct key *k = NULL;
    char name[NAME_MAX + 1];

    if (!open_folder(state_dir, &dir, err)) {
        return false;
    }
    name_of(name, role, ".key.next");
    key_generate(&k);
    if (!store(dir, name, k, err)) {
        return err_wrap(err, "%s/keys", state_dir);
    }
    *ret = TAKE_PTR(k);
    return true;
}

bool key_adopt_next(const char *state_dir, const char *role, struct err *err)
{
    CLEANUP(fs_closep) int dir = -1;
    char name[NAME_MAX + 1];
    char next_name[NAME_MAX + 1];

    name_of(name, role, ".key");
    name_of(next_name, role, ".key.next");
    return open_folder(state_dir, &dir, err) && rename_key(dir, next_name, name, err);
}

bool key_open_public(const char *key_dir, const char *id, struct key **ret, struct err *err)
{
    CLEANUP(key_freep) struct key *k = NULL;
    CLEANUP(fs_closep) int dir = open(key_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];

    if (dir < 0) {
        (void)err_errno(err, errno, "%s", key_dir);
        err->code = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
        return false;
    }
    name_of(name, id, ".pub");
    if (!read_pem(dir, name, false, &k, err)) {
        return err_wrap(err, "%s", key_dir);
    }
    if (strcmp(k->id, id) != 0) {
        return err_set(err, ERR_CORRUPT, "%s/%s: holds the key %s", key_dir, name, k->id);
    }
    *ret = TAKE_PTR(k);
    return true;
}

const char *key_id(const struct key *k)
{
    return k->id;
}

const unsigned char *key_public(const struct key *k)
{
    return k->public;
}

void key_sign(struct key *k, struct slice bytes, struct signature *ret)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = sizeof(ret->bytes);

    must(ctx != NULL);
    must(EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->pkey));
    must(EVP_DigestSign(ctx, ret->bytes, &len, (const unsigned char *)bytes.ptr, bytes.len));
    EVP_MD_CTX_free(ctx);
}

bool key_signed(struct key *k, struct slice bytes, const struct signature *s)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    must(ctx != NULL);
    must(EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, k->pkey));

    bool ok = EVP_DigestVerify(ctx, s->bytes, sizeof(s->bytes), (const unsigned char *)bytes.ptr,
                               bytes.len) == 1;

    EVP_MD_CTX_free(ctx);
    return ok;
}
