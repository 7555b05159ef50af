#include "collector/journal/inflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/base/mem.h"
#include "collector/journal/crc32c.h"
#include "collector/journal/inflight_format.h"

enum slot_state { SLOT_FREE = 0, SLOT_TAKEN = 2 };

static const char boot_path[] = "/proc/sys/kernel/random/boot_id";

struct inflight {
    int fd;                         /* holds the lock */
    struct inflight_header *header; /* owned: what the file holds, the slots with it */
    struct inflight_slot *slots;    /* behind the header */
    _Atomic uint32_t next;          /* where to look for a free slot */
    _Atomic bool owned[INFLIGHT_SLOTS];
};

enum {
    FILE_BYTES = sizeof(struct inflight_header) + INFLIGHT_SLOTS * sizeof(struct inflight_slot)
};

/* ---- Opening -------------------------------------------------------------- */

/* Without a boot id (a kernel without it) every boot looks the same. */
static void read_boot_id(char ret_boot[INFLIGHT_BOOT_SIZE])
{
    CLEANUP(fs_closep) int fd = open(boot_path, O_RDONLY | O_CLOEXEC);

    memset(ret_boot, 0, INFLIGHT_BOOT_SIZE);
    if (fd >= 0 && read(fd, ret_boot, ID_TEXT_LEN) < 0) {
        memset(ret_boot, 0, INFLIGHT_BOOT_SIZE);
    }
}

/*
 * A file with a header and free slots, whole or not there. Its blocks are taken at
 * once: a full disk is an error here, and no missing trace later.
 */
static bool create(int dir_fd, struct err *err)
{
    static const char tmp[] = "inflight.tmp";
    struct inflight_header header = {
        .slot_bytes = sizeof(struct inflight_slot),
        .slots = INFLIGHT_SLOTS,
    };
    CLEANUP(fs_closep)
    int fd = openat(dir_fd, tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    memcpy(header.magic, INFLIGHT_MAGIC, INFLIGHT_MAGIC_SIZE);
    if (fd < 0) {
        return err_errno(err, errno, "create %s", tmp);
    }

    int rc = posix_fallocate(fd, 0, FILE_BYTES);

    if (rc != 0) {
        return err_errno(err, rc, "allocate %s", tmp);
    }
    if (!fs_write_all(fd, (struct slice){ .ptr = (const char *)&header, .len = sizeof(header) },
                      err)) {
        return err_wrap(err, "%s", tmp);
    }
    if (fsync(fd) != 0 || renameat(dir_fd, tmp, dir_fd, "inflight") != 0 || fsync(dir_fd) != 0) {
        return err_errno(err, errno, "create inflight");
    }
    return true;
}

static bool open_file(const char *state_dir, int *ret_fd, struct err *err)
{
    CLEANUP(fs_closep) int dir_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0) {
        return err_errno(err, errno, "open %s", state_dir);
    }

    CLEANUP(fs_closep) int fd = openat(dir_fd, "inflight", O_RDWR | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        if (!create(dir_fd, err)) {
            return false;
        }
        fd = openat(dir_fd, "inflight", O_RDWR | O_CLOEXEC);
    }
    if (fd < 0) {
        return err_errno(err, errno, "open inflight");
    }
    if (!fs_lock(fd)) {
        return err_set(err, ERR_AGAIN, "inflight: in use by another collector");
    }
    *ret_fd = TAKE_FD(fd);
    return true;
}

static bool check_header(const struct inflight_header *h, struct err *err)
{
    if (memcmp(h->magic, INFLIGHT_MAGIC, INFLIGHT_MAGIC_SIZE) != 0 ||
        h->slot_bytes != sizeof(struct inflight_slot) || h->slots != INFLIGHT_SLOTS) {
        return err_set(err, ERR_CORRUPT,
                       "inflight: not made by this version; move it away to start without it");
    }
    return true;
}

static bool read_file(struct inflight *f, struct err *err)
{
    struct stat st;

    if (fstat(f->fd, &st) != 0 || st.st_size != FILE_BYTES) {
        return err_set(err, ERR_CORRUPT,
                       "inflight: its size is wrong; move it away to start "
                       "without it");
    }

    char *at = xcalloc(1, FILE_BYTES);

    f->header = (void *)at;
    f->slots = (void *)(at + sizeof(struct inflight_header));
    if (pread(f->fd, at, FILE_BYTES, 0) != FILE_BYTES) {
        return err_set(err, ERR_IO, "inflight: cannot be read");
    }
    return check_header(f->header, err);
}

