/*
 * token: bearer tokens with scopes, kept as hashes in STATE/tokens.json (0600).
 *
 * The token itself, "hkt_" and 43 characters, is shown once, when it is made.
 * The file is written whole (fs_replace) under a lock, and read again when it
 * has changed, so a revoked token is refused at the next request.
 */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/err.h"
#include "collector/web/web.h"

enum { TOKEN_TEXT_SIZE = 48, TOKEN_NAME_MAX = 64 };

struct token_info {
    struct slice id; /* first characters of its hash, for people */
    struct slice name;
    unsigned scopes; /* enum web_scope bits */
    int64_t created_us;
    int64_t expires_us; /* 0: never */
};

/*
 * Make one. Errors: ERR_INVALID: the name is taken or not [A-Za-z0-9._-]; ERR_AGAIN:
 * another command changes the file.
 */
bool token_create(const char *path, struct slice name, unsigned scopes, int64_t expires_us,
                  char ret_token[TOKEN_TEXT_SIZE], struct err *err) MUST_CHECK;

/* Remove the one of that name or id. Errors: ERR_NOT_FOUND; ERR_AGAIN as above. */
bool token_revoke(const char *path, struct slice name, struct err *err) MUST_CHECK;

/* All of them, in the arena. */
bool token_list(const char *path, struct arena *a, struct token_info **ret, size_t *ret_n,
                struct err *err) MUST_CHECK;

/* Scopes from "dispatch,query"; false names the unknown word. And back, to text. */
bool token_scopes_parse(struct slice text, unsigned *ret, struct err *err) MUST_CHECK;
void token_scopes_format(unsigned scopes, char *ret_text, size_t size);

/* ---- The server's side ------------------------------------------------------ */

struct token_cache; /* the file as it was last read; safe from any thread */

/* The file need not exist yet. */
struct token_cache *token_cache_new(const char *path);
void token_cache_free(struct token_cache *c); /* accepts NULL */

/*
 * Who has this token, and what it may do. False: nobody, or it has expired, or
 * the file cannot be read. The time taken does not tell how much of a guess is right.
 */
bool token_cache_find(struct token_cache *c, struct slice token, unsigned *ret_scopes,
                      char ret_name[TOKEN_NAME_MAX + 1]) MUST_CHECK;
