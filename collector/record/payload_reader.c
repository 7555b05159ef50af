/*
 * One pass over the bytes, no recursion. Inside a value that is taken whole, what is open
 * is one bool a level; the loop is at a value, or behind one.
 *
 *     begin_value ──scalar, or empty container──▶ end_value ──','──▶ begin_value
 *         ▲ └─opened: the first key, if any──┐        │ └──'}' ']'──▶ end_value
 *         └──────────────────────────────────┘        └──outermost──▶ done
 */
#include "collector/record/payload_reader.h"

#include <string.h>

#include "collector/base/plain.h"
#include "collector/base/utf8.h"
#include "collector/record/payload_scan.h"

/* The containers inside a value that is taken whole. */
struct nest {
    size_t depth; /* of the text, those that were entered included */
    bool object[PAYLOAD_MAX_DEPTH];
};

enum progress { AT_VALUE, BEHIND_VALUE, DONE, FAILED };

/* The place is told in characters, as an editor counts them. */
OUT_OF_LINE static bool fail(struct payload_reader *r, const char *what)
{
    size_t line = 1;
    const char *line_start = r->start;

    for (const char *p = r->start; p < r->at; p++) {
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    }

    struct slice before = { .ptr = line_start, .len = (size_t)(r->at - line_start) };

    (void)err_set(r->err, ERR_INVALID, "line %zu, column %zu: %s", line, utf8_count(before) + 1,
                  r->at < r->end ? what : "the text ends too early");
    r->failed = true;
    r->end = r->at; /* nobody gets on from here */
    return false;
}

static char peek(const struct payload_reader *r)
{
    if (r->at == r->end) {
        return '\0';
    }
    return *r->at;
}

/* What is left of the text, from `at` on. */
static struct slice rest(const char *at, const struct payload_reader *r)
{
    return (struct slice){ .ptr = at, .len = (size_t)(r->end - at) };
}

OUT_OF_LINE static void skip_run_of_blanks(struct payload_reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) {
        r->at++;
    }
}

/* Our own records have none: that there are none has to be seen fast. */
static inline void skip_blanks(struct payload_reader *r)
{
    if (r->at < r->end && (unsigned char)*r->at <= ' ') {
        skip_run_of_blanks(r);
    }
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* At a backslash. A surrogate needs no partner here: it passes through. */
static bool check_escape(struct payload_reader *r)
{
    r->at++;

    char kind = peek(r);

    if (kind == '\0' || !strchr("\"\\/bfnrtu", kind)) {
        return fail(r, "an escape that JSON does not have");
    }
    r->at++;
    for (int i = 0; kind == 'u' && i < 4; i++) {
        if (!is_hex(peek(r))) {
            return fail(r, "\\u needs four hexadecimal digits");
        }
        r->at++;
    }
    return true;
}

/* At a byte that ends a plain run, and is no quote. */
OUT_OF_LINE static bool check_odd_byte(struct payload_reader *r)
{
    unsigned char byte = (unsigned char)peek(r);
    size_t n;

    if (byte == '\\') {
        return check_escape(r);
    }
    if (byte < 0x20) {
        return fail(r, "a control character inside a string");
    }
    n = utf8_length(rest(r->at, r));
    r->at += n;
    return n > 0 || fail(r, "a byte that is no UTF-8");
}

/* At the opening quote. */
static inline bool check_string(struct payload_reader *r)
{
    r->at++;
    r->at += plain_run(rest(r->at, r));
    while (peek(r) != '"') {
        if (!check_odd_byte(r)) {
            return false;
        }
        r->at += plain_run(rest(r->at, r));
    }
    r->at++;
    return true;
}

static inline enum json_kind kind_at(const struct payload_reader *r)
{
    return r->at < r->end ? payload_kind_of(*r->at) : JSON_KIND_NONE;
}

static bool is_container(enum json_kind kind)
{
    return kind == JSON_KIND_ARRAY || kind == JSON_KIND_OBJECT;
}

static bool check_digits(struct payload_reader *r)
{
    const char *first = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        r->at++;
    }
    return r->at > first || fail(r, "a digit is missing");
}

static bool check_number(struct payload_reader *r)
{
    if (peek(r) == '-') {
        r->at++;
    }
    if (peek(r) == '0') {
        r->at++;
    } else if (!check_digits(r)) {
        return false;
    }
    if (peek(r) == '.') {
        r->at++;
        if (!check_digits(r)) {
            return false;
        }
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        if (peek(r) == '+' || peek(r) == '-') {
            r->at++;
        }
        return check_digits(r);
    }
    return true;
}

static bool check_word(struct payload_reader *r, struct slice word)
{
    if (!slice_starts_with(rest(r->at, r), word)) {
        return fail(r, "neither null, true nor false");
    }
    r->at += word.len;
    return true;
}

static bool check_scalar(struct payload_reader *r, enum json_kind kind)
{
    switch (kind) {
    case JSON_KIND_STRING:
        return check_string(r);
    case JSON_KIND_NULL:
        return check_word(r, SLICE("null"));
    case JSON_KIND_TRUE:
        return check_word(r, SLICE("true"));
    case JSON_KIND_FALSE:
        return check_word(r, SLICE("false"));
    case JSON_KIND_NUMBER:
        return check_number(r);
    case JSON_KIND_NONE:
    case JSON_KIND_ARRAY:
    case JSON_KIND_OBJECT:
        break;
    }
    return fail(r, "a value is expected");
}

