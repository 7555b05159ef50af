/* config_listen: what a listener in hooktrail.yaml means. For config*.c. */
#pragma once

#include "collector/base/config_read.h"

/*
 * "unix" (STATE/SECTION.sock), "unix:PATH" and "tcp:HOST:PORT", resolved, in the
 * configuration's arena. NULL, and why in ret_wrong, for anything else.
 */
const char *config_listener(struct config_reader *r, const char *section, const char *text,
                            char *ret_wrong, size_t wrong_size);

/* True for a TCP listener that other machines can reach. */
bool config_listener_is_remote(const char *listener);
