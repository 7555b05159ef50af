/*
 * io: what the journal asks of a disk and a machine, and nothing more.
 *
 * One table of functions, so that tests put a simulated disk under the very code
 * that runs on the real one. Everything that can fail answers like the system
 * call of its name: -1 and errno. Paths are whole paths.
 * Thread: the real one, any; a simulated one, one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/base/cleanup.h"

enum { IO_ID_BYTES = 16 };

/* Where a file is: by it a copied folder is told from the one it was copied from. */
struct io_place {
    uint64_t device;
    uint64_t inode;
};

struct journal_io {
    void *ctx; /* of the implementation; handed to each function */

    /* open(2) with O_CLOEXEC; new files get mode 0640. EINVAL: it is no regular file. */
    int (*open)(void *ctx, const char *path, int flags) MUST_CHECK;
    void (*close)(void *ctx, int fd);
    ssize_t (*pread)(void *ctx, int fd, void *at, size_t n, uint64_t offset) MUST_CHECK;
    ssize_t (*pwrite)(void *ctx, int fd, const void *at, size_t n, uint64_t offset) MUST_CHECK;
    int (*fdatasync)(void *ctx, int fd) MUST_CHECK;
    /* Reserve room up to `size` bytes, read as zeros; EOPNOTSUPP where that is not possible. */
    int (*fallocate)(void *ctx, int fd, uint64_t size) MUST_CHECK;
    int (*truncate)(void *ctx, int fd, uint64_t size) MUST_CHECK;
    int64_t (*size)(void *ctx, int fd) MUST_CHECK;

    /* Names. */
    int (*mkdir)(void *ctx, const char *path) MUST_CHECK;
    int (*rename)(void *ctx, const char *from, const char *to) MUST_CHECK;
    int (*unlink)(void *ctx, const char *path) MUST_CHECK;
    int (*rmdir)(void *ctx, const char *path) MUST_CHECK;
    int (*sync_dir)(void *ctx, const char *path) MUST_CHECK;
    int (*place)(void *ctx, const char *path, struct io_place *ret) MUST_CHECK;
    /* Each name in a folder but "." and "..", in no order; on_name false stops. */
    int (*list)(void *ctx, const char *path, bool (*on_name)(void *arg, const char *name),
                void *arg) MUST_CHECK;

    /* The first n bytes of a file, shared with whoever maps them too. */
    int (*map)(void *ctx, int fd, size_t n, bool writable, void **ret) MUST_CHECK;
    void (*unmap)(void *ctx, void *at, size_t n);
    int (*sync_map)(void *ctx, void *at, size_t n) MUST_CHECK;

    /* Take the lock of a file (made if it is not there); its descriptor, or -1 EWOULDBLOCK. */
    int (*lock)(void *ctx, const char *path) MUST_CHECK;

    /* The machine: which it is, since which start it runs, what time it is. */
    void (*machine)(void *ctx, unsigned char ret_machine[IO_ID_BYTES],
                    unsigned char ret_boot[IO_ID_BYTES]);
    int64_t (*now_us)(void *ctx);
    int64_t (*mono_ms)(void *ctx);
};

/* The real disk. */
extern const struct journal_io journal_io_real;
