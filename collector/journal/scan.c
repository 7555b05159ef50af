#include "collector/journal/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/journal/folder.h"

enum { WINDOW_BYTES = 64 * 1024 }; /* read at once; more only for a longer frame */

bool scan_open(const struct journal_io *io, const char *dir,
               const unsigned char journal[FORMAT_ID_BYTES], uint64_t first_seq, struct scan *ret,
               struct err *err)
{
    struct folder_path path;
    struct scan s = { .io = io, .offset = FORMAT_HEAD_BYTES, .behind = FORMAT_HEAD_BYTES };

    memcpy(s.journal, journal, FORMAT_ID_BYTES);
    if (!folder_segment_path(dir, first_seq, &path, err)) {
        return false;
    }
    s.fd = io->open(io->ctx, path.text, O_RDONLY);
    if (s.fd < 0) {
        int failed = errno;

        (void)err_errno(err, failed, "open %s", path.text);
        err->code = failed == ENOENT ? ERR_NOT_FOUND : ERR_IO;
        return false;
    }
    *ret = s;
    return true;
}

void scan_close(struct scan *s)
{
    if (s->fd >= 0) {
        s->io->close(s->io->ctx, s->fd);
    }
    free(s->window);
    *s = SCAN_NONE;
}

/* Fill the window from `from` on with n bytes, fewer at the end of the file. */
static bool fill(struct scan *s, uint64_t from, size_t n, struct err *err)
{
    if (n > s->window_cap) {
        s->window = xrealloc(s->window, n);
        s->window_cap = n;
    }
    s->window_at = from;
    s->window_len = 0;
    while (s->window_len < n) {
        ssize_t got = s->io->pread(s->io->ctx, s->fd, s->window + s->window_len, n - s->window_len,
                                   from + s->window_len);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_errno(err, errno, "read segment");
        }
        if (got == 0) {
            break;
        }
        s->window_len += (size_t)got;
    }
    return true;
}

/* The bytes from `from` on that are in the window. */
static struct slice seen(const struct scan *s, uint64_t from)
{
    if (from < s->window_at || from >= s->window_at + s->window_len) {
        return (struct slice){ 0 };
    }

    size_t skip = (size_t)(from - s->window_at);

    return (struct slice){ .ptr = s->window + skip, .len = s->window_len - skip };
}

static bool only_zeros(struct slice s)
{
    return s.len == 0 || (s.ptr[0] == 0 && memcmp(s.ptr, s.ptr + 1, s.len - 1) == 0);
}

/* What stands at `from`; reads as much as that takes. */
static enum scan_at look(struct scan *s, uint64_t from, struct format_frame *ret, size_t *ret_bytes,
                         struct err *err)
{
    size_t want = WINDOW_BYTES;

    for (int tries = 0; tries < 3; tries++) { /* the head tells how much the second read takes */
        switch (format_get_frame(s->journal, seen(s, from), ret, ret_bytes)) {
        case FORMAT_FRAME:
            return SCAN_FRAME;
        case FORMAT_EMPTY:
            return SCAN_END;
        case FORMAT_BAD:
            return SCAN_BAD;
        case FORMAT_SHORT:
            break;
        }
        want = *ret_bytes > want ? *ret_bytes : want;
        if (tries < 2 && !fill(s, from, want, err)) {
            return SCAN_ERROR;
        }
    }
    /* The file ends here: among zeros, or inside a frame. */
    return only_zeros(seen(s, from)) ? SCAN_END : SCAN_BAD;
}

bool scan_head(struct scan *s, struct format_head *ret)
{
    struct err err;

    return fill(s, 0, FORMAT_HEAD_BYTES, &err) &&
           format_get_head((struct slice){ .ptr = s->window, .len = s->window_len }, ret) &&
           memcmp(ret->journal, s->journal, FORMAT_ID_BYTES) == 0;
}

enum scan_at scan_next(struct scan *s, struct format_frame *ret, struct err *err)
{
    size_t bytes = 0;
    enum scan_at at = look(s, s->offset, ret, &bytes, err);

    if (at == SCAN_FRAME) {
        s->offset += bytes;
        s->behind = s->offset;
    }
    return at;
}

void scan_refresh(struct scan *s)
{
    s->window_len = 0;
}

bool scan_resync(struct scan *s, uint64_t at_least)
{
    int64_t size = s->io->size(s->io->ctx, s->fd);

    for (uint64_t from = s->offset + 8; (int64_t)(from + FORMAT_FRAME_HEAD) <= size; from += 8) {
        struct format_frame f;
        struct err err;
        size_t bytes;

        if (seen(s, from).len < FORMAT_FRAME_HEAD && !fill(s, from, WINDOW_BYTES, &err)) {
            from = (from | 4095) + 1 - 8; /* a page that the disk does not give */
            continue;
        }
        /* A frame's type and zeros first: a checksum at every eighth byte would take minutes. */
        if (!format_may_be_frame(seen(s, from))) {
            continue;
        }
        if (look(s, from, &f, &bytes, &err) == SCAN_FRAME && f.seq >= at_least) {
            s->offset = from;
            return true;
        }
    }
    return false;
}

bool scan_only_zeros(struct scan *s)
{
    for (uint64_t from = s->offset;; from += s->window_len) {
        struct err err;

        if (!fill(s, from, WINDOW_BYTES, &err)) {
            return false;
        }
        if (s->window_len == 0) {
            return true;
        }
        if (!only_zeros((struct slice){ .ptr = s->window, .len = s->window_len })) {
            return false;
        }
    }
}