/* Write n changed bytes at `from` to the file; all of it when somebody has cut it. */
static bool save(const struct inflight *f, const void *from, size_t n)
{
    const char *all = (const char *)f->header;
    struct stat st;

    if (fstat(f->fd, &st) != 0) {
        return false;
    }
    if (st.st_size < FILE_BYTES) {
        from = all;
        n = FILE_BYTES;
    }
    return pwrite(f->fd, from, n, (const char *)from - all) == (ssize_t)n;
}

/* Of a slot, what stands before its base: state, which hook counts, CRCs. */
static bool save_state(const struct inflight *f, const struct inflight_slot *s)
{
    return save(f, s, offsetof(struct inflight_slot, base));
}

/* ---- What a predecessor left ---------------------------------------------- */

static uint32_t base_crc(const struct inflight_base *b)
{
    return crc32c(0, (struct slice){ .ptr = (const char *)b, .len = sizeof(*b) });
}

static uint32_t hook_crc(const struct inflight_hook *h)
{
    return crc32c(0, (struct slice){ .ptr = (const char *)h, .len = sizeof(*h) });
}

static void read_base(const struct inflight_base *b, struct inflight_entry *ret)
{
    ret->dispatch_id = b->dispatch_id;
    ret->evaluation_id = b->evaluation_id;
    ret->journal_seq = b->journal_seq;
    ret->started_us = b->started_us;
    memcpy(ret->contract, b->contract, sizeof(ret->contract));
    memcpy(ret->chain, b->chain, sizeof(ret->chain));
    memcpy(ret->thread_id, b->thread_id, INFLIGHT_TEXT);
    memcpy(ret->call_id, b->call_id, INFLIGHT_TEXT);
    memcpy(ret->agent_name, b->agent_name, INFLIGHT_TEXT);
    memcpy(ret->event, b->event, INFLIGHT_TEXT);
    memcpy(ret->tool_name, b->tool_name, INFLIGHT_TEXT);
}

static void read_hook(const struct inflight_hook *h, struct inflight_entry *ret)
{
    memcpy(ret->hook_name, h->hook_name, INFLIGHT_TEXT);
    memcpy(ret->tag, h->tag, sizeof(ret->tag));
    ret->ordinal = h->ordinal;
    ret->pid = h->pid;
    ret->start_ticks = h->start_ticks;
}

/* False when the slot tells nothing: free, never finished, or torn by a loss of power. */
static bool read_slot(const struct inflight_slot *s, bool same_boot, struct inflight_entry *ret)
{
    uint32_t which = s->which & 1;

    *ret = (struct inflight_entry){ 0 };
    if (s->state != SLOT_TAKEN || base_crc(&s->base) != s->base_crc) {
        return false;
    }
    read_base(&s->base, ret);
    if (hook_crc(&s->hooks[which]) == s->hook_crc[which]) {
        read_hook(&s->hooks[which], ret);
    }
    if (!same_boot) {
        ret->pid = 0;
        ret->start_ticks = 0;
    }
    return true;
}

/* A disk may have another number after a boot, a file on it has not. */
static bool is_copy(const struct inflight_header *h, const struct stat *st, bool same_boot)
{
    return h->inode != 0 && (h->inode != st->st_ino || (same_boot && h->device != st->st_dev));
}

static bool hand_over(struct inflight *f, void (*on_left)(void *, const struct inflight_entry *),
                      void *ctx, struct err *err)
{
    struct inflight_header *h = f->header;
    struct inflight_entry entry;
    char boot[INFLIGHT_BOOT_SIZE];
    struct stat st;
    bool ok = true;

    if (fstat(f->fd, &st) != 0) {
        return err_errno(err, errno, "inflight");
    }
    read_boot_id(boot);

    bool same_boot = memcmp(boot, h->boot, sizeof(boot)) == 0;
    bool tell = on_left && !is_copy(h, &st, same_boot);

    for (struct inflight_slot *s = f->slots; s < f->slots + INFLIGHT_SLOTS; s++) {
        if (tell && read_slot(s, same_boot, &entry)) {
            on_left(ctx, &entry);
        }
        if (s->state != SLOT_FREE) {
            s->state = SLOT_FREE;
            ok = save_state(f, s) && ok;
        }
    }
    memcpy(h->boot, boot, sizeof(boot));
    h->device = st.st_dev;
    h->inode = st.st_ino;
    ok = save(f, h, sizeof(*h)) && ok;
    return ok ? true : err_errno(err, errno, "write inflight");
}

bool inflight_open(const char *state_dir, void (*on_left)(void *ctx, const struct inflight_entry *),
                   void *ctx, struct inflight **ret, struct err *err)
{
    struct inflight *f = xcalloc(1, sizeof(*f));

    f->fd = -1;
    if (!open_file(state_dir, &f->fd, err) || !read_file(f, err) ||
        !hand_over(f, on_left, ctx, err)) {
        inflight_close(f);
        return false;
    }
    *ret = f;
    return true;
}

