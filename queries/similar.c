#include "queries/similar.h"

#include <ctype.h>
#include <stdint.h>

enum {
    NAME_MAX_BYTES = 96, /* longer names are not compared */
    FAR = 3,             /* changes after which two names are not alike any more */
};

static unsigned char folded(struct slice s, size_t i)
{
    return (unsigned char)tolower((unsigned char)s.ptr[i]);
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Levenshtein's distance without regard to case, a row at a time. */
static size_t edits(struct slice a, struct slice b)
{
    size_t row[NAME_MAX_BYTES + 1];

    for (size_t k = 0; k <= b.len; k++) {
        row[k] = k;
    }
    for (size_t i = 0; i < a.len; i++) {
        size_t corner = row[0];

        row[0] = i + 1;
        for (size_t k = 0; k < b.len; k++) {
            size_t change = corner + (folded(a, i) == folded(b, k) ? 0 : 1);

            corner = row[k + 1];
            row[k + 1] = least(change, row[k] + 1, row[k + 1] + 1);
        }
    }
    return row[b.len];
}

/* "guard" for "guard-destructive": the beginning is enough, when it is not a mere letter or two. */
static bool one_begins_the_other(struct slice a, struct slice b)
{
    struct slice shorter = a.len < b.len ? a : b;
    struct slice longer = a.len < b.len ? b : a;

    return shorter.len > FAR && slice_starts_with(longer, shorter);
}

size_t similar_distance(struct slice a, struct slice b)
{
    if (slice_equal(a, b)) {
        return 0;
    }
    if (a.len > NAME_MAX_BYTES || b.len > NAME_MAX_BYTES) {
        return SIZE_MAX;
    }

    size_t n = edits(a, b);
    size_t shorter = a.len < b.len ? a.len : b.len;

    if (n <= FAR && n * 2 <= shorter) {
        return n + 1;
    }
    return one_begins_the_other(a, b) ? FAR + 2 : SIZE_MAX;
}
