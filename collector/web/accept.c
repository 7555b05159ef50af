/*
 * Who accepts a listener's connections, and shares them out to its daemons in turns.
 * Left to themselves, libmicrohttpd's threads race for them: whichever is awake takes
 * a burst whole, and is the only one that works from then on.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "collector/base/fs.h"
#include "collector/web/server.h"

enum {
    STACK_BYTES = 64 * 1024,
    PAUSE_NS = 100 * 1000 * 1000, /* while there is no descriptor left for one more */
};

static void accept_one(const struct listener *l, struct MHD_Daemon *to)
{
    struct sockaddr_storage from = { 0 };
    socklen_t len = sizeof(from);
    int fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) { /* MHD closes it, also one that it does not take */
        (void)MHD_add_connection(to, fd, (const struct sockaddr *)&from, len);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    }
}

/* Until the socket is shut down. */
static void *accept_all(void *arg)
{
    const struct listener *l = arg;
    struct pollfd comes = { .fd = l->fd, .events = POLLIN };

    for (size_t turn = 0; (comes.revents & POLLHUP) == 0; turn++) {
        if (poll(&comes, 1, -1) > 0) {
            accept_one(l, l->daemons[turn % l->n_daemons]);
        }
    }
    return NULL;
}

bool accept_start(struct listener *l, struct err *err)
{
    pthread_attr_t attr;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);

    int failed = pthread_create(&l->accepting, &attr, accept_all, l);

    (void)pthread_attr_destroy(&attr);
    return failed == 0 ? true : err_errno(err, failed, "listen on %s", l->spec.host);
}

void accept_stop(struct listener *l)
{
    (void)shutdown(l->fd, SHUT_RDWR);
    (void)pthread_join(l->accepting, NULL);
    fs_closep(&l->fd);
}
