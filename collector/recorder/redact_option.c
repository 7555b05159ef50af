/*
 * Options whose value is a secret, or has one in it, though their name does not
 * say so: it is known by the program that they are given to.
 *
 *     curl -u user:SECRET   curl -uuser:SECRET   --proxy-user user:SECRET
 *     openssl … -passin pass:SECRET
 *     mysql -pSECRET        sshpass -p SECRET    redis-cli -a SECRET
 */
#include <string.h>

#include "collector/recorder/redact_part.h"

enum {
    COMMAND_MAX_BYTES = 128 /* how far before an option its program is looked for, at most */
};

#define BLANKS " \t"
#define COMMAND_ENDS "\n;|&`("
#define WORD_ENDS BLANKS "\r\n\"'"

/* How an option takes its value. */
enum form {
    FORM_ATTACHED = 1, /* -pSECRET */
    FORM_SEPARATE = 2, /* -p SECRET */
    FORM_BOTH = FORM_ATTACHED | FORM_SEPARATE,
    FORM_LEADING = 4, /* before the first argument that is no option: sshpass -p X ssh -p 22 */
};

static const struct {
    const char *program;
    char letter;
    unsigned forms;
} options[] = {
    { "mysql", 'p', FORM_ATTACHED },
    { "mysqladmin", 'p', FORM_ATTACHED },
    { "mysqldump", 'p', FORM_ATTACHED },
    { "mysqlimport", 'p', FORM_ATTACHED },
    { "mysqlsh", 'p', FORM_ATTACHED },
    { "mariadb", 'p', FORM_ATTACHED },
    { "mariadb-dump", 'p', FORM_ATTACHED },
    { "mariadb-admin", 'p', FORM_ATTACHED },
    { "7z", 'p', FORM_ATTACHED },
    { "7za", 'p', FORM_ATTACHED },
    { "sshpass", 'p', FORM_BOTH | FORM_LEADING },
    { "login", 'p', FORM_BOTH }, /* docker, podman, az, helm registry */
    { "mongo", 'p', FORM_BOTH },
    { "mongosh", 'p', FORM_BOTH },
    { "mongodump", 'p', FORM_BOTH },
    { "mongorestore", 'p', FORM_BOTH },
    { "sqlcmd", 'P', FORM_BOTH },
    { "bcp", 'P', FORM_BOTH },
    { "zip", 'P', FORM_BOTH },
    { "unzip", 'P', FORM_BOTH },
    { "redis-cli", 'a', FORM_SEPARATE },
    { "ldapsearch", 'w', FORM_BOTH },
    { "ldapmodify", 'w', FORM_BOTH },
    { "ldapadd", 'w', FORM_BOTH },
    { "ldapwhoami", 'w', FORM_BOTH },
    { "openssl", 'k', FORM_SEPARATE },
    { "curl", 'u', FORM_ATTACHED }, /* find_login() */
    { "curl", 'U', FORM_BOTH },
};

enum { OPTIONS = sizeof(options) / sizeof(options[0]) };

static bool is_in(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* A line that ends in a backslash goes on in the next. */
static bool ends_command(struct slice text, size_t i)
{
    return is_in(COMMAND_ENDS, text.ptr[i]) &&
           !(text.ptr[i] == '\n' && i > 0 && text.ptr[i - 1] == '\\');
}

/* Where the command that has an option at `at` begins; within the limit. */
static size_t command_start(struct slice text, size_t at)
{
    size_t least = at > COMMAND_MAX_BYTES ? at - COMMAND_MAX_BYTES : 0;
    size_t start = at;

    while (start > least && !ends_command(text, start - 1)) {
        start--;
    }
    return start;
}

/* The last part of a path: /usr/bin/mysql is mysql. */
static struct slice base_name(struct slice word)
{
    size_t i = word.len;

    while (i > 0 && word.ptr[i - 1] != '/') {
        i--;
    }
    return redact_between(word, i, word.len);
}

/* The forms of the option `letter` that begins at `at`; 0 when its program has none such. */
static unsigned forms_of(struct slice text, size_t at, char letter)
{
    size_t i = command_start(text, at);
    unsigned found = 0;

    while (i < at) {
        size_t end = redact_until(redact_between(text, 0, at), i, WORD_ENDS);
        struct slice word = base_name(redact_between(text, i, end));

        if (word.len > 0 && word.ptr[0] != '-' && (found & FORM_LEADING) != 0) {
            found = 0;
        }
        for (size_t k = 0; k < OPTIONS && word.len > 0; k++) {
            if (options[k].letter == letter &&
                slice_equal(word, slice_from_cstr(options[k].program))) {
                found = options[k].forms;
            }
        }
        i = end + 1;
    }
    return found;
}

static char letter_of(struct slice text, const struct run *r)
{
    if (r->name - r->from != 1) {
        return '\0';
    }
    return redact_at(text, r->name);
}

static bool has_option(char letter)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        if (letter != '\0' && options[i].letter == letter) {
            return true;
        }
    }
    return false;
}

