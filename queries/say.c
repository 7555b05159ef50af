#include "queries/say.h"

#include <stdarg.h>
#include <stdio.h>

struct slice say(struct arena *a, const char *fmt, ...)
{
    char text[SAY_MAX_BYTES];
    struct slice ret = { 0 };
    va_list ap;

    va_start(ap, fmt);

    int n = vsnprintf(text, sizeof(text), fmt, ap);

    va_end(ap);
    if (n <= 0) {
        return ret;
    }

    size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

    if (!arena_dup(a, (struct slice){ .ptr = text, .len = len }, &ret)) {
        return (struct slice){ 0 };
    }
    return ret;
}
