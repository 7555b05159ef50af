#include "collector/base/budget.h"

#include <assert.h>

bool budget_take(struct budget *b, size_t bytes)
{
    size_t used = atomic_load(&b->used_bytes);

    do {
        if (bytes > b->limit_bytes - used) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&b->used_bytes, &used, used + bytes));
    return true;
}

void budget_give(struct budget *b, size_t bytes)
{
    size_t before = atomic_fetch_sub(&b->used_bytes, bytes);

    assert(before >= bytes);
    (void)before;
}
