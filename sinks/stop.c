#include "sinks/stop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "collector/base/fs.h"

bool stop_init(struct stop *s, struct err *err)
{
    s->asked = false;
    s->ending = false;
    s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return s->fd >= 0 || err_errno(err, errno, "eventfd");
}

void stop_done(struct stop *s)
{
    fs_closep(&s->fd);
}

void stop_ask(struct stop *s)
{
    s->asked = true;
    /* It can only be full, and then it is readable already. */
    (void)eventfd_write(s->fd, 1);
}

bool stop_asked(const struct stop *s)
{
    return s->asked;
}

void stop_when_done(struct stop *s)
{
    s->ending = true;
}

bool stop_when_done_asked(const struct stop *s)
{
    return s->ending;
}

bool stop_pause(struct stop *s, int64_t pause_ms)
{
    struct pollfd p = { .fd = s->fd, .events = POLLIN };

    if (pause_ms > 0 && !s->asked) {
        (void)poll(&p, 1, pause_ms > INT_MAX ? INT_MAX : (int)pause_ms);
    }
    return s->asked;
}
