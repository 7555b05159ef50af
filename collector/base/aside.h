/*
 * aside: a call that has no limit of its own, and that nobody waits for longer than he wants.
 *
 * Looking up a name blocks as long as the resolver likes. Such a call runs on a
 * thread of its own; who waits for it leaves it behind when the time is over, and
 * then all that it works on belongs to that thread, which ends it when it can.
 * At most ASIDE_MOST are under way in a process. Safe from any thread.
 */
#pragma once

#include <stdint.h>

#include "collector/base/err.h"

enum { ASIDE_MOST = 64 };

struct aside_ops {
    void (*work)(void *ctx);
    void (*drop)(void *ctx); /* after work, where nobody waited for it: releases ctx */
};

enum aside_end {
    ASIDE_DONE,    /* ctx is the caller's again */
    ASIDE_LEFT,    /* ctx is not ours any more */
    ASIDE_REFUSED, /* err: not begun; ctx is the caller's still */
};

/* Call ops->work(ctx), and wait until the monotonic `deadline_ms` for its end. */
enum aside_end aside_run(const struct aside_ops *ops, void *ctx, int64_t deadline_ms,
                         struct err *err) MUST_CHECK;
