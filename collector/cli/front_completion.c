#include "collector/cli/front.h"

#include <stdio.h>
#include <string.h>

#define GLOBAL_OPTIONS "--config --state --json --color --help"

/* The words of all commands, parted by blanks. */
static void put_names(void)
{
    for (size_t i = 0; i < front_command_count; i++) {
        (void)printf("%s%s", i > 0 ? " " : "", front_commands[i].name);
    }
}

static void put_cases(const char *indent)
{
    for (size_t i = 0; i < front_command_count; i++) {
        if (front_commands[i].options[0] != '\0') {
            (void)printf("%s%s) words=\"%s $words\" ;;\n", indent, front_commands[i].name,
                         front_commands[i].options);
        }
    }
}

/* bash; zsh reads it too, by its bashcompinit. */
static void put_bash(void)
{
    (void)printf(
        "_hooktrail() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i\n"
        "    local words=\"" GLOBAL_OPTIONS "\"\n"
        "    case $prev in\n"
        "    --color) COMPREPLY=($(compgen -W 'auto always never' -- \"$cur\")); return ;;\n"
        "    --contract) COMPREPLY=($(compgen -W 'sre oscova deputyos' -- \"$cur\")); return "
        ";;\n"
        "    --config|--hooks|--secrets|--record|--appinsights|--state|--key-dir)\n"
        "        COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
        "    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")); return ;;\n"
        "    esac\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        case ${COMP_WORDS[i]} in\n"
        "        --config|--state|--color) i=$((i + 1)) ;;\n"
        "        -*) ;;\n"
        "        *) cmd=${COMP_WORDS[i]}; break ;;\n"
        "        esac\n"
        "    done\n"
        "    case $cmd in\n"
        "    ''|help) words=\"");
    put_names();
    (void)printf(" $words\" ;;\n");
    put_cases("    ");
    (void)printf("    esac\n"
                 "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "}\n"
                 "complete -o default -F _hooktrail hooktrail\n");
}

/* Each word of `options` without its dashes, as an option of `command`. */
static void put_fish_options(const char *command, const char *options)
{
    while (*options != '\0') {
        size_t len = strcspn(options, " ");

        (void)printf("complete -c hooktrail -n '__fish_seen_subcommand_from %s' -l %.*s -r\n",
                     command, (int)len - 2, options + 2);
        options += len;
        options += strspn(options, " ");
    }
}

static void put_fish(void)
{
    (void)printf(
        "complete -c hooktrail -l config -r\n"
        "complete -c hooktrail -l state -r\n"
        "complete -c hooktrail -l json\n"
        "complete -c hooktrail -l color -x -a 'auto always never'\n"
        "complete -c hooktrail -l help\n"
        "complete -c hooktrail -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh "
        "fish'\n");
    for (size_t i = 0; i < front_command_count; i++) {
        const struct front_command *c = &front_commands[i];

        (void)printf("complete -c hooktrail -f -n __fish_use_subcommand -a %s -d '%s'\n", c->name,
                     c->summary);
        put_fish_options(c->name, c->options);
    }
}

int front_completion(int argc, char **argv)
{
    const char *shell = argc == 2 ? argv[1] : "";

    if (strcmp(shell, "bash") == 0) {
        put_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        (void)printf("autoload -U +X bashcompinit && bashcompinit\n");
        put_bash();
    } else if (strcmp(shell, "fish") == 0) {
        put_fish();
    } else {
        (void)fprintf(stderr, "hooktrail completion: name one shell: bash, zsh or fish\n");
        return FRONT_USAGE;
    }
    return fflush(stdout) == 0 ? FRONT_DONE : FRONT_FAILED;
}