/* The name of a member and its colon. */
static bool check_key(struct payload_reader *r, struct slice *ret)
{
    const char *first = r->at;

    if (peek(r) != '"') {
        return fail(r, "a name in quotes is expected");
    }
    if (!check_string(r)) {
        return false;
    }
    *ret = (struct slice){ .ptr = first, .len = (size_t)(r->at - first) };
    skip_blanks(r);
    if (peek(r) != ':') {
        return fail(r, "':' is expected");
    }
    r->at++;
    return true;
}

/* Into a container, over its bracket. */
static bool descend(struct payload_reader *r, size_t depth)
{
    if (depth == PAYLOAD_MAX_DEPTH) {
        return fail(r, "deeper than 128");
    }
    r->at++;
    skip_blanks(r);
    return true;
}

static char closing(bool object)
{
    return object ? '}' : ']';
}

/* Over the comma between two members or items. */
static bool pass_comma(struct payload_reader *r, bool object)
{
    if (peek(r) != ',') {
        return fail(r, object ? "',' or '}' is expected" : "',' or ']' is expected");
    }
    r->at++;
    skip_blanks(r);
    return true;
}

/* At '{' or '['. */
static enum progress open_container(struct payload_reader *r, struct nest *n)
{
    bool object = *r->at == '{';
    struct slice key;

    if (!descend(r, n->depth)) {
        return FAILED;
    }
    if (peek(r) == closing(object)) {
        r->at++;
        return BEHIND_VALUE;
    }
    n->object[n->depth++] = object;
    return !object || check_key(r, &key) ? AT_VALUE : FAILED;
}

static enum progress begin_value(struct payload_reader *r, struct nest *n)
{
    skip_blanks(r);

    enum json_kind kind = kind_at(r);

    if (is_container(kind)) {
        return open_container(r, n);
    }
    return check_scalar(r, kind) ? BEHIND_VALUE : FAILED;
}

static enum progress end_value(struct payload_reader *r, struct nest *n)
{
    if (n->depth == r->depth) {
        return DONE;
    }
    skip_blanks(r);

    bool object = n->object[n->depth - 1];
    struct slice key;

    if (peek(r) == closing(object)) {
        r->at++;
        n->depth--;
        return BEHIND_VALUE;
    }
    return pass_comma(r, object) && (!object || check_key(r, &key)) ? AT_VALUE : FAILED;
}

OUT_OF_LINE static bool check_container(struct payload_reader *r)
{
    struct nest n = { .depth = r->depth };
    enum progress progress = AT_VALUE;

    while (progress == AT_VALUE || progress == BEHIND_VALUE) {
        progress = progress == AT_VALUE ? begin_value(r, &n) : end_value(r, &n);
    }
    return progress == DONE;
}

void payload_reader_init(struct payload_reader *r, struct slice text, struct err *err)
{
    const char *start = text.len > 0 ? text.ptr : "";

    *r =
        (struct payload_reader){ .start = start, .at = start, .end = start + text.len, .err = err };
    skip_blanks(r);
}

enum json_kind payload_kind(struct payload_reader *r)
{
    skip_blanks(r);
    return kind_at(r);
}

/* Where no value stands at all, that is the error. */
static bool is_at(struct payload_reader *r, enum json_kind kind)
{
    enum json_kind found = payload_kind(r);

    return found == kind || (found == JSON_KIND_NONE && fail(r, "a value is expected"));
}

bool payload_enter(struct payload_reader *r, enum json_kind kind)
{
    if (r->failed || !is_at(r, kind) || !descend(r, r->depth)) {
        return false;
    }
    r->depth++;
    r->first = true;
    return true;
}

/* To the next member or item of the container at hand. */
static bool advance(struct payload_reader *r, bool object)
{
    if (r->failed) {
        return false;
    }
    skip_blanks(r);
    if (peek(r) == closing(object)) {
        r->at++;
        r->depth--;
        r->first = false;
        return false;
    }
    if (!r->first && !pass_comma(r, object)) {
        return false;
    }
    r->first = false;
    return true;
}

bool payload_member(struct payload_reader *r, struct slice *ret_key)
{
    return advance(r, true) && check_key(r, ret_key);
}

bool payload_item(struct payload_reader *r)
{
    return advance(r, false);
}

bool payload_take(struct payload_reader *r, struct json_value *ret)
{
    if (r->failed) {
        return false;
    }
    skip_blanks(r);

    const char *first = r->at;
    enum json_kind kind = kind_at(r);

    if (!(is_container(kind) ? check_container(r) : check_scalar(r, kind))) {
        return false;
    }
    ret->raw = (struct slice){ .ptr = first, .len = (size_t)(r->at - first) };
    ret->kind = kind;
    return true;
}

bool payload_reader_done(struct payload_reader *r)
{
    if (r->failed) {
        return false;
    }
    skip_blanks(r);
    return r->at == r->end || fail(r, "something stands behind the value");
}

bool payload_check(struct slice text, struct json_value *ret, struct err *err)
{
    _Static_assert(PAYLOAD_MAX_DEPTH == 128, "the message names the limit");

    struct payload_reader r;
    struct json_value v;

    payload_reader_init(&r, text, err);
    if (!payload_take(&r, &v) || !payload_reader_done(&r)) {
        return false;
    }
    *ret = v;
    return true;
}
