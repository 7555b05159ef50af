/* collect_secrets: what this role was given with its environment and does not need. */
#pragma once

#include "collector/base/config.h"

/*
 * Overwrite and remove every environment variable that a sink's settings name
 * (env:NAME): the credentials are ship's, and a hook inherits our environment.
 * Once, at start, before any other thread.
 */
void collect_forget_secrets(const struct config *c);
