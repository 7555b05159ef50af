#include "collector/contract/hook_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

static int is_hook_file(const struct dirent *e)
{
    return e->d_name[0] != '.' && (ends_with(e->d_name, ".yaml") || ends_with(e->d_name, ".yml"));
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static const char *join(const char *folder, const char *name, struct arena *a)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = arena_alloc(a, size, 1);

    if (path) {
        (void)snprintf(path, size, "%s/%s", folder, name);
    }
    return path;
}

static bool fill(const char *folder, struct dirent **entries, size_t n, struct arena *a,
                 const char *const **ret)
{
    const char **paths = arena_alloc(a, n + 1, sizeof(*paths));

    for (size_t i = 0; paths && i < n; i++) {
        paths[i] = join(folder, entries[i]->d_name, a);
        if (!paths[i]) {
            return false;
        }
    }
    *ret = paths;
    return paths != NULL;
}

static bool list_folder(const char *path, struct arena *a, const char *const **ret, size_t *ret_n,
                        struct err *err)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_hook_file, by_bytes);

    if (n < 0) {
        return err_errno(err, errno, "%s", path);
    }

    bool few = n <= HOOK_FILES_MAX;
    bool ok = few && fill(path, entries, (size_t)n, a, ret);

    for (int i = 0; i < n; i++) {
        free(entries[i]);
    }
    free(entries);
    if (!few) {
        return err_set(err, ERR_TOO_BIG, "%s: more than %d hook files", path, HOOK_FILES_MAX);
    }
    *ret_n = (size_t)n;
    return ok || err_set(err, ERR_TOO_BIG, "%s: no room for the names of its files", path);
}

bool hook_files_list(const char *path, struct arena *a, const char *const **ret, size_t *ret_n,
                     struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        return err_errno(err, errno, "%s", path);
    }
    if (S_ISDIR(st.st_mode)) {
        return list_folder(path, a, ret, ret_n, err);
    }

    const char **one = arena_alloc(a, 2, sizeof(*one));
    struct slice copy;

    if (!one || !arena_dup(a, slice_from_cstr(path), &copy)) {
        return err_set(err, ERR_TOO_BIG, "%s: no room for its name", path);
    }
    one[0] = copy.ptr;
    *ret = one;
    *ret_n = 1;
    return true;
}
