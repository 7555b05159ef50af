#include "collector/journal/mark.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/journal/folder.h"

/* The words that change, as they lie at FORMAT_MARK_DYNAMIC; all little-endian machines. */
struct words {
    uint64_t durable;
    uint64_t durable_turned;
    uint32_t changes;
    uint32_t state;
    uint64_t lost;
    int64_t lost_first_us;
    int64_t lost_last_us;
    char lost_cause[16];
    uint64_t gap_seq;
    uint64_t gap_count;
    uint64_t segment;
    uint64_t void_from;
    uint64_t void_turned;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the mark is mapped as it lies on disk");
static_assert(offsetof(struct words, void_from) == 88, "the words stand as format.h says");

enum { POLL_MS = 20 }; /* between looks, where the kernel has no futex for us */

static struct words *words_of(const struct mark *m)
{
    return (struct words *)(void *)(m->at + FORMAT_MARK_DYNAMIC);
}

static bool map(const struct journal_io *io, const char *path, bool writable, struct mark *ret,
                struct err *err)
{
    int fd = io->open(io->ctx, path, writable ? O_RDWR : O_RDONLY);
    void *at = NULL;

    if (fd < 0) {
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s is not there", path)
                               : err_errno(err, errno, "open %s", path);
    }

    int64_t size = io->size(io->ctx, fd);
    bool ok =
        size >= FORMAT_MARK_BYTES && io->map(io->ctx, fd, FORMAT_MARK_BYTES, writable, &at) == 0;
    int failed = errno;

    io->close(io->ctx, fd);
    if (size >= 0 && size < FORMAT_MARK_BYTES) {
        return err_set(err, ERR_CORRUPT, "%s is too short", path);
    }
    if (!ok) {
        return err_errno(err, failed, "map %s", path);
    }
    *ret = (struct mark){ .io = io, .at = at };
    return true;
}

/* Write a whole new mark to the file, and sync it. */
static bool write_new(const struct journal_io *io, const char *path, const struct format_mark *m,
                      struct err *err)
{
    unsigned char bytes[FORMAT_MARK_BYTES] = { 0 };
    struct words w = { .durable_turned = ~UINT64_C(0),
                       .state = FORMAT_MARK_OPEN,
                       .void_turned = ~UINT64_C(0) };
    int fd = io->open(io->ctx, path, O_RDWR | O_CREAT | O_TRUNC);

    if (fd < 0) {
        return err_errno(err, errno, "create %s", path);
    }
    format_put_mark(m, bytes);
    memcpy(bytes + FORMAT_MARK_DYNAMIC, &w, sizeof(w));

    bool ok = io->pwrite(io->ctx, fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) &&
              io->fdatasync(io->ctx, fd) == 0;
    int failed = errno;

    io->close(io->ctx, fd);
    return ok ? true : err_errno(err, failed, "write %s", path);
}

bool mark_create(const struct journal_io *io, const char *dir, const struct format_mark *m,
                 struct mark *ret, struct err *err)
{
    struct folder_path path;

    return folder_path(&path, err, "%s/mark", dir) && write_new(io, path.text, m, err) &&
           map(io, path.text, true, ret, err);
}

bool mark_open(const struct journal_io *io, const char *dir, bool writable, struct mark *ret,
               struct err *err)
{
    struct folder_path path;

