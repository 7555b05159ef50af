/*
 * stop: asking threads to end, and a pause that hears it.
 *
 * Whoever asks may be any thread; what was asked stays asked.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/base/err.h"

struct stop {
    _Atomic bool asked;
    _Atomic bool ending; /* asked to end once nothing is left to do */
    int fd;              /* owned: an eventfd that is readable once it was asked */
};

/* Nothing is asked yet; stop_done() releases it. */
bool stop_init(struct stop *s, struct err *err) MUST_CHECK;
void stop_done(struct stop *s);

/* Ask; and was it asked? */
void stop_ask(struct stop *s);
bool stop_asked(const struct stop *s);

/* Ask to end when nothing is left to do, or nothing can be done. It wakes nobody from a pause. */
void stop_when_done(struct stop *s);
bool stop_when_done_asked(const struct stop *s);

/* Sleep for pause_ms, or until it is asked; true then. */
bool stop_pause(struct stop *s, int64_t pause_ms);
