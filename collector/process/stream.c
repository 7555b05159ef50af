#include "collector/process/stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Forget all but the last tail_bytes. */
static void keep_tail(struct stream *s)
{
    struct buf *b = s->kept;

    if (b->len_bytes > s->tail_bytes) {
        memmove(b->ptr, b->ptr + b->len_bytes - s->tail_bytes, s->tail_bytes);
        b->len_bytes = s->tail_bytes;
    }
}

/* A buffer that holds two tails moves its bytes once for each tail that comes. */
static enum stream_state add_to_tail(struct stream *s, struct slice bytes)
{
    if (s->tail_bytes == 0) {
        return STREAM_MORE;
    }
    if (bytes.len > s->tail_bytes) {
        bytes.ptr += bytes.len - s->tail_bytes;
        bytes.len = s->tail_bytes;
    }
    if (s->kept->len_bytes + bytes.len > 2 * s->tail_bytes) {
        keep_tail(s);
    }
    buf_add(s->kept, bytes);
    return STREAM_MORE;
}

static enum stream_state add_up_to_limit(struct stream *s, struct slice bytes)
{
    size_t room = s->limit_bytes - s->kept->len_bytes;
    bool over = bytes.len > room;

    bytes.len = over ? room : bytes.len;
    if (s->budget && bytes.len > 0) {
        if (!budget_take(s->budget, bytes.len)) {
            s->over = true;
            return STREAM_NO_ROOM;
        }
        *s->budget_bytes += bytes.len;
    }
    buf_add(s->kept, bytes);
    s->over = over;
    return over ? STREAM_LIMIT : STREAM_MORE;
}

enum stream_state stream_read(struct stream *s, int fd)
{
    char chunk[STREAM_TURN_BYTES];
    ssize_t n = read(fd, chunk, sizeof(chunk));

    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? STREAM_MORE : STREAM_END;
    }
    if (n == 0) {
        return STREAM_END;
    }
    *s->total_bytes += (uint64_t)n;
    if (s->over) {
        return STREAM_MORE;
    }

    struct slice bytes = { .ptr = chunk, .len = (size_t)n };

    return s->limit_bytes == 0 ? add_to_tail(s, bytes) : add_up_to_limit(s, bytes);
}

void stream_finish(struct stream *s)
{
    if (s->limit_bytes == 0) {
        keep_tail(s);
    }
}
