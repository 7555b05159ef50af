#include "collector/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_die(void *p)
{
    if (!p) {
        (void)fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return or_die(calloc(n, size));
}

char *xstrdup(const char *text)
{
    return or_die(strdup(text));
}

void *xrealloc(void *p, size_t size)
{
    return or_die(realloc(p, size));
}
