#include "collector/base/digest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

/* Only memory or a broken build of OpenSSL can make these fail. */
static void must(int ok)
{
    if (ok != 1) {
        abort();
    }
}

/* ---- One algorithm, a context a thread: finding, making one costs as much as a hash. ---- */

static EVP_MD *sha256;        /* until the end */
static pthread_key_t ctx_key; /* frees a thread's context when the thread ends */
static pthread_once_t ctx_once = PTHREAD_ONCE_INIT;

static void free_ctx(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void prepare(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    must(sha256 && pthread_key_create(&ctx_key, free_ctx) == 0);
}

static EVP_MD_CTX *thread_ctx(void)
{
    static _Thread_local EVP_MD_CTX *ctx;

    if (!ctx) {
        must(pthread_once(&ctx_once, prepare) == 0);
        ctx = EVP_MD_CTX_new();
        must(ctx && pthread_setspecific(ctx_key, ctx) == 0);
    }
    return ctx;
}

struct digest digest_of_parts(const struct slice *parts, size_t n)
{
    EVP_MD_CTX *ctx = thread_ctx();
    struct digest d;

    must(EVP_DigestInit_ex(ctx, sha256, NULL));
    for (size_t i = 0; i < n; i++) {
        must(EVP_DigestUpdate(ctx, parts[i].ptr, parts[i].len));
    }
    must(EVP_DigestFinal_ex(ctx, d.bytes, NULL));
    return d;
}

struct digest digest_of(struct slice bytes)
{
    return digest_of_parts(&bytes, 1);
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memcmp(a->bytes, b->bytes, DIGEST_BYTES) == 0;
}

void digest_hex(const struct digest *d, char ret_hex[DIGEST_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        ret_hex[2 * i] = digits[d->bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[d->bytes[i] & 15];
    }
    ret_hex[DIGEST_HEX_SIZE - 1] = '\0';
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_read(struct slice s, unsigned char *ret, size_t n)
{
    if (s.len != 2 * n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(s.ptr[2 * i]);
        int low = hex_digit(s.ptr[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        ret[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool digest_from_hex(struct slice s, struct digest *ret)
{
    struct digest d;

    if (!hex_read(s, d.bytes, DIGEST_BYTES)) {
        return false;
    }
    *ret = d;
    return true;
}
