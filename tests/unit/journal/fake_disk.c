#include "tests/unit/journal/fake_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

enum { SECTOR = 512, NAME = 64, NODES = 512, ENTRIES = 256, FDS = 256 };

struct entry {
    char name[NAME];
    int node;
};

struct names {
    struct entry list[ENTRIES];
    size_t n;
};

/* A change to a folder that is not synced yet. */
struct change {
    char from[NAME]; /* removed; empty: none */
    char to[NAME];   /* set to node; empty: none */
    int node;
};

struct node {
    bool used;
    bool is_dir;
    unsigned char *cache; /* of a file; both have cap bytes */
    unsigned char *disk;
    bool *dirty; /* a sector each */
    size_t cap;
    size_t cache_size;
    size_t disk_size;
    unsigned char *frozen; /* what a mapped file was at the death */
    bool mapped;
    struct names *cache_names; /* of a folder */
    struct names *disk_names;
    struct change *changes;
    size_t n_changes;
};

struct fake_disk {
    struct journal_io io;
    struct node nodes[NODES]; /* 0 is the root */
    int fds[FDS];             /* node of each; -1: closed */
    struct fake_plan plan;
    uint64_t calls;
    bool dead;
    uint64_t random;
    int64_t now_ms;
    int64_t ticks;
    unsigned char boot;
};

uint64_t fake_disk_chance(struct fake_disk *d, uint64_t n)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return (d->random * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n;
}

static void die(struct fake_disk *d)
{
    d->dead = true;
    for (int i = 0; i < NODES; i++) {
        struct node *n = &d->nodes[i];

        if (n->used && n->mapped) { /* what is stored there from now on never happened */
            n->frozen = xcalloc(1, n->cap);
            memcpy(n->frozen, n->cache, n->cap);
        }
    }
}

/* One call that changes something: 0, or -1 with errno when it must fail. */
static int step(struct fake_disk *d)
{
    if (!d->dead && ++d->calls == d->plan.die_at) {
        die(d);
    }
    if (d->dead) {
        errno = EIO;
        return -1;
    }
    if (d->plan.fail_at > 0 && d->calls >= d->plan.fail_at &&
        d->calls < d->plan.fail_at + d->plan.fail_for) {
        errno = d->plan.fail_errno;
        return -1;
    }
    return 0;
}

static int find(const struct names *names, const char *name, size_t len)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strlen(names->list[i].name) == len && memcmp(names->list[i].name, name, len) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void forget(struct names *names, const char *name)
{
    int i = find(names, name, strlen(name));

    if (i >= 0) {
        names->list[i] = names->list[--names->n];
    }
}

static void apply(struct names *names, const struct change *c)
{
    if (c->from[0]) {
        forget(names, c->from);
    }
    if (c->to[0]) {
        forget(names, c->to);
        if (names->n == ENTRIES) {
            abort();
        }
        memcpy(names->list[names->n].name, c->to, NAME);
        names->list[names->n++].node = c->node;
    }
}

static void change(struct fake_disk *d, int dir, const char *from, const char *to, int node)
{
    struct node *n = &d->nodes[dir];
    struct change c = { .node = node };

    memcpy(c.from, from, strlen(from));
    memcpy(c.to, to, strlen(to));
    apply(n->cache_names, &c);
    n->changes = xrealloc(n->changes, (n->n_changes + 1) * sizeof(c));
    n->changes[n->n_changes++] = c;
}

static int new_node(struct fake_disk *d, bool is_dir)
{
    for (int i = 0; i < NODES; i++) {
        struct node *n = &d->nodes[i];

        if (!n->used) {
            *n = (struct node){ .used = true, .is_dir = is_dir };
            if (is_dir) {
                n->cache_names = xcalloc(1, sizeof(*n->cache_names));
                n->disk_names = xcalloc(1, sizeof(*n->disk_names));
            }
            return i;
        }
    }
    abort();
}

/* The node of a path, or -1; *ret_dir and *ret_name tell its folder and last part. */
static int walk(struct fake_disk *d, const char *path, int *ret_dir, const char **ret_name)
{
    int at = 0;

    *ret_dir = 0;
    *ret_name = path;
    while (*path == '/') {
        path++;
    }
    while (*path) {
        size_t len = strcspn(path, "/");

        if (at < 0 || !d->nodes[at].is_dir) {
            errno = ENOENT;
            *ret_dir = -1;
            return -1;
        }
        *ret_dir = at;
        *ret_name = path;

        int i = find(d->nodes[at].cache_names, path, len);

        at = i < 0 ? -1 : d->nodes[at].cache_names->list[i].node;
        path += len;
        path += *path == '/';
    }
    if (at < 0) {
        errno = ENOENT;
    }
    return at;
}

