#include "collector/journal/mark.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "collector/journal/crc32c.h"
#include "collector/journal/folder.h"

/* The words that change, as they lie at FORMAT_MARK_DYNAMIC; all little-endian machines. */
struct words {
    uint64_t durable;
    uint64_t durable_turned;
    uint32_t changes;
    uint32_t state;
    uint64_t segment;
    uint64_t void_from;
    uint64_t void_turned;
    uint64_t retired;
    uint64_t retired_turned;
    struct loss_words {
        uint64_t turn;
        struct mark_losses losses;
        uint32_t crc;
        uint32_t zero;
    } losses[2];
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the mark is mapped as it lies on disk");
static_assert(offsetof(struct words, losses) == FORMAT_MARK_LOSSES - FORMAT_MARK_DYNAMIC &&
                  sizeof(struct loss_words) == 96 && offsetof(struct loss_words, crc) == 88,
              "the words stand as format.h says");

enum { POLL_MS = 20 }; /* between looks, where the kernel has no futex for us */

static bool is_whole(const struct mark *m)
{
    return m->io->size(m->io->ctx, m->fd) >= FORMAT_MARK_BYTES;
}

/* What a reader may look at. */
static const struct words *words_of(const struct mark *m)
{
    static const struct words none = { 0 };

    return is_whole(m) ? (const void *)(m->at + FORMAT_MARK_DYNAMIC) : &none;
}

/* What a writer may change; NULL when the file was cut and cannot be made whole now. */
static struct words *begin_change(struct mark *m)
{
    struct words *own = (void *)(m->own + FORMAT_MARK_DYNAMIC);

    if (!is_whole(m)) {
        own->retired = 0; /* another one's word: not known here */
        own->retired_turned = 0;
        if (m->io->pwrite(m->io->ctx, m->fd, m->own, FORMAT_MARK_BYTES, 0) != FORMAT_MARK_BYTES) {
            return NULL;
        }
    }
    return (void *)(m->at + FORMAT_MARK_DYNAMIC);
}

/* n bytes from `from` on were changed. */
static void end_change(struct mark *m, const void *from, size_t n)
{
    memcpy(m->own + ((const unsigned char *)from - m->at), from, n);
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

    if (!ok) {
        io->close(io->ctx, fd);
        return size >= 0 && size < FORMAT_MARK_BYTES
                   ? err_set(err, ERR_CORRUPT, "%s is too short", path)
                   : err_errno(err, failed, "map %s", path);
    }
    *ret = (struct mark){ .io = io, .at = at, .fd = fd };
    if (writable) {
        ret->own = xcalloc(1, FORMAT_MARK_BYTES);
        memcpy(ret->own, at, FORMAT_MARK_BYTES);
    }
    return true;
}

/* Write a whole new mark to the file, and sync it. */
static bool write_new(const struct journal_io *io, const char *path, const struct format_mark *m,
                      struct err *err)
{
    unsigned char bytes[FORMAT_MARK_BYTES] = { 0 };
    struct words w = { .durable_turned = ~UINT64_C(0),
                       .state = FORMAT_MARK_OPEN,
                       .void_turned = ~UINT64_C(0),
                       .retired = 1,
                       .retired_turned = ~UINT64_C(1) };
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
        m->io->close(m->io->ctx, m->fd);
        free(m->own);
        *m = (struct mark){ 0 };
    }
}

bool mark_get(const struct mark *m, struct format_mark *ret)
{
    return is_whole(m) &&
           format_get_mark((struct slice){ .ptr = (const char *)m->at, .len = FORMAT_MARK_DYNAMIC },
                           ret);
}

void mark_put(struct mark *m, const struct format_mark *value)
{
    if (begin_change(m)) {
        format_put_mark(value, m->at);
        end_change(m, m->at, FORMAT_MARK_DYNAMIC);
    }
}

/* Two copies: the writer may have died between them, and of a flipped bit the lower is safe. */
static uint64_t lower_of(const uint64_t *plain_word, const uint64_t *turned_word)
{
    uint64_t turned = ~__atomic_load_n(turned_word, __ATOMIC_ACQUIRE);
    uint64_t plain = __atomic_load_n(plain_word, __ATOMIC_ACQUIRE);

    return plain < turned ? plain : turned;
}

bool mark_sound(const struct mark *m)
{
    const struct words *w = words_of(m);
    struct format_mark ignored;

    return mark_get(m, &ignored) && lower_of(&w->durable, &w->durable_turned) <= FORMAT_SEQ_MAX;
}

