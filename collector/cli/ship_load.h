/* ship_load: `ship --source kafka`, with one configuration. */
#pragma once

#include <signal.h>

#include "collector/base/config.h"
#include "sinks/audit.h"

/* Are both sinks configured that it takes? False (err): ERR_INVALID, which one is not. */
bool load_configured(const struct config *c, struct err *err) MUST_CHECK;

/*
 * Load until a signal of `set`, which *ret_signal is then, or (once) the end: 0. What retention
 * removes is told by `audit`. False (err): the settings are unusable, or a single run gave up.
 */
bool load(const struct config *c, bool once, struct audit *audit, const sigset_t *set,
          int *ret_signal, struct err *err) MUST_CHECK;
