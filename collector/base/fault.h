/*
 * fault: what is wrong with a file that a person wrote, with its place.
 *
 * Whoever checks such a file (hook documents, hooktrail.yaml) collects all of
 * its faults, so that one run of `hooktrail check` tells everything.
 * A warning is about what is legal and surely unmeant.
 */
#pragma once

#include "collector/base/arena.h"

enum fault_level { FAULT_WARNING, FAULT_ERROR };

struct fault {
    enum fault_level level;
    const char *file; /* as the person named it; in the list's arena */
    size_t line;      /* from 1; 0 when the place is the whole file */
    const char *key;  /* path of the key, e.g. "spec.hook.matcher"; NULL: none */
    const char *text; /* one line: what is wrong and what is allowed */
    struct fault *next;
};

struct faults {
    struct arena arena;  /* holds the list and its texts */
    struct fault *first; /* files in the order in which they were told of, each one's by line */
    size_t errors;
    size_t warnings;
};

/* An empty list. */
void faults_init(struct faults *f);
void faults_done(struct faults *f);

/*
 * Add one. All strings are copied; key may be NULL. A text that begins with the file's
 * name, as those of struct err do, is kept without it.
 */
void faults_add(struct faults *f, enum fault_level level, const char *file, size_t line,
                const char *key, const char *fmt, ...) PRINTF_LIKE(6, 7);
