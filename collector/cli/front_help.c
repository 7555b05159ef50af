#include "collector/cli/front.h"

#include <stdio.h>
#include <string.h>

static const char run_help[] =
    "Usage: hooktrail [--config FILE] [--state DIR] run\n"
    "\n"
    "Run collect, ship and serve as child processes: all that one machine needs.\n"
    "A role that ends is started again, after a pause that grows from 0.2 to 30 seconds.\n"
    "SIGHUP makes all of them load hooks and configuration again. SIGTERM and Ctrl-C\n"
    "end them in order: chains that run get 5 seconds, and what was accepted is stored\n"
    "first. A second one, a second later or more, does not wait.\n"
    "\n"
    "Exit codes: 0 ended as asked; 2 refused (a faulty configuration; it runs already);\n"
    "3 could not.\n";

static const char completion_help[] = "Usage: hooktrail completion bash|zsh|fish\n"
                                      "\n"
                                      "Print a completion script. To use it in this shell:\n"
                                      "  bash:  eval \"$(hooktrail completion bash)\"\n"
                                      "  zsh:   eval \"$(hooktrail completion zsh)\"\n"
                                      "  fish:  hooktrail completion fish | source\n";

static int print(const char *text)
{
    return fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? FRONT_DONE : FRONT_FAILED;
}

static int all(void)
{
    (void)printf(
        "Usage: hooktrail [global options] COMMAND ...\n"
        "\n"
        "Hooktrail dispatches an AI agent's hooks and records what each did, or why it did\n"
        "not run.\n"
        "\n");
    for (size_t i = 0; i < front_command_count; i++) {
        (void)printf("  %-11s %s\n", front_commands[i].name, front_commands[i].summary);
    }
    return print("\n"
                 "Global options, before or behind the command:\n"
                 "  --config FILE              instead of $HOOKTRAIL_CONFIG, ./hooktrail.yaml or\n"
                 "                             /etc/hooktrail/hooktrail.yaml\n"
                 "  --state DIR                where journals, keys and the store are\n"
                 "  --json                     print JSON instead of tables\n"
                 "  --color auto|always|never  NO_COLOR is respected\n"
                 "  --help                     explain the command\n"
                 "\n"
                 "Exit codes: 0 done; 1 a negative answer (faults, not verified, nothing found);\n"
                 "2 refused (usage, bad input); 3 could not (I/O, unreachable).\n");
}

int front_help(int argc, char **argv)
{
    if (argc < 2) {
        return all();
    }
    if (argc > 2) {
        (void)fprintf(stderr, "hooktrail help: explains one command, not '%s' too\n", argv[2]);
        return FRONT_USAGE;
    }

    const struct front_command *c = front_find(argv[1]);

    if (!c) {
        return front_unknown(argv[1]);
    }
    if (c->role) {
        char option[] = "--help";
        char *words[] = { argv[1], option, NULL };

        return front_exec(c->role, words);
    }
    if (strcmp(c->name, "run") == 0) {
        return print(run_help);
    }
    if (strcmp(c->name, "completion") == 0) {
        return print(completion_help);
    }
    return all();
}
