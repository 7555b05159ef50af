/* ship_load: `ship --source kafka`, with one configuration. */
#pragma once

#include <signal.h>

#include "collector/base/config.h"
#include "sinks/audit.h"

/* Are both sinks configured that it takes? False (err): ERR_INVALID, which one is not. */
bool load_configured(const struct config *c, struct err *err) MUST_CHECK;

struct load {
    const struct config *config;
    bool once;           /* end when all that is there has been loaded */
    struct audit *audit; /* tells what retention removes */
    const sigset_t *set; /* of signals, which are blocked */
};

/*
 * Load until a signal of the set, which *ret_signal is then, or (once) the end: 0.
 * False (err): the settings are unusable, or a single run gave up.
 */
bool load(const struct load *what, int *ret_signal, struct err *err) MUST_CHECK;
