/*
 * name=SECRET in every dress: shell, YAML, JSON (also inside a JSON string),
 * options, HTTP headers, query strings, connection strings.
 */
#include <string.h>

#include "collector/recorder/redact_name.h"
#include "collector/recorder/redact_part.h"

/* How the name is bound to what follows it. */
enum binding { BOUND_NOT, BOUND_EQUALS, BOUND_COLON, BOUND_OPTION };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static size_t skip_blanks(struct slice text, size_t i)
{
    return redact_span(text, i, " \t");
}

/* What stands behind the name; *ret_value is where its value begins. */
static enum binding binding_of(struct slice text, const struct run *r, size_t *ret_value)
{
    size_t i = redact_skip_quote(text, r->to);
    bool quoted = i > r->to;

    if (redact_at(text, i) == ']') {
        i++; /* config["password"] = … */
    }

    size_t sign = skip_blanks(text, i);
    char c = redact_at(text, sign);
    char next = redact_at(text, sign + 1);

    if (c == ':' && next == '=') {
        sign++;
        c = '=';
        next = redact_at(text, sign + 1);
    }
    if (c == '=' && next == '>') {
        sign++;
        next = ' ';
    }
    if ((c == '=' && next != '=') || (c == ':' && next != ':' && next != '/')) {
        *ret_value = skip_blanks(text, sign + 1);
        return c == '=' ? BOUND_EQUALS : BOUND_COLON;
    }
    if (r->name > r->from && !quoted && sign > r->to && c != '-') {
        *ret_value = sign;
        return BOUND_OPTION;
    }
    return BOUND_NOT;
}

/* Short names that are a secret's only where they stand: &sig=…, ;Pwd=… */
static bool is_secret_here(struct slice text, const struct run *r)
{
    static const char *const in_query[] = { "sig", "pwd", "pass", "code" };
    struct slice name = redact_between(text, r->name, r->to);
    char before = '\0';

    if (r->from > 0) {
        before = text.ptr[r->from - 1];
    }

    if (redact_is_secret_name(name)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(in_query) / sizeof(in_query[0]); i++) {
        if (name.len == strlen(in_query[i]) && strncasecmp(name.ptr, in_query[i], name.len) == 0) {
            return before == '&' || before == '?' || (before == ';' && name.ptr[0] != 'c');
        }
    }
    return false;
}

/* The whole line of these belongs to the secret: `Cookie: a=b; c=d`. */
static bool is_header(struct slice text, const struct run *r)
{
    static const char *const headers[] = { "authorization", "proxy-authorization", "cookie",
                                           "set-cookie" };

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (redact_is_word(text, r, headers[i])) {
            return true;
        }
    }
    return false;
}

/*
 * "password: must be 8 characters" is prose; "password: swordfish" at the end of
 * its line is a setting. One with a digit or a sign in it is never prose.
 */
static bool is_prose(struct slice text, struct span value)
{
    size_t letters = redact_span(text, value.from, LETTERS "'.!?");
    char next = redact_at(text, redact_span(text, value.to, " \t"));

    return letters >= value.to && next != '\0' && next != '\n' && next != '\r';
}

/* Calls are code: `password = read_password(…)`. */
static bool is_call(struct slice text, struct span value)
{
    return redact_at(text, value.to) == '(' &&
           redact_span(text, value.from, LETTERS "_.0123456789") == value.to;
}

static bool find_bare(struct slice text, enum binding binding, size_t from, struct span *ret)
{
    *ret = (struct span){ .from = from, .to = redact_until(text, from, " \t\r\n\"'`,;&|<>)}]{[(") };
    if (ret->to == from || is_call(text, *ret)) {
        return false;
    }
    return binding != BOUND_COLON || !is_prose(text, *ret);
}

bool redact_find_assignment(struct slice text, const struct run *r, struct span *ret)
{
    size_t from = 0;
    enum binding binding = binding_of(text, r, &from);

    if (binding == BOUND_NOT || !is_secret_here(text, r)) {
        return false;
    }
    if (binding == BOUND_COLON) {
        from = redact_value_below(text, r, from);
    }
    if (redact_begins_reference(redact_from(text, from))) {
        return false;
    }
    if (!redact_find_quoted(text, from, ret)) {
        if (is_header(text, r) && binding == BOUND_COLON) {
            *ret = (struct span){ .from = from, .to = redact_until(text, from, "\r\n\"'") };
        } else if (!find_bare(text, binding, from, ret)) {
            return false;
        }
    }

    struct slice value = redact_between(text, ret->from, ret->to);

    return !redact_is_reference(value);
}