static void grow(struct node *n, size_t size)
{
    if (size > n->cap) {
        size_t cap = (size + 65535) / 65536 * 65536;

        n->cache = xrealloc(n->cache, cap);
        n->disk = xrealloc(n->disk, cap);
        n->dirty = xrealloc(n->dirty, cap / SECTOR * sizeof(bool));
        memset(n->cache + n->cap, 0, cap - n->cap);
        memset(n->disk + n->cap, 0, cap - n->cap);
        memset(n->dirty + n->cap / SECTOR, 0, (cap - n->cap) / SECTOR * sizeof(bool));
        n->cap = cap;
    }
}

static void resize(struct node *n, size_t size)
{
    grow(n, size);
    if (size < n->cache_size) {
        memset(n->cache + size, 0, n->cache_size - size);
        memset(n->dirty + size / SECTOR, 1, (n->cache_size - size) / SECTOR);
    }
    n->cache_size = size;
}

static int fake_open(void *ctx, const char *path, int flags)
{
    struct fake_disk *d = ctx;
    const char *name;
    int dir;
    int node = walk(d, path, &dir, &name);

    if (node < 0 && (flags & O_CREAT) && dir >= 0) {
        if (step(d) < 0) {
            return -1;
        }
        node = new_node(d, false);
        grow(&d->nodes[node], SECTOR);
        change(d, dir, "", name, node);
    } else if (node < 0) {
        return -1;
    } else if ((flags & O_TRUNC) && step(d) < 0) {
        return -1;
    }
    if (flags & O_TRUNC) {
        resize(&d->nodes[node], 0);
    }
    for (int fd = 0; fd < FDS; fd++) {
        if (d->fds[fd] < 0) {
            d->fds[fd] = node;
            return fd;
        }
    }
    abort();
}

static void fake_close(void *ctx, int fd)
{
    struct fake_disk *d = ctx;

    if (fd != FDS) {
        d->fds[fd] = -1;
    }
}

static ssize_t fake_pread(void *ctx, int fd, void *at, size_t n, uint64_t offset)
{
    struct fake_disk *d = ctx;
    const struct node *node = &d->nodes[d->fds[fd]];
    size_t left = offset < node->cache_size ? node->cache_size - offset : 0;

    n = n < left ? n : left;
    memcpy(at, node->cache + offset, n);
    return (ssize_t)n;
}

static ssize_t fake_pwrite(void *ctx, int fd, const void *at, size_t n, uint64_t offset)
{
    struct fake_disk *d = ctx;
    struct node *node = &d->nodes[d->fds[fd]];
    bool was_dead = d->dead;
    int failed = step(d);
    int why = errno;

    if (was_dead) {
        return -1;
    }
    if (failed < 0) { /* a part of it has got there all the same */
        n = fake_disk_chance(d, n + 1);
    }
    grow(node, offset + n);
    memcpy(node->cache + offset, at, n);
    if (n > 0) {
        memset(node->dirty + offset / SECTOR, 1,
               (offset + n + SECTOR - 1) / SECTOR - offset / SECTOR);
    }
    node->cache_size = offset + n > node->cache_size ? offset + n : node->cache_size;
    errno = why;
    return failed < 0 ? -1 : (ssize_t)n;
}

/* Some of what is dirty gets to the disk; none of it is dirty any more. */
static void flush(struct fake_disk *d, struct node *n, bool all)
{
    for (size_t i = 0; i < n->cap / SECTOR; i++) {
        if (n->dirty[i] && (all || fake_disk_chance(d, 2) == 0)) {
            memcpy(n->disk + i * SECTOR, n->cache + i * SECTOR, SECTOR);
        }
        n->dirty[i] = false;
    }
    if (all || fake_disk_chance(d, 2) == 0) {
        n->disk_size = n->cache_size;
    }
}

static int fake_fdatasync(void *ctx, int fd)
{
    struct fake_disk *d = ctx;
    struct node *n = &d->nodes[d->fds[fd]];
    bool was_dead = d->dead;
    int failed = step(d);
    int why = errno;

    if (!was_dead && !(failed < 0 && d->dead)) {
        flush(d, n, failed == 0);
    }
    errno = why;
    return failed;
}

