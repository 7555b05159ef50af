#include "collector/journal/segment.h"

#include <errno.h>
#include <fcntl.h>

#include "collector/journal/folder.h"

enum { AHEAD_BYTES = 512 * 1024 }; /* a commit in ten pays for it, under the heaviest load */

static bool is_full(int errno_value)
{
    return errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EFBIG;
}

/* As err_errno(), with a code that tells a full disk from a broken one. */
static bool disk_error(struct err *err, const char *what)
{
    int value = errno;

    (void)err_errno(err, value, "%s segment", what);
    err->code = is_full(value) ? ERR_AGAIN : ERR_IO;
    return false;
}

static bool write_all(const struct segment *s, struct slice bytes, uint64_t at, struct err *err)
{
    while (bytes.len > 0) {
        ssize_t n = s->io->pwrite(s->io->ctx, s->fd, bytes.ptr, bytes.len, at);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return disk_error(err, "write");
        }
        bytes.ptr += n;
        bytes.len -= (size_t)n;
        at += (uint64_t)n;
    }
    return true;
}

/* Reserve the room; a file system that cannot only makes appends slower. */
static bool reserve(const struct segment *s, struct err *err)
{
    int done;

    do {
        done = s->io->fallocate(s->io->ctx, s->fd, s->size);
    } while (done < 0 && errno == EINTR);
    if (done < 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
        return disk_error(err, "reserve");
    }
    return true;
}

static bool fill(struct segment *s, const struct format_head *head, struct slice carried,
                 struct err *err)
{
    unsigned char bytes[FORMAT_HEAD_BYTES];

    format_put_head(head, bytes);
    if (!reserve(s, err) ||
        !write_all(s, (struct slice){ .ptr = (const char *)bytes, .len = sizeof(bytes) }, 0, err) ||
        !write_all(s, carried, FORMAT_HEAD_BYTES, err)) {
        return false;
    }
    if (s->io->fdatasync(s->io->ctx, s->fd) < 0) {
        return disk_error(err, "sync");
    }
    s->end = FORMAT_HEAD_BYTES + carried.len;
    s->durable = s->end;
    return true;
}

/* Data before name, name before folder. */
static bool publish(const struct journal_io *io, const char *dir, const char *from, const char *to,
                    struct err *err)
{
    if (io->rename(io->ctx, from, to) < 0 || io->sync_dir(io->ctx, dir) < 0) {
        (void)disk_error(err, "name");
        (void)!io->unlink(io->ctx, to); /* if it stays: an empty segment, and the right name */
        return false;
    }
    return true;
}

bool segment_create(const struct journal_io *io, const char *dir, const struct format_head *head,
                    struct slice carried, uint64_t size_bytes, struct segment *ret, struct err *err)
{
    struct folder_path path;
    struct folder_path unborn;
    struct segment s = { .io = io, .first_seq = head->first_seq, .size = size_bytes };

    if (!folder_segment_path(dir, head->first_seq, &path, err) ||
        !folder_path(&unborn, err, "%s.new", path.text)) {
        return false;
    }
    s.fd = io->open(io->ctx, unborn.text, O_RDWR | O_CREAT | O_TRUNC);
    if (s.fd < 0) {
        return disk_error(err, "create");
    }
    if (!fill(&s, head, carried, err) || !publish(io, dir, unborn.text, path.text, err)) {
        io->close(io->ctx, s.fd);
        (void)!io->unlink(io->ctx, unborn.text); /* else the next writer removes it */
        return false;
    }
    *ret = s;
    return true;
}

/* Write the bytes from `from` to the end again, as they are read. */
static bool write_again(struct segment *s, uint64_t from, struct err *err)
{
    char bytes[16 * 1024];

    while (from < s->end) {
        uint64_t left = s->end - from;
        ssize_t n = s->io->pread(s->io->ctx, s->fd, bytes,
                                 left < sizeof(bytes) ? left : sizeof(bytes), from);

        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return disk_error(err, "read");
        }
        if (!write_all(s, (struct slice){ .ptr = bytes, .len = (size_t)n }, from, err)) {
            return false;
        }
        from += (uint64_t)n;
    }
    return true;
}

bool segment_reopen(const struct journal_io *io, const char *dir, const struct segment_place *at,
                    uint64_t size_bytes, struct segment *ret, struct err *err)
{
    struct folder_path path;
    struct segment s = { .io = io, .first_seq = at->first_seq, .end = at->end, .size = size_bytes };
    bool failed = false;

    if (!folder_segment_path(dir, at->first_seq, &path, err)) {
        return false;
    }
    s.fd = io->open(io->ctx, path.text, O_RDWR);
    if (s.fd < 0) {
        return disk_error(err, "open");
    }
    if (at->end < size_bytes && !reserve(&s, err)) {
        failed = err->code != ERR_AGAIN;
        s.size =
            s.end; /* the disk is full: the next commit is told so, when it needs another one */
    }
    if (failed || !write_again(&s, at->durable, err) || !segment_sync(&s, err)) {
        io->close(io->ctx, s.fd);
        return false;
    }
    *ret = s;
    return true;
}

bool segment_write(struct segment *s, struct slice frames, struct err *err)
{
    if (!write_all(s, frames, s->end, err)) {
        s->failed = true;
        return false;
    }
    s->end += frames.len;
    return true;
}

void segment_write_ahead(struct segment *s)
{
    static const char zeros[AHEAD_BYTES];
    uint64_t to = s->end;
    uint64_t until = to + AHEAD_BYTES < s->size ? to + AHEAD_BYTES : s->size;

    if (to > s->zeroed && until > to) {
        s->zeroed = until;
        (void)!s->io->pwrite(s->io->ctx, s->fd, zeros, until - to, to); /* only speed is lost */
    }
}

bool segment_sync(struct segment *s, struct err *err)
{
    if (s->io->fdatasync(s->io->ctx, s->fd) < 0) {
        s->failed = true;
        return disk_error(err, "sync");
    }
    s->durable = s->end;
    return true;
}

bool segment_read_unsynced(struct segment *s, char *at, struct err *err)
{
    uint64_t from = s->durable;

    while (from < s->end) {
        ssize_t n = s->io->pread(s->io->ctx, s->fd, at, s->end - from, from);

        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return disk_error(err, "read back");
        }
        at += n;
        from += (uint64_t)n;
    }
    return true;
}

void segment_close(struct segment *s)
{
    if (s->fd >= 0) {
        if (!s->failed) { /* else what is settled may be in the page cache alone */
            (void)!s->io->truncate(s->io->ctx, s->fd, s->end);
        }
        s->io->close(s->io->ctx, s->fd);
    }
    *s = SEGMENT_NONE;
}
