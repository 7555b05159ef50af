#include "collector/cli/ship_left.h"

#include <limits.h>
#include <stdio.h>

#include <jansson.h>

#include "collector/journal/reader.h"

struct left {
    const json_t *positions; /* NULL: the sink has nothing */
    uint64_t n;
};

static bool add(void *ctx, const struct journal_info *info)
{
    struct left *left = ctx;
    json_int_t wants = json_integer_value(json_object_get(left->positions, info->id.text));

    left->n += journal_behind(info, wants > 0 ? (uint64_t)wants : 0);
    return true;
}

uint64_t left_of(const char *state_dir, const char *sink)
{
    char path[PATH_MAX];
    struct err ignored;

    (void)snprintf(path, sizeof(path), "%s/sinks/%s.positions.json", state_dir, sink);

    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    struct left left = { .positions = json_object_get(file, "positions") };
    bool listed = journal_list(state_dir, add, &left, &ignored);

    json_decref(file);
    return listed ? left.n : 0;
}
