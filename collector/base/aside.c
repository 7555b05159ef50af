#include "collector/base/aside.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "collector/base/mem.h"

static _Atomic int under_way;

struct aside {
    const struct aside_ops *ops;
    void *ctx;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    bool ended;
    bool left;
};

static void free_aside(struct aside *a)
{
    (void)pthread_cond_destroy(&a->changed);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
    under_way--;
}

static void *work(void *arg)
{
    struct aside *a = arg;

    a->ops->work(a->ctx);
    (void)pthread_mutex_lock(&a->lock);

    bool left = a->left;

    a->ended = true;
    (void)pthread_cond_signal(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    if (left) {
        a->ops->drop(a->ctx);
        free_aside(a);
    }
    return NULL;
}

/* True when it has ended; else the thread has the aside for itself from now on. */
static bool wait_for(struct aside *a, int64_t deadline_ms)
{
    const struct timespec until = { .tv_sec = deadline_ms / 1000,
                                    .tv_nsec = deadline_ms % 1000 * 1000000L };
    int failed = 0;

    (void)pthread_mutex_lock(&a->lock);
    while (!a->ended && failed == 0) {
        failed = pthread_cond_clockwait(&a->changed, &a->lock, CLOCK_MONOTONIC, &until);
    }

    bool ended = a->ended;

    a->left = !ended;
    (void)pthread_mutex_unlock(&a->lock);
    return ended;
}

enum aside_end aside_run(const struct aside_ops *ops, void *ctx, int64_t deadline_ms,
                         struct err *err)
{
    pthread_t thread;

    if (++under_way > ASIDE_MOST) {
        under_way--;
        (void)err_set(err, ERR_AGAIN, "%d calls that were given up have not ended yet", ASIDE_MOST);
        return ASIDE_REFUSED;
    }

    struct aside *a = xcalloc(1, sizeof(*a));

    a->ops = ops;
    a->ctx = ctx;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->changed, NULL);

    int code = pthread_create(&thread, NULL, work, a);

    if (code != 0) {
        free_aside(a);
        (void)err_errno(err, code, "a thread");
        return ASIDE_REFUSED;
    }
    if (!wait_for(a, deadline_ms)) {
        (void)pthread_detach(thread);
        return ASIDE_LEFT;
    }
    (void)pthread_join(thread, NULL);
    free_aside(a);
    return ASIDE_DONE;
}