static int fake_fallocate(void *ctx, int fd, uint64_t size)
{
    struct fake_disk *d = ctx;
    struct node *n = &d->nodes[d->fds[fd]];

    if (step(d) < 0) {
        return -1;
    }
    if (size > n->cache_size) {
        resize(n, size);
    }
    return 0;
}

static int fake_truncate(void *ctx, int fd, uint64_t size)
{
    struct fake_disk *d = ctx;

    if (step(d) < 0) {
        return -1;
    }
    resize(&d->nodes[d->fds[fd]], size);
    return 0;
}

static int64_t fake_size(void *ctx, int fd)
{
    const struct fake_disk *d = ctx;

    return (int64_t)d->nodes[d->fds[fd]].cache_size;
}

static int fake_mkdir(void *ctx, const char *path)
{
    struct fake_disk *d = ctx;
    const char *name;
    int dir;

    if (walk(d, path, &dir, &name) >= 0) {
        errno = EEXIST;
        return -1;
    }
    if (step(d) < 0) {
        return -1;
    }
    change(d, dir, "", name, new_node(d, true));
    return 0;
}

static int fake_rename(void *ctx, const char *from, const char *to)
{
    struct fake_disk *d = ctx;
    const char *name;
    const char *new_name;
    int dir;
    int new_dir;
    int node = walk(d, from, &dir, &name);

    (void)walk(d, to, &new_dir, &new_name);
    if (node < 0 || dir != new_dir || step(d) < 0) {
        return -1;
    }
    change(d, dir, name, new_name, node);
    return 0;
}

/* Take a name away, of what is a folder or not. */
static int remove_name(struct fake_disk *d, const char *path, bool is_dir)
{
    const char *name;
    int dir;
    int node = walk(d, path, &dir, &name);

    if (node < 0 || step(d) < 0) {
        return -1;
    }
    if (d->nodes[node].is_dir && !is_dir) {
        errno = EISDIR;
        return -1;
    }
    if (is_dir && d->nodes[node].cache_names->n > 0) {
        errno = ENOTEMPTY;
        return -1;
    }
    change(d, dir, name, "", node);
    return 0;
}

static int fake_unlink(void *ctx, const char *path)
{
    return remove_name(ctx, path, false);
}

static int fake_rmdir(void *ctx, const char *path)
{
    return remove_name(ctx, path, true);
}

static void settle_names(struct node *n, size_t upto)
{
    for (size_t i = 0; i < upto; i++) {
        apply(n->disk_names, &n->changes[i]);
    }
    n->n_changes = 0;
}

static int fake_sync_dir(void *ctx, const char *path)
{
    struct fake_disk *d = ctx;
    const char *name;
    int dir;
    int node = walk(d, path, &dir, &name);

    if (node < 0 || step(d) < 0) {
        return -1;
    }
    settle_names(&d->nodes[node], d->nodes[node].n_changes);
    return 0;
}

static int fake_place(void *ctx, const char *path, struct io_place *ret)
{
    struct fake_disk *d = ctx;
    const char *name;
    int dir;
    int node = walk(d, path, &dir, &name);

    if (node < 0) {
        return -1;
    }
    *ret = (struct io_place){ .device = 7, .inode = (uint64_t)node };
    return 0;
}

static int fake_list(void *ctx, const char *path, bool (*on_name)(void *, const char *), void *arg)
{
    struct fake_disk *d = ctx;
    const char *name;
    int dir;
    int node = walk(d, path, &dir, &name);

    if (node < 0) {
        return -1;
    }

    struct names *copy = xcalloc(1, sizeof(*copy)); /* on_name may unlink */

    *copy = *d->nodes[node].cache_names;
    for (size_t i = 0; i < copy->n && on_name(arg, copy->list[i].name); i++) {
    }
    free(copy);
    return 0;
}

static int fake_map(void *ctx, int fd, size_t n, bool writable, void **ret)
{
    struct fake_disk *d = ctx;
    struct node *node = &d->nodes[d->fds[fd]];

    (void)n;
    node->mapped |= writable;
    *ret = node->cache;
    return 0;
}

static void fake_unmap(void *ctx, void *at, size_t n)
{
    (void)ctx;
    (void)at;
    (void)n;
}

