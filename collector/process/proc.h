/*
 * proc: what the kernel tells of a process in /proc.
 *
 * Every answer may be old when it arrives: a process forks, ends, and its number
 * goes to another. start_ticks, together with the number, names one for good.
 * Safe from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/base/cleanup.h"

/* Where one process stands. */
struct proc_stat {
    pid_t pid;
    pid_t ppid;
    pid_t group;
    pid_t session;
    char state;           /* 'Z': ended and not reaped yet, 'X': gone */
    uint64_t start_ticks; /* since boot; field 22 of /proc/PID/stat */
};

/* A growing list of process numbers. The zero value is the empty list. */
struct pids {
    pid_t *at;
    size_t n;
    size_t cap;
};

/* Append pid, also when it is there already. */
void pids_add(struct pids *p, pid_t pid);
bool pids_has(const struct pids *p, pid_t pid);
void pids_done(struct pids *p); /* for CLEANUP too */

/* False when there is no such process. */
bool proc_stat(pid_t pid, struct proc_stat *ret) MUST_CHECK;

/* True when it runs, sleeps or is stopped; false when it has ended. */
bool proc_alive(const struct proc_stat *s);

enum { PROC_TAG_SIZE = 128 }; /* of a PROCESS_TAG, with the NUL */

enum proc_tag_result {
    PROC_TAG_FOUND,
    PROC_TAG_NONE,    /* it has an environment without a tag, or is not ours to look into */
    PROC_TAG_UNKNOWN, /* no environment now: it becomes another program, or ends */
};

/* The value of PROCESS_TAG in the environment that the process was started with. */
enum proc_tag_result proc_tag(pid_t pid, char ret_tag[PROC_TAG_SIZE]);

/* The timer slack of a process; false when it is gone, or not ours to ask. */
bool proc_slack(pid_t pid, uint64_t *ret_ns) MUST_CHECK;

/*
 * Append the children of pid, of all its threads. A kernel without
 * CONFIG_PROC_CHILDREN is asked by proc_children_scan(), which walks /proc.
 */
void proc_children(pid_t pid, struct pids *ret);
void proc_children_scan(pid_t pid, struct pids *ret);

/* Append every process there is. */
void proc_all(struct pids *ret);

/* Append the numbers in text, which are separated by blanks. */
void proc_parse_pids(const char *text, size_t len, struct pids *ret);
