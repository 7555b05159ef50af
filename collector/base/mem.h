/*
 * mem: allocation that never returns NULL.
 *
 * For small, fixed-size objects only: when these fail the process is beyond
 * repair, so it logs and aborts, and the supervisor restarts it; the journal
 * makes that safe. Anything whose size comes from outside goes through an
 * arena, whose limit is an ordinary, tested error (ERR_TOO_BIG).
 */
#pragma once

#include <stddef.h>

/* Zeroed array of n objects; owned by the caller, release with free(). */
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* A copy of the text; owned by the caller. */
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

/* p with room for size bytes, which may have moved; owned by the caller. */
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
