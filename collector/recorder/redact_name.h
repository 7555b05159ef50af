/* redact_name: does a key's name say that its value is a secret? Pure. */
#pragma once

#include "collector/base/slice.h"

/*
 * True for password, apiKey, X-Auth-Token, DB_PASS and the like, in any spelling:
 * the name is taken apart into its words. False for what only speaks of secrets:
 * max_tokens, token_count, secret_name, password_policy.
 */
bool redact_is_secret_name(struct slice name);
