#include "queries/store_registry.h"

static const struct store_ops *const stores[] = { &store_sqlite_ops, &store_postgres_ops };

const struct store_ops *store_find(struct slice name)
{
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        if (slice_equal(name, slice_from_cstr(stores[i]->name))) {
            return stores[i];
        }
    }
    return NULL;
}

const char *store_names(void)
{
    return "sqlite, postgres";
}
