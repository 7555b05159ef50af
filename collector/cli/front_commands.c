#include "collector/cli/front.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/suggest.h"

enum { COMMANDS_MAX = 32 };

const struct front_command front_commands[] = {
    { "run", NULL, "Run collect, ship and serve on this machine", "" },
    { "trace", "serve", "Show a thread's hooks and tool calls as a timeline",
      "--from= --to= --limit= --all" },
    { "why", "serve", "Say why a hook did or did not fire",
      "--call= --thread= --tool= --event= --at=" },
    { "status", "collect", "Show what runs, what is stored and what waits", "" },
    { "tail", "collect", "Print records as they are written", "--follow --lines= --thread=" },
    { "check", "collect", "Check hook files before they are used",
      "--hooks= --contract= --secrets=" },
    { "dispatch", "collect", "Run one dispatch without a daemon",
      "--hooks= --contract= --secrets= --record= --appinsights=" },
    { "verify", "collect", "Prove that journals are whole and unchanged", "--key-dir= --record=" },
    { "deadletter", "ship", "Show and send again what a sink refused",
      "list show retry drop --all --sink=" },
    { "token", "collect", "Make, list and revoke access tokens",
      "create list revoke --scopes= --expires=" },
    { "config", "collect", "Print the effective configuration", "--get=" },
    { "collect", "collect", "Run hooks and record them (a daemon)", "" },
    { "ship", "ship", "Deliver records to the sinks (a daemon)", "--once --source=" },
    { "serve", "serve", "Answer questions over HTTP (a daemon)", "" },
    { "completion", NULL, "Print a completion script for bash, zsh or fish", "" },
    { "version", NULL, "Print the version", "" },
    { "help", NULL, "Explain a command", "" },
};
const size_t front_command_count = sizeof(front_commands) / sizeof(front_commands[0]);

const struct front_command *front_find(const char *name)
{
    for (size_t i = 0; i < front_command_count; i++) {
        if (strcmp(front_commands[i].name, name) == 0) {
            return &front_commands[i];
        }
    }
    return NULL;
}

int front_unknown(const char *name)
{
    const char *names[COMMANDS_MAX];

    for (size_t i = 0; i < front_command_count; i++) {
        names[i] = front_commands[i].name;
    }

    const char *near = suggest_name(slice_from_cstr(name), names, front_command_count);

    (void)fprintf(stderr, "hooktrail: there is no command '%s'%s%s%s\n", name,
                  near ? "; did you mean '" : "", near ? near : "",
                  near ? "'?" : "; see 'hooktrail help'");
    return FRONT_USAGE;
}

bool front_program(const char *role, char *ret, size_t size, struct err *err)
{
    static const char *const folders[] = { "libexec", "../libexec/hooktrail" };
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (n < 0) {
        return err_errno(err, errno, "/proc/self/exe");
    }
    self[n] = '\0';
    slash = strrchr(self, '/');
    *(slash ? slash : self) = '\0';
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        int len = snprintf(ret, size, "%s/%s/hooktrail-%s", self, folders[i], role);

        if (len > 0 && (size_t)len < size && access(ret, X_OK) == 0) {
            return true;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "there is no hooktrail-%s in %s/libexec nor in %s/%s", role,
                   self, self, folders[1]);
}

int front_exec(const char *role, char *const *args)
{
    char program[PATH_MAX];
    char *words[FRONT_WORDS + 2] = { program };
    struct err err;
    size_t n = 0;

    if (!front_program(role, program, sizeof(program), &err)) {
        (void)fprintf(stderr, "hooktrail: %s\n", err.text);
        return FRONT_FAILED;
    }
    while (args[n] && n < FRONT_WORDS) {
        words[n + 1] = args[n];
        n++;
    }
    if (args[n]) {
        (void)fprintf(stderr, "hooktrail: more than %d arguments\n", FRONT_WORDS);
        return FRONT_USAGE;
    }
    (void)execv(program, words);
    (void)fprintf(stderr, "hooktrail: %s: %s\n", program, strerror(errno));
    return FRONT_FAILED;
}
