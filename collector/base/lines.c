#include "collector/base/lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

enum { FIRST_CAP = 64 };

struct lines_entry {
    const json_t *object; /* NULL: a free place */
    const char *key;      /* in the table's arena */
    size_t line;
};

void lines_init(struct lines *l, size_t limit_bytes)
{
    *l = (struct lines){ 0 };
    arena_init(&l->keys, limit_bytes);
}

void lines_done(struct lines *l)
{
    free(l->entries);
    arena_clear(&l->keys);
    *l = (struct lines){ 0 };
}

/* FNV-1a over the place. */
static size_t hash(const json_t *object, const char *key)
{
    uint64_t h = (14695981039346656037ULL ^ (uintptr_t)object) * 1099511628211ULL;

    for (; *key; key++) {
        h = (h ^ (unsigned char)*key) * 1099511628211ULL;
    }
    return (size_t)(h ^ h >> 32);
}

/* Where the place stands, or the free entry where it would. */
static struct lines_entry *find(const struct lines *l, const json_t *object, const char *key)
{
    size_t i = hash(object, key) & (l->cap - 1);

    while (l->entries[i].object &&
           (l->entries[i].object != object || strcmp(l->entries[i].key, key) != 0)) {
        i = (i + 1) & (l->cap - 1);
    }
    return &l->entries[i];
}

/* Twice the places; a third of them stays free, so that find() ends soon. */
static void grow(struct lines *l)
{
    struct lines old = *l;

    l->cap = old.cap > 0 ? old.cap * 2 : FIRST_CAP;
    l->entries = xcalloc(l->cap, sizeof(*l->entries));
    for (size_t i = 0; i < old.cap; i++) {
        const struct lines_entry *e = &old.entries[i];

        if (e->object) {
            *find(l, e->object, e->key) = *e;
        }
    }
    free(old.entries);
}

bool lines_put(struct lines *l, const json_t *object, const char *key, size_t line)
{
    if (l->used * 3 >= l->cap * 2) {
        grow(l);
    }

    struct lines_entry *e = find(l, object, key);
    struct slice copy;

    if (e->object) {
        return true;
    }
    if (!arena_dup(&l->keys, slice_from_cstr(key), &copy)) {
        return false;
    }
    *e = (struct lines_entry){ .object = object, .key = copy.ptr, .line = line };
    l->used++;
    return true;
}

size_t lines_get(const struct lines *l, const json_t *object, const char *key)
{
    return l->cap > 0 ? find(l, object, key)->line : 0;
}
