/*
 * front: `hooktrail`, a small program that starts the one that knows the command.
 *
 * It links libc alone, so that a command is as quick as what it does. What it
 * knows itself: run, help, version, completion.
 */
#pragma once

#include <stddef.h>

#include "collector/base/cleanup.h"
#include "collector/base/err.h"

enum {
    FRONT_DONE = 0,
    FRONT_USAGE = 2,
    FRONT_FAILED = 3,
    FRONT_WORDS = 256, /* of a command line that we build */
};

struct front_command {
    const char *name;
    const char *role;    /* "collect", "serve", "ship"; NULL: the front itself */
    const char *summary; /* one line */
    /* What follows, for completion: "list --all --sink=", with "=" where a value is taken. */
    const char *words;
};

/* All commands, in the order of the help. */
extern const struct front_command front_commands[];
extern const size_t front_command_count;

/* NULL when there is none of that name. */
const struct front_command *front_find(const char *name);

/* "hooktrail: there is no command 'trcae'; did you mean 'trace'?" on stderr; FRONT_USAGE. */
int front_unknown(const char *name);

/*
 * Become the program of a role: its name, then args (NULL-terminated). Returns only
 * when it cannot be started: a message was printed, the result is FRONT_FAILED.
 */
int front_exec(const char *role, char *const *args);

/* The file of a role's program, beside us or where `make install` puts it. */
bool front_program(const char *role, char *ret, size_t size, struct err *err) MUST_CHECK;

enum { FRONT_GLOBALS = 6 }; /* words: three options, each with a value */

/* Global options that were given, to be handed on. */
struct front_globals {
    const char *words[FRONT_GLOBALS];
    size_t n;
};

/* The commands of the front; argv[0] is the name, the result an exit code. */
int front_run(const struct front_globals *g);
int front_help(int argc, char **argv);
int front_completion(int argc, char **argv);
