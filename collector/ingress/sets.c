#include "collector/ingress/sets.h"

#include <string.h>

#include "collector/dispatcher/hookset.h"

void sets_init(struct sets *s)
{
    *s = (struct sets){ 0 };
    (void)pthread_mutex_init(&s->mutex, NULL);
}

void sets_done(struct sets *s)
{
    for (size_t i = 0; i < SETS_MAX; i++) {
        hookset_unref(s->list[i]);
    }
    (void)pthread_mutex_destroy(&s->mutex);
}

/* The place of a contract's set, or the free place behind the last. */
static struct hookset **find(struct sets *s, struct slice contract)
{
    size_t i = 0;

    while (i < SETS_MAX - 1 && s->list[i] &&
           !slice_equal(contract, slice_from_cstr(s->list[i]->ops->name))) {
        i++;
    }
    return &s->list[i];
}

struct hookset *sets_get(struct sets *s, struct slice contract)
{
    struct hookset *set;

    (void)pthread_mutex_lock(&s->mutex);
    set = *find(s, contract);
    if (set) {
        set = hookset_ref(set);
    }
    (void)pthread_mutex_unlock(&s->mutex);
    return set;
}

bool sets_put(struct sets *s, struct hookset *set)
{
    struct hookset *old;
    bool other;

    (void)pthread_mutex_lock(&s->mutex);

    struct hookset **place = find(s, slice_from_cstr(set->ops->name));

    old = *place;
    *place = set;
    other = !old || memcmp(old->digest.bytes, set->digest.bytes, sizeof(set->digest.bytes)) != 0;
    (void)pthread_mutex_unlock(&s->mutex);
    hookset_unref(old);
    return other;
}

bool sets_drop(struct sets *s, struct slice contract)
{
    struct hookset *old;

    (void)pthread_mutex_lock(&s->mutex);

    struct hookset **place = find(s, contract);
    size_t at = (size_t)(place - s->list);

    old = *place;
    memmove(place, place + 1, (SETS_MAX - 1 - at) * sizeof(struct hookset *));
    s->list[SETS_MAX - 1] = NULL;
    (void)pthread_mutex_unlock(&s->mutex);
    hookset_unref(old);
    return old != NULL;
}

size_t sets_count(struct sets *s)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&s->mutex);
    while (n < SETS_MAX && s->list[n]) {
        n++;
    }
    (void)pthread_mutex_unlock(&s->mutex);
    return n;
}