/* The value of the one-letter option in r, by the forms that its program knows. */
static bool value_begins(struct slice text, const struct run *r, size_t *ret)
{
    char letter = letter_of(text, r);
    size_t from = r->name + 1;
    bool separate = is_in(BLANKS, redact_at(text, from));

    if (!has_option(letter) || from >= text.len ||
        (forms_of(text, r->from, letter) & (separate ? FORM_SEPARATE : FORM_ATTACHED)) == 0) {
        return false;
    }
    *ret = redact_span(text, from, BLANKS);
    return redact_at(text, *ret) != '-';
}

/* In quotes or as far as the word goes. */
static bool find_value(struct slice text, size_t from, struct span *ret)
{
    if (!redact_find_quoted(text, from, ret)) {
        *ret = (struct span){ .from = from, .to = redact_until(text, from, WORD_ENDS ";|&<>`)") };
    }
    return ret->to > ret->from &&
           !redact_begins_reference(redact_between(text, ret->from, ret->to)) &&
           !redact_is_reference(redact_between(text, ret->from, ret->to));
}

/* user:SECRET; but a uid and a gid are none. */
static bool find_login_at(struct slice text, size_t from, struct span *ret)
{
    if (redact_at(text, from) == '"' || redact_at(text, from) == '\'') {
        from++;
    }

    size_t colon = redact_until(text, from, ":=" WORD_ENDS);

    if (redact_at(text, colon) != ':' || redact_begins_reference(redact_from(text, colon + 1))) {
        return false;
    }

    size_t end = redact_until(text, colon, WORD_ENDS);
    struct slice password = redact_between(text, colon + 1, end);

    *ret = (struct span){ .from = colon + 1, .to = end };
    return redact_span(password, 0, "0123456789") < password.len && !redact_is_reference(password);
}

bool redact_find_login(struct slice text, const struct run *r, struct span *ret)
{
    size_t dashes = r->name - r->from;
    char behind = redact_at(text, r->to);
    bool option =
        (dashes == 1 && redact_is_word(text, r, "u")) ||
        (dashes == 2 && (redact_is_word(text, r, "user") || redact_is_word(text, r, "proxy-user")));
    size_t from;

    if (option && (behind == ' ' || behind == '=')) {
        return find_login_at(text, r->to + 1, ret);
    }
    return (letter_of(text, r) == 'u' || letter_of(text, r) == 'U') &&
           value_begins(text, r, &from) && find_login_at(text, from, ret);
}

/* -passin pass:SECRET, as openssl's tools take it. */
static bool find_pass(struct slice text, const struct run *r, struct span *ret)
{
    static const char *const names[] = { "pass", "passin", "passout", "passcert", "srppass" };
    size_t from = redact_span(text, r->to, BLANKS "\"'");

    if (r->name == r->from || !slice_starts_with(redact_from(text, from), SLICE("pass:"))) {
        return false;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (redact_is_word(text, r, names[i])) {
            return find_value(text, from + 5, ret);
        }
    }
    return false;
}

bool redact_find_option(struct slice text, const struct run *r, struct span *ret)
{
    char letter = letter_of(text, r);
    size_t from;

    if (find_pass(text, r, ret)) {
        return true;
    }
    return letter != 'u' && letter != 'U' && value_begins(text, r, &from) &&
           find_value(text, from, ret);
}
