#include "collector/base/id.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "collector/base/clock.h"

/*
 * 48 bits of milliseconds, then 12 bits that count within a millisecond, so
 * that ids rise; the remaining 62 bits are random. The random bytes are drawn
 * in stock, since a system call for each id costs more than the rest of it.
 */
enum { STOCK_BYTES = 4096, RANDOM_BYTES = 8 };

static struct {
    pthread_mutex_t lock;
    uint64_t last_ms;
    unsigned count; /* 12 bits */
    size_t used;    /* of stock */
    unsigned char stock[STOCK_BYTES];
} maker = { .lock = PTHREAD_MUTEX_INITIALIZER, .used = STOCK_BYTES };

static void refill(void)
{
    size_t have = 0;

    while (have < STOCK_BYTES) {
        ssize_t n = getrandom(maker.stock + have, STOCK_BYTES - have, 0);

        if (n > 0) {
            have += (size_t)n;
        }
    }
    maker.used = 0;
}

struct id id_new(void)
{
    unsigned char bytes[16];
    uint64_t now_ms = (uint64_t)(clock_now_us() / 1000);

    pthread_mutex_lock(&maker.lock);
    if (now_ms > maker.last_ms) {
        maker.last_ms = now_ms;
        maker.count = 0;
    } else if (++maker.count > 0xfff) { /* more than 4 for each microsecond: run ahead */
        maker.last_ms++;
        maker.count = 0;
    }
    if (maker.used + RANDOM_BYTES > STOCK_BYTES) {
        refill();
    }
    memcpy(bytes + 8, maker.stock + maker.used, RANDOM_BYTES);
    maker.used += RANDOM_BYTES;

    uint64_t ms = maker.last_ms;
    unsigned count = maker.count;

    pthread_mutex_unlock(&maker.lock);
    for (int i = 0; i < 6; i++) {
        bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    }
    bytes[6] = (unsigned char)(0x70 | count >> 8);
    bytes[7] = (unsigned char)count;
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
    return id_from_bytes(bytes);
}

struct slice id_slice(const struct id *id)
{
    return (struct slice){ .ptr = id->text, .len = ID_TEXT_LEN };
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hyphen_place(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

bool id_valid(struct slice s)
{
    if (s.len != ID_TEXT_LEN) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (is_hyphen_place(i) ? s.ptr[i] != '-' : digit(s.ptr[i]) < 0) {
            return false;
        }
    }
    return true;
}

void id_bytes(struct slice s, unsigned char ret_bytes[16])
{
    size_t n = 0;

    assert(id_valid(s));
    for (size_t i = 0; i < s.len; i++) {
        if (!is_hyphen_place(i)) {
            ret_bytes[n++] = (unsigned char)(digit(s.ptr[i]) * 16 + digit(s.ptr[i + 1]));
            i++;
        }
    }
}

struct id id_from_bytes(const unsigned char bytes[16])
{
    static const char digits[] = "0123456789abcdef";
    struct id id = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < ID_TEXT_LEN; i++) {
        if (is_hyphen_place(i)) {
            id.text[i] = '-';
        } else {
            id.text[i] = digits[n % 2 == 0 ? bytes[n / 2] >> 4 : bytes[n / 2] & 15];
            n++;
        }
    }
    return id;
}
