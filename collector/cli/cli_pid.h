/*
 * cli_pid: STATE/run/ROLE.pid, by which `status` knows what runs.
 *
 * A role writes it when it holds what no second one may hold (the journal, a
 * lock, a listener), and removes it at its end; after a kill it stays, and tells
 * that the role died.
 * Thread: the main thread.
 */
#pragma once

#include "collector/base/err.h"

/* Write our pid; the folder is made where there is none, the state folder is not. */
bool pid_write(const char *state_dir, const char *role, struct err *err) MUST_CHECK;
/* What the file says; 0 where there is none. */
long pid_read(const char *state_dir, const char *role);
void pid_remove(const char *state_dir, const char *role);
