/*
 * The text is walked run by run; a run is letters, digits, '_' and '-'. At each
 * run these are tried, and after a hit the walk goes on behind it:
 *
 *     -----BEGIN … PRIVATE KEY-----     a PEM
 *     ghp_…  AKIA…  eyJ….….…           redact_token.c
 *     scheme://user:SECRET@host       scheme://SECRET@host
 *     Bearer SECRET
 *     -u user:SECRET  mysql -pSECRET  redact_option.c
 *     <name>SECRET</name>  name: |    redact_block.c
 *     name=SECRET  name: SECRET  --name SECRET     redact_assignment.c
 */
#include "collector/recorder/redact_shape.h"

#include <string.h>

#include "collector/recorder/redact_part.h"

/* The offset behind the first `needle` at `from` or later; the end when there is none. */
static size_t behind(struct slice text, size_t from, struct slice needle)
{
    struct slice rest = redact_from(text, from);
    const char *at = rest.len > 0 ? memmem(rest.ptr, rest.len, needle.ptr, needle.len) : NULL;

    return at ? (size_t)(at - text.ptr) + needle.len : text.len;
}

/* A private key, as far as its END line, or all that follows when that is missing. */
static bool find_pem(struct slice text, const struct run *r, struct span *ret)
{
    enum { LABEL_MAX = 64 };
    struct slice line = redact_from(text, r->from);

    if (r->name - r->from != 5 || !slice_starts_with(line, SLICE("-----BEGIN"))) {
        return false;
    }
    line.len = line.len < LABEL_MAX ? line.len : LABEL_MAX;
    if (!memmem(line.ptr, line.len, "PRIVATE KEY", 11)) {
        return false;
    }
    *ret = (struct span){ .from = r->from, .to = behind(text, r->from, SLICE("-----END")) };
    if (ret->to < text.len) {
        ret->to = behind(text, ret->to, SLICE("-----"));
    }
    return true;
}

/* Is what stands alone before the '@' a token? A user's name is short, and in one case. */
static bool is_user_token(struct slice s)
{
    enum { USER_MAX = 15, TOKEN_LEAST = 8 };
    bool digit = redact_until(s, 0, "0123456789") < s.len;
    bool lower = redact_until(s, 0, "abcdefghijklmnopqrstuvwxyz") < s.len;
    bool upper = redact_until(s, 0, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") < s.len;

    return s.len > USER_MAX || (s.len >= TOKEN_LEAST && digit && lower && upper);
}

/* In scheme://user:SECRET@host the run is the scheme. */
static bool find_userinfo(struct slice text, const struct run *r, struct span *ret)
{
    if (redact_at(text, r->to) != ':' ||
        !slice_starts_with(redact_from(text, r->to), SLICE("://"))) {
        return false;
    }

    size_t first = r->to + 3;
    size_t end = redact_until(text, first, "/?# \t\r\n\"'<>`\\");
    size_t colon = redact_until(text, first, ":/?# \t\r\n\"'<>`\\");
    size_t at = end; /* behind the last '@' */

    while (at > first && text.ptr[at - 1] != '@') {
        at--;
    }
    if (at == first) {
        return false;
    }

    bool alone = colon + 1 >= at;
    size_t from = alone ? first : colon + 1;
    struct slice secret = redact_between(text, from, at - 1);

    *ret = (struct span){ .from = from, .to = at - 1 };
    return !redact_is_reference(secret) && (!alone || is_user_token(secret));
}

/* Letters alone are prose: "basic authentication". */
static bool looks_random(struct slice s)
{
    bool mixed = false;

    for (size_t i = 1; i < s.len && !mixed; i++) {
        mixed = (s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') ||
                s.ptr[i] == '=';
    }
    return s.len >= 6 && mixed;
}

/* Bearer SECRET, Basic SECRET. */
static bool find_scheme(struct slice text, const struct run *r, struct span *ret)
{
    if (!redact_is_word(text, r, "bearer") && !redact_is_word(text, r, "basic")) {
        return false;
    }

    size_t from = redact_span(text, r->to, " \t");
    size_t to = redact_until(text, from, " \t\r\n\"'<>`\\,;()[]{}|&");
    struct slice value = redact_between(text, from, to);

    *ret = (struct span){ .from = from, .to = to };
    return from > r->to && looks_random(value);
}

/* Most runs are words of prose, and end here: nothing binds them, and they are no token. */
static bool may_be_more(struct slice text, const struct run *r)
{
    enum { TOKEN_LEAST = 14 }; /* a run that is shorter is one only with a '.' or '~' behind it */
    size_t i = r->to;
    char next = redact_at(text, i);

    if (r->to - r->from >= TOKEN_LEAST || r->name > r->from ||
        (r->from > 0 && (text.ptr[r->from - 1] == '<' || text.ptr[r->from - 1] == ':'))) {
        return true;
    }
    while (next == ' ' || next == '\t') {
        next = redact_at(text, ++i);
    }
    switch (next) {
    case ':':
    case '=':
    case '"':
    case '\'':
    case '\\':
    case ']':
    case '>':
        return true;
    case '.':
    case '~':
        return i == r->to;
    default:
        return (text.ptr[r->name] | 0x20) == 'b'; /* Bearer, Basic */
    }
}

static bool find_in_run(struct slice text, const struct run *r, struct span *ret)
{
    static bool (*const finders[])(struct slice, const struct run *, struct span *) = {
        find_pem,
        redact_find_token,
        find_userinfo,
        find_scheme,
        redact_find_login,
        redact_find_option,
        redact_find_element,
        redact_find_block,
        redact_find_assignment,
    };

    if (!may_be_more(text, r)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++) {
        if (finders[i](text, r, ret)) {
            return true;
        }
    }
    return false;
}

bool redact_find(struct slice text, size_t from, struct span *ret)
{
    size_t i = from;

    while (i < text.len) {
        if (!redact_is_run(text.ptr[i])) {
            i++;
            continue;
        }

        struct run r = { .from = i, .name = i, .to = i };

        while (r.to < text.len && redact_is_run(text.ptr[r.to])) {
            r.to++;
        }
        while (r.name < r.to && text.ptr[r.name] == '-') {
            r.name++;
        }
        if (find_in_run(text, &r, ret)) {
            return true;
        }
        i = r.to;
    }
    return false;
}