void inflight_close(struct inflight *f)
{
    if (!f) {
        return;
    }
    fs_closep(&f->fd);
    free(f->header);
    free(f);
}

/* ---- Slots ---------------------------------------------------------------- */

/* A text in a field of INFLIGHT_TEXT, cut, and filled with NUL. */
static void put_text(char *field, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);

    memset(field, 0, size);
    memcpy(field, text, n);
}

static void fill_base(struct inflight_base *b, const struct inflight_entry *e)
{
    memset(b, 0, sizeof(*b)); /* the CRC is over the padding, too */
    b->dispatch_id = e->dispatch_id;
    b->evaluation_id = e->evaluation_id;
    b->journal_seq = e->journal_seq;
    b->started_us = e->started_us;
    put_text(b->contract, sizeof(b->contract), e->contract);
    put_text(b->chain, sizeof(b->chain), e->chain);
    put_text(b->thread_id, INFLIGHT_TEXT, e->thread_id);
    put_text(b->call_id, INFLIGHT_TEXT, e->call_id);
    put_text(b->agent_name, INFLIGHT_TEXT, e->agent_name);
    put_text(b->event, INFLIGHT_TEXT, e->event);
    put_text(b->tool_name, INFLIGHT_TEXT, e->tool_name);
}

static void fill_hook(struct inflight_hook *h, const char *name, uint32_t ordinal, const char *tag)
{
    memset(h, 0, sizeof(*h));
    put_text(h->hook_name, sizeof(h->hook_name), name);
    put_text(h->tag, sizeof(h->tag), tag);
    h->ordinal = ordinal;
}

static void put_hook(struct inflight_slot *s, uint32_t at, const struct inflight_hook *h)
{
    s->hooks[at] = *h;
    s->hook_crc[at] = hook_crc(&s->hooks[at]);
}

/* What cannot be written is not told to a successor; the hook runs all the same. */
static void publish_hook(const struct inflight *f, struct inflight_slot *s,
                         const struct inflight_hook *h)
{
    uint32_t other = (s->which + 1) & 1;

    put_hook(s, other, h);
    if (save(f, &s->hooks[other], sizeof(s->hooks[other]))) {
        atomic_fetch_add(&s->which, 1);
        (void)save_state(f, s);
    }
}

static bool fill_slot(const struct inflight *f, struct inflight_slot *s,
                      const struct inflight_entry *entry)
{
    struct inflight_hook hook;

    fill_base(&s->base, entry);
    s->base_crc = base_crc(&s->base);
    fill_hook(&hook, entry->hook_name, entry->ordinal, entry->tag);
    hook.pid = entry->pid;
    hook.start_ticks = entry->start_ticks;
    put_hook(s, s->which & 1, &hook);
    atomic_store(&s->state, SLOT_TAKEN);
    return save(f, s, sizeof(*s));
}

int inflight_take(struct inflight *f, const struct inflight_entry *entry)
{
    uint32_t start = atomic_fetch_add(&f->next, 1);

    for (uint32_t i = 0; i < INFLIGHT_SLOTS; i++) {
        uint32_t at = (start + i) % INFLIGHT_SLOTS;
        struct inflight_slot *s = &f->slots[at];

        if (atomic_exchange(&f->owned[at], true)) {
            continue;
        }
        if (fill_slot(f, s, entry)) {
            return (int)at;
        }
        inflight_release(f, (int)at);
        return -1;
    }
    return -1;
}

void inflight_set_hook(struct inflight *f, int slot, const char *hook_name, uint32_t ordinal,
                       const char *tag)
{
    struct inflight_hook hook;

    if (slot < 0) {
        return;
    }
    fill_hook(&hook, hook_name, ordinal, tag);
    publish_hook(f, &f->slots[slot], &hook);
}

void inflight_set_pid(struct inflight *f, int slot, pid_t pid, uint64_t start_ticks)
{
    if (slot < 0) {
        return;
    }

    struct inflight_slot *s = &f->slots[slot];
    struct inflight_hook hook = s->hooks[s->which & 1];

    hook.pid = pid;
    hook.start_ticks = start_ticks;
    publish_hook(f, s, &hook);
}

void inflight_release(struct inflight *f, int slot)
{
    if (slot < 0) {
        return;
    }

    struct inflight_slot *s = &f->slots[slot];

    atomic_store(&s->state, SLOT_FREE);
    (void)save_state(f, s);
    atomic_store(&f->owned[slot], false); /* last: from now on it is another one's */
}
