#include "collector/journal/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/digest.h"
#include "collector/base/fs.h"

/* Who puts a pipe or a device in a file's place must not make us wait, or read for ever. */
static int real_open(void *ctx, const char *path, int flags)
{
    CLEANUP(fs_closep)
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0640);
    struct stat st;

    (void)ctx;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return TAKE_FD(fd);
}

static void real_close(void *ctx, int fd)
{
    (void)ctx;
    (void)close(fd);
}

static ssize_t real_pread(void *ctx, int fd, void *at, size_t n, uint64_t offset)
{
    (void)ctx;
    return pread(fd, at, n, (off_t)offset);
}

static ssize_t real_pwrite(void *ctx, int fd, const void *at, size_t n, uint64_t offset)
{
    (void)ctx;
    return pwrite(fd, at, n, (off_t)offset);
}

static int real_fdatasync(void *ctx, int fd)
{
    (void)ctx;
    return fdatasync(fd);
}

static int real_fallocate(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    return fallocate(fd, 0, 0, (off_t)size);
}

static int real_truncate(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    return ftruncate(fd, (off_t)size);
}

static int64_t real_size(void *ctx, int fd)
{
    struct stat st;

    (void)ctx;
    return fstat(fd, &st) < 0 ? -1 : (int64_t)st.st_size;
}

static int real_mkdir(void *ctx, const char *path)
{
    (void)ctx;
    return mkdir(path, 0750);
}

static int real_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return rename(from, to);
}

static int real_unlink(void *ctx, const char *path)
{
    (void)ctx;
    return unlink(path);
}

static int real_rmdir(void *ctx, const char *path)
{
    (void)ctx;
    return rmdir(path);
}

static int real_sync_dir(void *ctx, const char *path)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)ctx;
    return fd < 0 ? -1 : fsync(fd);
}

static int real_place(void *ctx, const char *path, struct io_place *ret)
{
    struct stat st;

    (void)ctx;
    if (stat(path, &st) < 0) {
        return -1;
    }
    *ret = (struct io_place){ .device = st.st_dev, .inode = st.st_ino };
    return 0;
}

static int real_list(void *ctx, const char *path, bool (*on_name)(void *arg, const char *name),
                     void *arg)
{
    DIR *dir = opendir(path);
    bool more = true;

    (void)ctx;
    if (!dir) {
        return -1;
    }
    while (more) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(dir);
        if (!entry) {
            break;
        }
        more = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
               on_name(arg, entry->d_name);
    }

    int failed = more ? errno : 0;

    (void)closedir(dir);
    errno = failed;
    return failed ? -1 : 0;
}

static int real_map(void *ctx, int fd, size_t n, bool writable, void **ret)
{
    void *at = mmap(NULL, n, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

    (void)ctx;
    if (at == MAP_FAILED) {
        return -1;
    }
    *ret = at;
    return 0;
}

static void real_unmap(void *ctx, void *at, size_t n)
{
    (void)ctx;
    (void)munmap(at, n);
}

static int real_sync_map(void *ctx, void *at, size_t n)
{
    (void)ctx;
    return msync(at, n, MS_SYNC);
}

static int real_lock(void *ctx, const char *path)
{
    CLEANUP(fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);

    (void)ctx;
    if (fd < 0 || !fs_lock(fd)) {
        return -1;
    }
    return TAKE_FD(fd);
}

/* The 32 hexadecimal digits of a file, hyphens passed over; zeros where it is not there. */
static void read_id(const char *path, unsigned char ret[IO_ID_BYTES])
{
    FILE *f = fopen(path, "re");
    size_t n = 0;

    memset(ret, 0, IO_ID_BYTES);
    if (!f) {
        return;
    }
    for (int c = fgetc(f); c != EOF && n < 2 * (size_t)IO_ID_BYTES; c = fgetc(f)) {
        int value = hex_digit((char)c);

        if (value >= 0) {
            ret[n / 2] = (unsigned char)(ret[n / 2] << 4 | value);
            n++;
        }
    }
    (void)fclose(f);
}

static void real_machine(void *ctx, unsigned char ret_machine[IO_ID_BYTES],
                         unsigned char ret_boot[IO_ID_BYTES])
{
    (void)ctx;
    read_id("/etc/machine-id", ret_machine);
    read_id("/proc/sys/kernel/random/boot_id", ret_boot);
}

static int64_t real_now_us(void *ctx)
{
    (void)ctx;
    return clock_now_us();
}

static int64_t real_mono_ms(void *ctx)
{
    (void)ctx;
    return clock_mono_ms();
}

const struct journal_io journal_io_real = {
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .pwrite = real_pwrite,
    .fdatasync = real_fdatasync,
    .fallocate = real_fallocate,
    .truncate = real_truncate,
    .size = real_size,
    .mkdir = real_mkdir,
    .rename = real_rename,
    .unlink = real_unlink,
    .rmdir = real_rmdir,
    .sync_dir = real_sync_dir,
    .place = real_place,
    .list = real_list,
    .map = real_map,
    .unmap = real_unmap,
    .sync_map = real_sync_map,
    .lock = real_lock,
    .machine = real_machine,
    .now_us = real_now_us,
    .mono_ms = real_mono_ms,
};
