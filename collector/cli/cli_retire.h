/*
 * cli_retire: which records some configured sink still needs, from what
 * `ship` writes to STATE/sinks/NAME.positions.json.
 *
 * A sink that is not configured pins nothing. One that is configured and has no
 * positions yet, or none for a journal, needs all of it.
 * Thread: the main thread.
 */
#pragma once

#include "collector/base/config.h"
#include "collector/journal/journal.h"

/* Retire the segments of a role's journals that every configured sink is past. */
void retire_shipped(const struct config *c, struct journal *j);
