/* fake_hooks: shell scripts as hooks, with limits that a test can do with. */
#pragma once

#include "collector/process/process.h"

/*
 * A run of /bin/sh -c script: 10 s, 100 ms of drain, 1 MiB of output, and a tag of
 * its own. The strings live until a thousand more were made.
 */
struct process_spec fake_hook(const char *script);