static int fake_sync_map(void *ctx, void *at, size_t n)
{
    struct fake_disk *d = ctx;

    if (step(d) < 0) {
        return -1;
    }
    for (int i = 0; i < NODES; i++) {
        if (d->nodes[i].used && d->nodes[i].cache == at) {
            memcpy(d->nodes[i].disk, at, n);
        }
    }
    return 0;
}

static int fake_lock(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return FDS; /* closed without being one of ours */
}

static void fake_machine(void *ctx, unsigned char ret_machine[IO_ID_BYTES],
                         unsigned char ret_boot[IO_ID_BYTES])
{
    const struct fake_disk *d = ctx;

    memset(ret_machine, 3, IO_ID_BYTES);
    memset(ret_boot, d->boot, IO_ID_BYTES);
}

static int64_t fake_now_us(void *ctx)
{
    struct fake_disk *d = ctx;

    return INT64_C(1700000000000000) + d->now_ms * 1000 + ++d->ticks;
}

static int64_t fake_mono_ms(void *ctx)
{
    const struct fake_disk *d = ctx;

    return d->now_ms;
}

struct fake_disk *fake_disk_new(uint64_t seed)
{
    struct fake_disk *d = xcalloc(1, sizeof(*d));

    d->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    d->now_ms = 1000;
    d->boot = 1;
    for (int i = 0; i < FDS; i++) {
        d->fds[i] = -1;
    }
    (void)new_node(d, true);
    d->io = (struct journal_io){
        .ctx = d,
        .open = fake_open,
        .close = fake_close,
        .pread = fake_pread,
        .pwrite = fake_pwrite,
        .fdatasync = fake_fdatasync,
        .fallocate = fake_fallocate,
        .truncate = fake_truncate,
        .size = fake_size,
        .mkdir = fake_mkdir,
        .rename = fake_rename,
        .unlink = fake_unlink,
        .rmdir = fake_rmdir,
        .sync_dir = fake_sync_dir,
        .place = fake_place,
        .list = fake_list,
        .map = fake_map,
        .unmap = fake_unmap,
        .sync_map = fake_sync_map,
        .lock = fake_lock,
        .machine = fake_machine,
        .now_us = fake_now_us,
        .mono_ms = fake_mono_ms,
    };
    return d;
}

void fake_disk_free(struct fake_disk *d)
{
    for (int i = 0; i < NODES; i++) {
        free(d->nodes[i].cache);
        free(d->nodes[i].disk);
        free(d->nodes[i].dirty);
        free(d->nodes[i].frozen);
        free(d->nodes[i].cache_names);
        free(d->nodes[i].disk_names);
        free(d->nodes[i].changes);
    }
    free(d);
}

const struct journal_io *fake_disk_io(struct fake_disk *d)
{
    return &d->io;
}

void fake_disk_plan(struct fake_disk *d, const struct fake_plan *plan)
{
    d->plan = *plan;
    d->calls = 0;
}

bool fake_disk_is_dead(const struct fake_disk *d)
{
    return d->dead;
}

uint64_t fake_disk_calls(const struct fake_disk *d)
{
    return d->calls;
}

static void lose_power(struct fake_disk *d, struct node *n)
{
    if (n->is_dir) {
        settle_names(n, fake_disk_chance(d, n->n_changes + 1));
        *n->cache_names = *n->disk_names;
        return;
    }
    if (n->mapped) {
        memset(n->dirty, 1, n->cap / SECTOR);
    }
    flush(d, n, false);
    memset(n->disk + n->disk_size, 0, n->cap - n->disk_size);
    memcpy(n->cache, n->disk, n->cap);
    n->cache_size = n->disk_size;
}

void fake_disk_die(struct fake_disk *d)
{
    if (!d->dead) {
        die(d);
    }
}

void fake_disk_restart(struct fake_disk *d, enum fake_death death)
{
    fake_disk_die(d);
    for (int i = 0; i < NODES; i++) {
        struct node *n = &d->nodes[i];

        if (n->frozen) {
            memcpy(n->cache, n->frozen, n->cap);
            free(n->frozen);
            n->frozen = NULL;
        }
        if (n->used && death == FAKE_POWER) {
            lose_power(d, n);
        }
        n->mapped = false;
    }
    for (int i = 0; i < FDS; i++) {
        d->fds[i] = -1;
    }
    d->boot = (unsigned char)(d->boot + (death == FAKE_POWER));
    d->dead = false;
    d->plan = (struct fake_plan){ 0 };
}

void fake_disk_sleep(struct fake_disk *d, int64_t ms)
{
    d->now_ms += ms;
}
