#include "collector/web/token.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/web/token_file.h"

enum { RANDOM_BYTES = 32, ID_CHARS = 12 };

static void drop_json(json_t **j)
{
    json_decref(*j);
}

/* Hold STATE/tokens.json.lock, so that two commands do not lose each other's token. */
static bool lock(const char *path, int *ret_fd, struct err *err)
{
    char name[PATH_MAX];

    (void)snprintf(name, sizeof(name), "%s.lock", path);

    CLEANUP(fs_closep) int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return err_errno(err, errno, "open %s", name);
    }
    if (!fs_lock(fd)) {
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_AGAIN, "%s: another command has it, try again", name)
                   : err_errno(err, errno, "lock %s", name);
    }
    *ret_fd = TAKE_FD(fd);
    return true;
}

static bool name_is_valid(struct slice name)
{
    if (name.len == 0 || name.len > TOKEN_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!isalnum((unsigned char)name.ptr[i]) && !strchr("._-", name.ptr[i])) {
            return false;
        }
    }
    return true;
}

/* "hkt_" and 32 random bytes in base64url without padding. */
static bool make_token(char ret_token[TOKEN_TEXT_SIZE], struct err *err)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[RANDOM_BYTES + 1] = { 0 }; /* a zero fills the last group of three */
    char *out = ret_token + 4;

    if (getrandom(bytes, RANDOM_BYTES, 0) != RANDOM_BYTES) {
        return err_errno(err, errno, "getrandom");
    }
    (void)snprintf(ret_token, TOKEN_TEXT_SIZE, "hkt_");
    for (size_t i = 0; i < RANDOM_BYTES; i += 3) {
        unsigned bits = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8;

        bits |= bytes[i + 2];
        *out++ = digits[bits >> 18 & 63];
        *out++ = digits[bits >> 12 & 63];
        *out++ = digits[bits >> 6 & 63];
        if (i + 2 < RANDOM_BYTES) {
            *out++ = digits[bits & 63];
        }
    }
    *out = '\0';
    return true;
}

static json_t *item_of(struct slice name, const char *token, unsigned scopes, int64_t expires_us)
{
    struct digest hash = digest_of(slice_from_cstr(token));
    char hex[DIGEST_HEX_SIZE];
    char words[TOKEN_NAME_MAX];
    char created[CLOCK_TEXT_SIZE];
    char expires[CLOCK_TEXT_SIZE];

    digest_hex(&hash, hex);
    token_scopes_format(scopes, words, sizeof(words));
    clock_format(clock_now_us(), created);
    clock_format(expires_us, expires);
    return json_pack("{s:s%, s:s, s:s, s:s, s:s*}", "name", name.ptr, name.len, "hash", hex,
                     "scopes", words, "created", created, "expires",
                     expires_us > 0 ? expires : NULL);
}

/* Index of the item that has this name or id; the list's size when there is none. */
static size_t find(const json_t *list, struct slice name)
{
    size_t i;
    const json_t *item;

    json_array_foreach(list, i, item)
    {
        struct slice hash = slice_from_cstr(json_string_value(json_object_get(item, "hash")));

        if (slice_equal(name, slice_from_cstr(json_string_value(json_object_get(item, "name"))))) {
            return i;
        }
        if (name.len == ID_CHARS && slice_starts_with(hash, name)) {
            return i;
        }
    }
    return json_array_size(list);
}

bool token_create(const char *path, struct slice name, unsigned scopes, int64_t expires_us,
                  char ret_token[TOKEN_TEXT_SIZE], struct err *err)
{
    CLEANUP(fs_closep) int held = -1;
    CLEANUP(drop_json) json_t *list = NULL;
    char token[TOKEN_TEXT_SIZE] = { 0 };

    if (!name_is_valid(name)) {
        return err_set(err, ERR_INVALID, "a token's name is 1 to %d of A-Z a-z 0-9 . _ -",
                       TOKEN_NAME_MAX);
    }
    if (!lock(path, &held, err) || !token_file_read(path, &list, err)) {
        return false;
    }
    if (find(list, name) < json_array_size(list)) {
        return err_set(err, ERR_INVALID, "there is a token '%" SLICE_FMT "' already",
                       SLICE_ARG(name));
    }
    if (json_array_size(list) >= TOKEN_COUNT_MAX) {
        return err_set(err, ERR_TOO_BIG, "there are %d tokens already", TOKEN_COUNT_MAX);
    }
    if (!make_token(token, err)) {
        return false;
    }
    (void)json_array_append_new(list, item_of(name, token, scopes, expires_us));
    if (!token_file_write(path, list, err)) {
        return false;
    }
    memcpy(ret_token, token, sizeof(token));
    return true;
}

bool token_revoke(const char *path, struct slice name, struct err *err)
{
    CLEANUP(fs_closep) int held = -1;
    CLEANUP(drop_json) json_t *list = NULL;

    if (!lock(path, &held, err) || !token_file_read(path, &list, err)) {
        return false;
    }

    size_t at = find(list, name);

    if (at == json_array_size(list)) {
        return err_set(err, ERR_NOT_FOUND, "there is no token '%" SLICE_FMT "'", SLICE_ARG(name));
    }
    (void)json_array_remove(list, at);
    return token_file_write(path, list, err);
}

static bool info_of(const struct token_entry *e, struct arena *a, struct token_info *ret)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&e->hash, hex);
    *ret = (struct token_info){
        .scopes = e->scopes,
        .created_us = e->created_us,
        .expires_us = e->expires_us,
    };
    return arena_dup(a, (struct slice){ .ptr = hex, .len = ID_CHARS }, &ret->id) &&
           arena_dup(a, slice_from_cstr(e->name), &ret->name);
}

bool token_list(const char *path, struct arena *a, struct token_info **ret, size_t *ret_n,
                struct err *err)
{
    CLEANUP(drop_json) json_t *list = NULL;
    size_t i;
    const json_t *item;

    if (!token_file_read(path, &list, err)) {
        return false;
    }

    struct token_info *infos = arena_alloc(a, json_array_size(list) + 1, sizeof(*infos));

    json_array_foreach(list, i, item)
    {
        struct token_entry e;

        if (!token_entry_read(item, &e)) {
            return err_set(err, ERR_CORRUPT, "%s: tokens/%zu is not what we write", path, i);
        }
        if (!infos || !info_of(&e, a, &infos[i])) {
            return err_set(err, ERR_TOO_BIG, "%s: more tokens than fit", path);
        }
    }
    *ret = infos;
    *ret_n = json_array_size(list);
    return true;
}
