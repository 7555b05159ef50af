#include "collector/journal/crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

/* Remainders of the sixteen half bytes over the reflected polynomial 0x82f63b78. */
static const uint32_t remainders[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_table(uint32_t so_far, struct slice bytes)
{
    uint32_t crc = ~so_far;

    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= (unsigned char)bytes.ptr[i];
        crc = remainders[crc & 15] ^ crc >> 4;
        crc = remainders[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t so_far,
                                                                 struct slice bytes)
{
    uint64_t crc = ~so_far;

    for (; bytes.len >= 8; bytes.ptr += 8, bytes.len -= 8) {
        uint64_t word;

        memcpy(&word, bytes.ptr, sizeof(word));
        crc = _mm_crc32_u64(crc, word);
    }
    for (; bytes.len > 0; bytes.ptr++, bytes.len--) {
        crc = _mm_crc32_u8((uint32_t)crc, (unsigned char)*bytes.ptr);
    }
    return ~(uint32_t)crc;
}

uint32_t crc32c(uint32_t so_far, struct slice bytes)
{
    return __builtin_cpu_supports("sse4.2") ? by_instruction(so_far, bytes)
                                            : crc32c_table(so_far, bytes);
}

#else

uint32_t crc32c(uint32_t so_far, struct slice bytes)
{
    return crc32c_table(so_far, bytes);
}

#endif
