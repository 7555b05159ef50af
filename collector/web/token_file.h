/*
 * token_file: STATE/tokens.json as it lies on disk.
 *
 *     {"tokens": [{"name", "hash", "scopes", "created", "expires"?}, …]}
 *
 * `hash` is the SHA-256 of the token in hexadecimal digits. A token has 256
 * random bits, so a plain hash gives nothing away and needs no salt.
 */
#pragma once

#include <jansson.h>

#include "collector/base/digest.h"
#include "collector/web/token.h"

enum { TOKEN_FILE_MAX_BYTES = 1024 * 1024, TOKEN_COUNT_MAX = 1024 };

struct token_entry {
    char name[TOKEN_NAME_MAX + 1];
    struct digest hash;
    unsigned scopes;
    int64_t created_us;
    int64_t expires_us; /* 0: never */
};

/*
 * The file's list, owned by the caller (json_decref); a missing file is an empty
 * list. Errors: ERR_IO; ERR_CORRUPT: not what we write; ERR_TOO_BIG.
 */
bool token_file_read(const char *path, json_t **ret_list, struct err *err) MUST_CHECK;

/* Write the list whole, mode 0600. */
bool token_file_write(const char *path, const json_t *list, struct err *err) MUST_CHECK;

/* One of its items. False: not what we write. */
bool token_entry_read(const json_t *item, struct token_entry *ret) MUST_CHECK;
