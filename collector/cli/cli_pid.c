#include "collector/cli/cli_pid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/fs.h"

enum { FOLDER_MODE = 0755, SMALL_TEXT = 64 };

bool pid_write(const char *state_dir, const char *role, struct err *err)
{
    char path[PATH_MAX];
    char name[SMALL_TEXT];
    char pid[SMALL_TEXT];

    (void)snprintf(path, sizeof(path), "%s/run", state_dir);
    (void)snprintf(name, sizeof(name), "%s.pid", role);
    (void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s", path);
    }

    CLEANUP(fs_closep) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0) {
        return err_errno(err, errno, "%s", path);
    }
    return fs_replace(dir, name, slice_from_cstr(pid), err) || err_wrap(err, "%s", path);
}

long pid_read(const char *state_dir, const char *role)
{
    char path[PATH_MAX];
    char text[SMALL_TEXT] = "";

    (void)snprintf(path, sizeof(path), "%s/run/%s.pid", state_dir, role);

    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : 0;
}

void pid_remove(const char *state_dir, const char *role)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/run/%s.pid", state_dir, role);
    (void)unlink(path);
}
