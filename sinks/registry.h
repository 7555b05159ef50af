/* registry: the drivers there are, by the name that hooktrail.yaml uses. */
#pragma once

#include "sinks/sink.h"

/*
 * The driver for a sink of this name with these settings (NULL: defaults), which may
 * choose among several of one name; NULL when there is none.
 */
const struct sink_ops *sink_find(const char *name, const json_t *settings);
