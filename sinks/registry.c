#include "sinks/registry.h"

#include <string.h>

#include "sinks/kafka.h"
#include "sinks/null.h"
#include "sinks/postgres.h"
#include "sinks/sqlite.h"

static const struct sink_ops *const drivers[] = { &sink_null_ops, &sink_sqlite_ops,
                                                  &sink_postgres_ops };

const struct sink_ops *sink_find(const char *name, const json_t *settings)
{
    if (strcmp(name, sink_kafka_ops.name) == 0) {
        return sink_kafka_driver(settings);
    }
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    return NULL;
}
