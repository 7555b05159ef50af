#include "collector/base/suggest.h"

enum { WORD_MAX = 48 }; /* bytes; longer words are no near miss of a name of ours */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, drop, replace, swap two neighbours) that turn a into b. */
static size_t distance(struct slice a, struct slice b)
{
    size_t rows[3][WORD_MAX + 1]; /* of the last two letters of a and of this one */

    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t *now = rows[i % 3];
        const size_t *one_up = rows[(i - 1) % 3];
        const size_t *two_up = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = a.ptr[i - 1] == b.ptr[j - 1] ? 0 : 1;

            now[j] = least(one_up[j - 1] + change, least(one_up[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1]) {
                now[j] = least(now[j], two_up[j - 2] + 1);
            }
        }
    }
    return rows[a.len % 3][b.len];
}

const char *suggest_name(struct slice word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t allowed = word.len / 3 > 1 ? word.len / 3 : 1;
    size_t nearest = allowed + 1;

    if (word.len == 0 || word.len > WORD_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        struct slice name = slice_from_cstr(names[i]);
        size_t d = name.len > WORD_MAX ? nearest : distance(word, name);

        if (d < nearest) {
            nearest = d;
            best = names[i];
        }
    }
    return best;
}
