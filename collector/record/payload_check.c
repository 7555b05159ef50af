/*
 * The validator: one pass over the bytes, no recursion. What is open is one
 * bool a level; the loop is at a value, or behind one.
 *
 *     begin_value ──scalar, or empty container──▶ end_value ──','──▶ begin_value
 *         ▲ └─opened: the first key, if any──┐        │ └──'}' ']'──▶ end_value
 *         └──────────────────────────────────┘        └──outermost──▶ done
 */
#include "collector/record/payload.h"

#include <string.h>

#include "collector/base/plain.h"
#include "collector/base/utf8.h"
#include "collector/record/payload_scan.h"

struct checker {
    const char *start;
    const char *at;
    const char *end;
    size_t depth;
    bool object[PAYLOAD_MAX_DEPTH]; /* what is open, the outermost first */
    struct err *err;
};

enum progress { AT_VALUE, BEHIND_VALUE, DONE, FAILED };

/* The place is told in characters, as an editor counts them. */
static bool fail(struct checker *c, const char *what)
{
    size_t line = 1;
    const char *line_start = c->start;

    for (const char *p = c->start; p < c->at; p++) {
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    }

    struct slice before = { .ptr = line_start, .len = (size_t)(c->at - line_start) };

    return err_set(c->err, ERR_INVALID, "line %zu, column %zu: %s", line, utf8_count(before) + 1,
                   c->at < c->end ? what : "the text ends too early");
}

static char peek(const struct checker *c)
{
    if (c->at == c->end) {
        return '\0';
    }
    return *c->at;
}

static void skip_blanks(struct checker *c)
{
    while (c->at < c->end &&
           (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) {
        c->at++;
    }
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* At a backslash. A surrogate needs no partner here: it passes through. */
static bool check_escape(struct checker *c)
{
    c->at++;

    char kind = peek(c);

    if (kind == '\0' || !strchr("\"\\/bfnrtu", kind)) {
        return fail(c, "an escape that JSON does not have");
    }
    c->at++;
    for (int i = 0; kind == 'u' && i < 4; i++) {
        if (!is_hex(peek(c))) {
            return fail(c, "\\u needs four hexadecimal digits");
        }
        c->at++;
    }
    return true;
}

/* At the opening quote. */
static bool check_string(struct checker *c)
{
    c->at++;
    for (;;) {
        c->at += plain_run((struct slice){ .ptr = c->at, .len = (size_t)(c->end - c->at) });

        unsigned char byte = (unsigned char)peek(c);

        if (byte == '"') {
            c->at++;
            return true;
        }
        if (byte == '\\') {
            if (!check_escape(c)) {
                return false;
            }
        } else if (byte < 0x20) {
            return fail(c, "a control character inside a string");
        } else {
            struct slice rest = { .ptr = c->at, .len = (size_t)(c->end - c->at) };
            size_t n = utf8_length(rest);

            if (n == 0) {
                return fail(c, "a byte that is no UTF-8");
            }
            c->at += n;
        }
    }
}

static bool check_digits(struct checker *c)
{
    const char *first = c->at;

    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        c->at++;
    }
    return c->at > first || fail(c, "a digit is missing");
}

static bool check_number(struct checker *c)
{
    if (peek(c) == '-') {
        c->at++;
    }
    if (peek(c) == '0') {
        c->at++;
    } else if (!check_digits(c)) {
        return false;
    }
    if (peek(c) == '.') {
        c->at++;
        if (!check_digits(c)) {
            return false;
        }
    }
    if (peek(c) == 'e' || peek(c) == 'E') {
        c->at++;
        if (peek(c) == '+' || peek(c) == '-') {
            c->at++;
        }
        return check_digits(c);
    }
    return true;
}

static bool check_word(struct checker *c, struct slice word)
{
    struct slice rest = { .ptr = c->at, .len = (size_t)(c->end - c->at) };

    if (!slice_starts_with(rest, word)) {
        return fail(c, "neither null, true nor false");
    }
    c->at += word.len;
    return true;
}

static bool check_scalar(struct checker *c)
{
    switch (peek(c)) {
    case '"':
        return check_string(c);
    case 'n':
        return check_word(c, SLICE("null"));
    case 't':
        return check_word(c, SLICE("true"));
    case 'f':
        return check_word(c, SLICE("false"));
    default:
        if (peek(c) != '-' && (peek(c) < '0' || peek(c) > '9')) {
            return fail(c, "a value is expected");
        }
        return check_number(c);
    }
}

/* The name of a member and its colon. */
static bool check_key(struct checker *c)
{
    if (peek(c) != '"') {
        return fail(c, "a name in quotes is expected");
    }
    if (!check_string(c)) {
        return false;
    }
    skip_blanks(c);
    if (peek(c) != ':') {
        return fail(c, "':' is expected");
    }
    c->at++;
    return true;
}

/* At '{' or '['. */
static enum progress open_container(struct checker *c)
{
    bool object = *c->at == '{';

    if (c->depth == PAYLOAD_MAX_DEPTH) {
        fail(c, "deeper than 128");
        return FAILED;
    }
    c->at++;
    skip_blanks(c);
    if (peek(c) == (object ? '}' : ']')) {
        c->at++;
        return BEHIND_VALUE;
    }
    c->object[c->depth++] = object;
    if (object && !check_key(c)) {
        return FAILED;
    }
    return AT_VALUE;
}

static enum progress begin_value(struct checker *c)
{
    skip_blanks(c);
    if (peek(c) == '{' || peek(c) == '[') {
        return open_container(c);
    }
    return check_scalar(c) ? BEHIND_VALUE : FAILED;
}

static enum progress end_value(struct checker *c)
{
    if (c->depth == 0) {
        return DONE;
    }
    skip_blanks(c);

    bool object = c->object[c->depth - 1];

    if (peek(c) == (object ? '}' : ']')) {
        c->at++;
        c->depth--;
        return BEHIND_VALUE;
    }
    if (peek(c) != ',') {
        fail(c, object ? "',' or '}' is expected" : "',' or ']' is expected");
        return FAILED;
    }
    c->at++;
    skip_blanks(c);
    if (object && !check_key(c)) {
        return FAILED;
    }
    return AT_VALUE;
}

bool payload_check(struct slice text, struct json_value *ret, struct err *err)
{
    _Static_assert(PAYLOAD_MAX_DEPTH == 128, "the message names the limit");

    const char *start = text.len > 0 ? text.ptr : "";
    struct checker c = { .start = start, .at = start, .end = start + text.len, .err = err };

    skip_blanks(&c);

    const char *first = c.at;
    enum progress progress = AT_VALUE;

    while (progress == AT_VALUE || progress == BEHIND_VALUE) {
        progress = progress == AT_VALUE ? begin_value(&c) : end_value(&c);
    }
    if (progress == FAILED) {
        return false;
    }

    struct slice raw = { .ptr = first, .len = (size_t)(c.at - first) };

    skip_blanks(&c);
    if (c.at < c.end) {
        return fail(&c, "something stands behind the value");
    }
    *ret = payload_value(raw);
    return true;
}
