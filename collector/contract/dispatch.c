/* dispatch: the life of one event, and its private folder. */
#include "collector/contract/contract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"

void dispatch_init(struct dispatch *d, const struct hookset *set, struct slice request)
{
    *d = (struct dispatch){
        .id = id_new(),
        .set = set,
        .request = request,
        .received_us = clock_now_us(),
        .cancel_fd = -1,
    };
    arena_init(&d->arena, DISPATCH_ARENA_BYTES);
}

void dispatch_done(struct dispatch *d)
{
    if (d->dir) {
        /* A hook may have put files of its own beside ours; they go too. */
        fs_remove_tree(d->dir);
    }
    d->dir = NULL;
    arena_clear(&d->arena);
}

static bool make_folder(struct dispatch *d, struct err *err)
{
    static const char name[] = "hooktrail-XXXXXX";
    const char *base = d->work_dir ? d->work_dir : getenv("TMPDIR");

    if (!base || *base == '\0') {
        base = "/tmp";
    }

    size_t size = strlen(base) + 1 + sizeof(name);
    char *path = arena_alloc(&d->arena, size, 1);

    if (!path) {
        return err_set(err, ERR_TOO_BIG, "no room for the path of the dispatch's folder");
    }
    (void)snprintf(path, size, "%s/%s", base, name);
    if (!mkdtemp(path)) {
        return err_errno(err, errno, "make folder %s", path);
    }
    d->dir = path;
    return true;
}

bool dispatch_file(struct dispatch *d, const char *name, struct slice bytes, const char **ret_path,
                   struct err *err)
{
    if (!d->dir && !make_folder(d, err)) {
        return false;
    }

    size_t size = strlen(d->dir) + strlen(name) + 2;
    char *path = arena_alloc(&d->arena, size, 1);

    if (!path) {
        return err_set(err, ERR_TOO_BIG, "no room for the path of %s", name);
    }
    (void)snprintf(path, size, "%s/%s", d->dir, name);

    CLEANUP(fs_closep)
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0) {
        return err_errno(err, errno, "create %s", path);
    }
    if (!fs_write_all(fd, bytes, err)) {
        return err_wrap(err, "%s", path);
    }
    *ret_path = path;
    return true;
}
