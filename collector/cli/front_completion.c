#include "collector/cli/front.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/slice.h"

#define CONTRACTS "sre" /* what contract_names() has, which the front does not link */
#define SOURCES "journals kafka"
#define GLOBAL_OPTIONS "--config --state --json --color --help"

/* The words of all commands, parted by blanks. */
static void put_names(void)
{
    for (size_t i = 0; i < front_command_count; i++) {
        (void)printf("%s%s", i > 0 ? " " : "", front_commands[i].name);
    }
}

/* The next word of *words, without what parts it from those behind; empty at the end. */
static struct slice next_word(const char **words)
{
    const char *at = *words + strspn(*words, " ");
    size_t n = strcspn(at, " ");

    *words = at + n;
    return (struct slice){ .ptr = at, .len = n };
}

/* Cut the "=" of an option that takes a value; whether it had one. */
static bool cut_value(struct slice *word)
{
    bool has = word->len > 0 && word->ptr[word->len - 1] == '=';

    word->len -= has ? 1 : 0;
    return has;
}

static void put_cases(const char *indent)
{
    for (size_t i = 0; i < front_command_count; i++) {
        const char *words = front_commands[i].words;
        struct slice word = next_word(&words);

        if (word.len == 0) {
            continue;
        }
        (void)printf("%s%s) words=\"", indent, front_commands[i].name);
        for (; word.len > 0; word = next_word(&words)) {
            (void)cut_value(&word);
            (void)printf("%" SLICE_FMT " ", SLICE_ARG(word));
        }
        (void)printf("$words\" ;;\n");
    }
}

/* bash; zsh reads it too. */
static void put_bash(void)
{
    (void)printf(
        "_hooktrail() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i\n"
        "    local words=\"" GLOBAL_OPTIONS "\"\n"
        "    case $prev in\n"
        "    --color) COMPREPLY=($(compgen -W 'auto always never' -- \"$cur\")); return ;;\n"
        "    --contract) COMPREPLY=($(compgen -W '" CONTRACTS "' -- \"$cur\")); return ;;\n"
        "    --source) COMPREPLY=($(compgen -W '" SOURCES "' -- \"$cur\")); return ;;\n"
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

/*
 * By zsh's bashcompinit. The first line makes a function of the file when it stands in $fpath;
 * the last one completes by that function's first call, which has only defined the real one.
 */
static void put_zsh(void)
{
    (void)printf("#compdef hooktrail\n"
                 "autoload -U +X bashcompinit && bashcompinit\n");
    put_bash();
    (void)printf("[[ $funcstack[1] != _hooktrail ]] || _bash_complete -o default -F _hooktrail\n");
}

/* Options without their dashes, and subcommands, of `command`. */
static void put_fish_words(const char *command, const char *words)
{
    for (struct slice word = next_word(&words); word.len > 0; word = next_word(&words)) {
        bool option = word.ptr[0] == '-';
        const char *value = cut_value(&word) ? " -r" : "";

        word.ptr += option ? 2 : 0;
        word.len -= option ? 2 : 0;
        if (slice_equal(word, SLICE("contract"))) {
            value = " -x -a '" CONTRACTS "'";
        } else if (slice_equal(word, SLICE("source"))) {
            value = " -x -a '" SOURCES "'";
        }
        (void)printf("complete -c hooktrail -n '__fish_seen_subcommand_from %s' %s %" SLICE_FMT
                     "%s\n",
                     command, option ? "-l" : "-f -a", SLICE_ARG(word), value);
    }
}

/* In single quotes, as fish reads them. */
static void put_fish_quoted(const char *text)
{
    (void)putchar('\'');
    for (; *text != '\0'; text++) {
        (void)printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    (void)putchar('\'');
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

        (void)printf("complete -c hooktrail -f -n __fish_use_subcommand -a %s -d ", c->name);
        put_fish_quoted(c->summary);
        (void)putchar('\n');
        put_fish_words(c->name, c->words);
    }
}

int front_completion(int argc, char **argv)
{
    const char *shell = argc == 2 ? argv[1] : "";

    if (strcmp(shell, "bash") == 0) {
        put_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        put_zsh();
    } else if (strcmp(shell, "fish") == 0) {
        put_fish();
    } else {
        (void)fprintf(stderr, "hooktrail completion: name one shell: bash, zsh or fish\n");
        return FRONT_USAGE;
    }
    return fflush(stdout) == 0 ? FRONT_DONE : FRONT_FAILED;
}
