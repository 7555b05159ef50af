/*
 * cli_admin: what a command changed, as an admin record in the journal of the role `cli`.
 *
 * The journal is opened before the change, so that nothing is changed which could not be
 * recorded, and others wait for it, a few seconds at most.
 * Thread: the main thread.
 */
#pragma once

#include "collector/base/config.h"
#include "collector/journal/journal.h"

/* Errors: ERR_AGAIN: another command has it for long; ERR_IO. */
bool admin_open(const struct config *c, struct journal **ret, struct err *err) MUST_CHECK;
/* Append one, durably. The actor is our uid; `details` is a JSON object. */
bool admin_record(struct journal *j, const struct config *c, const char *action,
                  struct slice details, struct err *err) MUST_CHECK;
/* Accepts NULL. */
void admin_close(const struct config *c, struct journal *j);
