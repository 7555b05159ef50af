/* collect_line: a record as one line for people, for `tail`. Thread: the main thread. */
#pragma once

#include "collector/cli/cli.h"

/*
 * Is the record of this thread (empty: any)? *ret_time_us is then its time.
 * What cannot be decoded is not wanted.
 */
bool line_wanted(struct slice record, struct slice thread, int64_t *ret_time_us);

/* Print it on stdout: as it is with --json, else in words. */
void line_print(const struct cli *cli, struct slice record);
