#include "collector/dispatcher/hookset.h"

#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"

/* A set of 64 scripts of 64 KB, their documents and their matchers. */
enum { SET_ARENA_BYTES = 64 * 1024 * 1024 };

struct hookset *hookset_load(const struct contract_ops *ops, const struct hook_source *src,
                             struct faults *faults)
{
    struct hookset *set = xcalloc(1, sizeof(*set));
    size_t errors_before = faults->errors;

    set->ops = ops;
    set->refs = 1;
    arena_init(&set->arena, SET_ARENA_BYTES);
    ops->load(src, set, faults);
    if (faults->errors > errors_before) {
        hookset_unref(set);
        return NULL;
    }
    if (set->n_hooks == 0) {
        faults_add(faults, FAULT_WARNING, src->path, 0, NULL, "there is no hook in it");
    }
    digest_hex(&set->digest, set->digest_hex);
    set->loaded_us = clock_now_us();
    return set;
}

struct hookset *hookset_ref(struct hookset *set)
{
    (void)__atomic_add_fetch(&set->refs, 1, __ATOMIC_RELAXED);
    return set;
}

void hookset_unref(struct hookset *set)
{
    if (!set || __atomic_sub_fetch(&set->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    if (set->free_own) {
        set->free_own(set);
    }
    arena_clear(&set->arena);
    free(set);
}
