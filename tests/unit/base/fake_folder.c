#include "tests/unit/base/fake_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { FILE_BYTES = 64 * 1024 };

static char dir[64];
static char text_of[FILE_BYTES];

int fake_folder_begin(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "%s/hooktrail-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

int fake_folder_end(void **state)
{
    (void)state;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fake_folder_path(void)
{
    return dir;
}

const char *fake_folder_file(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void make_folder_of(const char *name)
{
    const char *slash = strchr(name, '/');
    char path[256];

    if (slash) {
        (void)snprintf(path, sizeof(path), "%s/%.*s", dir, (int)(slash - name), name);
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
}

void fake_folder_put(const char *name, const char *text)
{
    make_folder_of(name);

    FILE *f = fopen(fake_folder_file(name), "ae");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

const char *fake_folder_get(const char *name)
{
    FILE *f = fopen(fake_folder_file(name), "re");
    size_t n = 0;

    if (f) {
        n = fread(text_of, 1, sizeof(text_of) - 1, f);
        (void)fclose(f);
    }
    text_of[n] = '\0';
    return text_of;
}
