/*
 * commands: every command of the role programs, each in a file of its own
 * (ROLE_COMMAND.c). ROLE_main.c lists those of its role.
 */
#pragma once

#include "collector/cli/cli.h"

/* hooktrail-collect */
extern const struct cli_command collect_command;
extern const struct cli_command dispatch_command;
extern const struct cli_command check_command;
extern const struct cli_command config_command;
extern const struct cli_command token_command;
extern const struct cli_command verify_command;
extern const struct cli_command tail_command;
extern const struct cli_command status_command;

/* hooktrail-serve */
extern const struct cli_command serve_command;
extern const struct cli_command trace_command;
extern const struct cli_command why_command;

/* hooktrail-ship */
extern const struct cli_command ship_command;
extern const struct cli_command deadletter_command;

/* In each of them: `version`, written by cli_version.c. */
extern const struct cli_command version_command;
