#include "collector/cli/cli_retire.h"

#include <limits.h>

struct positions {
    const json_t *sinks[CONFIG_LIST_MAX]; /* each one's "positions"; NULL: none yet */
    size_t n;                             /* of those that are configured */
};

/* The next sequence that a sink wants of a journal. */
static uint64_t next_of(const json_t *positions, struct slice journal_id)
{
    const json_t *next = json_object_getn(positions, journal_id.ptr, journal_id.len);

    return json_is_integer(next) && json_integer_value(next) > 0
               ? (uint64_t)json_integer_value(next)
               : 0;
}

static uint64_t lowest(void *ctx, struct slice journal_id)
{
    const struct positions *p = ctx;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < p->n; i++) {
        uint64_t next = next_of(p->sinks[i], journal_id);

        least = next < least ? next : least;
    }
    return least;
}

void retire_shipped(const struct config *c, struct journal *j)
{
    struct positions p = { .n = 0 };
    json_t *files[CONFIG_LIST_MAX] = { NULL };

    for (size_t i = 0; i < c->n_sinks; i++) {
        char path[PATH_MAX];

        (void)snprintf(path, sizeof(path), "%s/sinks/%s.positions.json", c->state,
                       c->sinks[i].name);
        files[i] = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_false(json_object_get(files[i], "configured"))) {
            p.sinks[p.n++] = json_object_get(files[i], "positions");
        }
    }
    journal_retire(j, lowest, &p);
    for (size_t i = 0; i < c->n_sinks; i++) {
        json_decref(files[i]);
    }
}
