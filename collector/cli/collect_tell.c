#include "collector/cli/collect_tell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/log.h"

static json_t *time_json(int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    return json_string(text);
}

static json_t *sets_json(struct sets *sets)
{
    json_t *list = json_array();

    for (size_t i = 0; i < SETS_MAX && sets->list[i]; i++) {
        const struct hookset *set = sets->list[i];

        (void)json_array_append_new(list,
                                    json_pack("{ss,ss,sI,so}", "contract", set->ops->name, "digest",
                                              set->digest_hex, "hooks", (json_int_t)set->n_hooks,
                                              "loaded", time_json(set->loaded_us)));
    }
    return list;
}

void tell_reload(struct tell *t, const struct reload *last)
{
    json_decref(t->reload);
    t->reload = json_pack("{so,sI,ss*}", "time", time_json(clock_now_us()), "faults",
                          (json_int_t)last->faults, "error", *last->error ? last->error : NULL);
}

bool tell_journal(struct tell *t, const struct journal_stats *stats)
{
    const char *refuses = stats->full ? "quota" : stats->refuses;
    bool same = slice_equal(slice_from_cstr(t->refuses), slice_from_cstr(refuses));

    t->refuses = refuses;
    return !same;
}

void tell_done(struct tell *t)
{
    json_decref(t->reload);
}

void tell_write(const struct tell *t, const char *state_dir, struct sets *sets)
{
    char path[PATH_MAX];
    json_t *all = json_pack("{so,sO*,ss*}", "hook_sets", sets_json(sets), "reload", t->reload,
                            "refuses", t->refuses);
    char *text = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
    struct err err;

    (void)snprintf(path, sizeof(path), "%s/run", state_dir);

    CLEANUP(fs_closep) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool told = dir < 0 ? err_errno(&err, errno, "open")
                        : fs_replace(dir, "collect.json", slice_from_cstr(text), &err);

    if (!told) {
        log_warn("what is in force is not told to `status`", log_str("path", path),
                 log_str("err", err.text));
    }
    free(text);
    json_decref(all);
}

void tell_remove(const char *state_dir)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/run/collect.json", state_dir);
    (void)unlink(path);
}
