/* config_diff: which keys of two configurations differ. Pure. */
#pragma once

#include "collector/base/buf.h"
#include "collector/base/config.h"

/*
 * Append the keys whose values differ and that `concerns` (the caller's), parted by ", ":
 * "collect.listen, journal.segment_mb, sinks.postgres"; a contract or a sink is one key.
 * Returns how many.
 */
size_t config_diff(const struct config *old, const struct config *new,
                   bool (*concerns)(const char *key), struct buf *out);
