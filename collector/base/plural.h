/* plural: "1 record", "2 records". */
#pragma once

#include <stdint.h>

/* What stands behind a word that is counted n times: nothing behind one, else an s. */
static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
