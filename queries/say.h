/* say: a sentence that lives in an arena. */
#pragma once

#include "collector/base/arena.h"

/* The empty slice at the arena's limit. At most SAY_MAX_BYTES; longer text is cut. */
struct slice say(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

enum { SAY_MAX_BYTES = 4096 };
