/*
 * spawn: make one child, with three pipes and nothing else of ours.
 *
 * posix_spawn(3) leaves the copying of our memory out, however large it is, and
 * tells why a program could not be started. Safe from any thread.
 */
#pragma once

#include "collector/process/orphans.h"

/* A child and our ends of its pipes; -1 where there is none. */
struct spawned {
    pid_t pid;
    int pidfd;
    int in; /* does not block; -1 when the whole input is in the pipe already */
    int out;
    int err;
    uint64_t start_ticks; /* 0 unless asked for */
};

/*
 * Start what spec tells and enter it as r, whose tag is set here.
 * Errors: ERR_IO, with the system's word: no such folder, program or interpreter,
 * no more processes or descriptors. Nothing is left behind then.
 */
bool spawn_child(const struct process_spec *spec, struct active_run *r, struct spawned *ret,
                 struct err *err) MUST_CHECK;

/* Close what is open and forget it. */
void spawned_close(struct spawned *s);
