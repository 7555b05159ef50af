/* crc32c: the CRC of frames (Castagnoli), by the processor's instruction where it has one. */
#pragma once

#include <stdint.h>

#include "collector/base/slice.h"

/* The CRC of what was summed so far (0: nothing) and then `bytes`. Safe from any thread. */
uint32_t crc32c(uint32_t so_far, struct slice bytes);

/* The same by table alone, for machines without the instruction and for tests. */
uint32_t crc32c_table(uint32_t so_far, struct slice bytes);
