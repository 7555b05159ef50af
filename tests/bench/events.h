/*
 * events: what a benchmark ships, read from a state folder's journal before its clock runs.
 *
 * Every way that is measured beside another gets the same records from here.
 */
#pragma once

#include "sinks/sink.h"

struct events {
    struct slice journal; /* its id */
    struct sink_record *list;
    size_t n;
};

/* All records of the oldest journal under `state_dir`, in order. Ends the program on failure. */
struct events *events_read(const char *state_dir);
void events_free(struct events *e);
void events_freep(struct events **e); /* for CLEANUP */

/* One line on stderr, and exit code 3. */
void die(const struct err *err) __attribute__((noreturn));

/* Processor time of this process until now, in microseconds. */
int64_t cpu_us(void);

/* The middle of n numbers, which are sorted by it. */
double median(double *list, size_t n);