    return folder_path(&path, err, "%s/mark", dir) && map(io, path.text, writable, ret, err);
}

void mark_close(struct mark *m)
{
    if (m->at) {
        m->io->unmap(m->io->ctx, m->at, FORMAT_MARK_BYTES);
        m->at = NULL;
    }
}

bool mark_get(const struct mark *m, struct format_mark *ret)
{
    return format_get_mark((struct slice){ .ptr = (const char *)m->at, .len = FORMAT_MARK_DYNAMIC },
                           ret);
}

void mark_put(struct mark *m, const struct format_mark *value)
{
    format_put_mark(value, m->at);
}

/* Two copies: the writer may have died between them, and of a flipped bit the lower is safe. */
uint64_t mark_durable(const struct mark *m)
{
    const struct words *w = words_of(m);
    uint64_t turned = ~__atomic_load_n(&w->durable_turned, __ATOMIC_ACQUIRE);
    uint64_t plain = __atomic_load_n(&w->durable, __ATOMIC_ACQUIRE);

    return plain < turned ? plain : turned;
}

static void wake(struct words *w)
{
    (void)__atomic_add_fetch(&w->changes, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &w->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The segment first: who sees the new sequence looks for it in the right file. */
void mark_move(struct mark *m, uint64_t durable_seq, uint64_t segment_first)
{
    struct words *w = words_of(m);

    __atomic_store_n(&w->segment, segment_first, __ATOMIC_RELEASE);
    __atomic_store_n(&w->durable, durable_seq, __ATOMIC_RELEASE);
    __atomic_store_n(&w->durable_turned, ~durable_seq, __ATOMIC_RELEASE);
    wake(w);
}

uint32_t mark_state(const struct mark *m)
{
    return __atomic_load_n(&words_of(m)->state, __ATOMIC_ACQUIRE);
}

void mark_set_state(struct mark *m, uint32_t state)
{
    __atomic_store_n(&words_of(m)->state, state, __ATOMIC_RELEASE);
    wake(words_of(m));
}

uint64_t mark_void(const struct mark *m)
{
    const struct words *w = words_of(m);

    return w->void_turned == ~w->void_from ? w->void_from : 0;
}

void mark_set_void(struct mark *m, uint64_t seq)
{
    words_of(m)->void_turned = ~seq;
    words_of(m)->void_from = seq;
}

void mark_get_losses(const struct mark *m, struct mark_losses *ret)
{
    const struct words *w = words_of(m);

    *ret = (struct mark_losses){
        .count = w->lost,
        .first_us = w->lost_first_us,
        .last_us = w->lost_last_us,
        .gap_seq = w->gap_seq,
        .gap_count = w->gap_count,
    };
    memcpy(ret->cause, w->lost_cause, sizeof(ret->cause) - 1);
}

void mark_set_losses(struct mark *m, const struct mark_losses *l)
{
    struct words *w = words_of(m);

    w->gap_seq = l->gap_seq;
    w->gap_count = l->gap_count;
    w->lost_first_us = l->first_us;
    w->lost_last_us = l->last_us;
    memcpy(w->lost_cause, l->cause, sizeof(w->lost_cause));
    w->lost = l->count;
}

bool mark_sync(struct mark *m, struct err *err)
{
    if (m->io->sync_map(m->io->ctx, m->at, FORMAT_MARK_BYTES) < 0) {
        return err_errno(err, errno, "sync the mark");
    }
    return true;
}

/* Sleep until the word is not `seen`, or left_ms; where futex is refused, a short sleep. */
static void sleep_on(uint32_t *word, uint32_t seen, int64_t left_ms)
{
    struct timespec ts = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };

    if (syscall(SYS_futex, word, FUTEX_WAIT, seen, &ts, NULL, 0) < 0 && errno != EAGAIN &&
        errno != EINTR && errno != ETIMEDOUT) {
        left_ms = left_ms < POLL_MS ? left_ms : POLL_MS;
        ts = (struct timespec){ .tv_nsec = left_ms * 1000000 };
        (void)nanosleep(&ts, NULL);
    }
}

bool mark_wait(const struct mark *m, uint64_t seen, uint32_t seen_state, int64_t timeout_ms)
{
    struct words *w = words_of(m);
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;

    for (;;) {
        uint32_t changes = __atomic_load_n(&w->changes, __ATOMIC_ACQUIRE);

        if (mark_durable(m) != seen || mark_state(m) != seen_state) {
            return true;
        }

        int left_ms = clock_left_ms(deadline_ms);

        if (left_ms == 0) {
            return false;
        }
        sleep_on(&w->changes, changes, left_ms);
    }
}