uint64_t mark_durable(const struct mark *m)
{
    const struct words *w = words_of(m);
    uint64_t seq = lower_of(&w->durable, &w->durable_turned);

    return seq <= FORMAT_SEQ_MAX ? seq : 0;
}

static void wake(struct words *w)
{
    (void)__atomic_add_fetch(&w->changes, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &w->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The segment first: who sees the new sequence looks for it in the right file. */
void mark_move(struct mark *m, uint64_t durable_seq, uint64_t segment_first)
{
    struct words *w = begin_change(m);

    if (w) {
        __atomic_store_n(&w->segment, segment_first, __ATOMIC_RELEASE);
        __atomic_store_n(&w->durable, durable_seq, __ATOMIC_RELEASE);
        __atomic_store_n(&w->durable_turned, ~durable_seq, __ATOMIC_RELEASE);
        end_change(m, &w->durable, 2 * sizeof(w->durable));
        end_change(m, &w->segment, sizeof(w->segment));
        wake(w);
    }
}

uint32_t mark_state(const struct mark *m)
{
    return __atomic_load_n(&words_of(m)->state, __ATOMIC_ACQUIRE);
}

void mark_set_state(struct mark *m, uint32_t state)
{
    struct words *w = begin_change(m);

    if (w) {
        __atomic_store_n(&w->state, state, __ATOMIC_RELEASE);
        end_change(m, &w->state, sizeof(w->state));
        wake(w);
    }
}

uint64_t mark_void(const struct mark *m)
{
    const struct words *w = words_of(m);

    return w->void_turned == ~w->void_from ? w->void_from : 0;
}

void mark_set_void(struct mark *m, uint64_t seq)
{
    struct words *w = begin_change(m);

    if (w) {
        w->void_turned = ~seq;
        w->void_from = seq;
        end_change(m, &w->void_from, 2 * sizeof(w->void_from));
    }
}

uint64_t mark_retired(const struct mark *m)
{
    const struct words *w = words_of(m);

    return w->retired_turned == ~w->retired && w->retired <= FORMAT_SEQ_MAX ? w->retired : 0;
}

void mark_set_retired(struct mark *m, uint64_t seq)
{
    struct words *w = begin_change(m);

    if (w) {
        w->retired = seq;
        w->retired_turned = ~seq;
        end_change(m, &w->retired, 2 * sizeof(w->retired));
    }
}

static uint32_t crc_of(const struct loss_words *l)
{
    return crc32c(0, (struct slice){ .ptr = (const char *)l, offsetof(struct loss_words, crc) });
}

/* The one of the two that counts; -1: neither is whole. */
static int latest(const struct words *w)
{
    bool a = w->losses[0].crc == crc_of(&w->losses[0]);
    bool b = w->losses[1].crc == crc_of(&w->losses[1]);

    if (a && b) {
        return w->losses[0].turn > w->losses[1].turn ? 0 : 1;
    }
    if (a) {
        return 0;
    }
    return b ? 1 : -1;
}

void mark_get_losses(const struct mark *m, struct mark_losses *ret)
{
    const struct words *w = words_of(m);
    int at = latest(w);

    *ret = at >= 0 ? w->losses[at].losses : (struct mark_losses){ 0 };
    ret->cause[sizeof(ret->cause) - 1] = '\0';
}

/* A writer that dies within leaves the other one as it was. */
void mark_set_losses(struct mark *m, const struct mark_losses *l)
{
    struct words *w = begin_change(m);

    if (!w) {
        return;
    }

    int old = latest(w);
    struct loss_words *next = &w->losses[old == 0 ? 1 : 0];

    __atomic_store_n(&next->crc, ~crc_of(next), __ATOMIC_RELEASE);
    next->turn = old >= 0 ? w->losses[old].turn + 1 : 1;
    next->losses = *l;
    next->zero = 0;
    __atomic_store_n(&next->crc, crc_of(next), __ATOMIC_RELEASE);
    end_change(m, next, sizeof(*next));
}

bool mark_sync(struct mark *m, struct err *err)
{
    if (!is_whole(m)) {
        return true; /* it is made whole by the next change, and is late until then */
    }
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
    struct words *w = (void *)(m->at + FORMAT_MARK_DYNAMIC); /* for the kernel alone */
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;

    for (;;) {
        uint32_t changes = __atomic_load_n(&words_of(m)->changes, __ATOMIC_ACQUIRE);

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
