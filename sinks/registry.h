/* registry: the drivers there are, by the name that hooktrail.yaml uses. */
#pragma once

#include "sinks/sink.h"

/* The driver called `name`; NULL when there is none. */
const struct sink_ops *sink_find(const char *name);
