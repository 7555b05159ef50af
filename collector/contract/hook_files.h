/* hook_files: the files that a hooks path names. */
#pragma once

#include "collector/base/arena.h"
#include "collector/base/err.h"

enum { HOOK_FILES_MAX = 1024 }; /* of one folder */

/*
 * The file `path`, or, when it is a folder, its *.yaml and *.yml files in lexical
 * order. The list and its strings are in the arena.
 * Errors: ERR_IO (not there, not readable); ERR_TOO_BIG.
 */
bool hook_files_list(const char *path, struct arena *a, const char *const **ret, size_t *ret_n,
                     struct err *err) MUST_CHECK;
