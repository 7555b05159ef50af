#include <stdio.h>

#include "collector/web/token.h"

/* In the order of the bits of enum web_scope. */
static const char *const names[] = { "dispatch", "ingest", "query", "export", "admin" };

enum { SCOPES = sizeof(names) / sizeof(names[0]) };

static bool add_scope(struct slice word, unsigned *scopes, struct err *err)
{
    for (unsigned i = 0; i < SCOPES; i++) {
        if (slice_equal(word, slice_from_cstr(names[i]))) {
            *scopes |= 1U << i;
            return true;
        }
    }
    return err_set(err, ERR_INVALID,
                   "unknown scope '%" SLICE_FMT
                   "'; known are dispatch, ingest, query, export, admin",
                   SLICE_ARG(word));
}

bool token_scopes_parse(struct slice text, unsigned *ret, struct err *err)
{
    unsigned scopes = 0;
    struct slice word;
    bool more;

    do {
        more = slice_cut(text, ',', &word, &text);
        if (!add_scope(word, &scopes, err)) {
            return false;
        }
    } while (more);
    *ret = scopes;
    return true;
}

void token_scopes_format(unsigned scopes, char *ret_text, size_t size)
{
    size_t len = 0;

    ret_text[0] = '\0';
    for (unsigned i = 0; i < SCOPES; i++) {
        if ((scopes & 1U << i) != 0 && len < size) {
            int n = snprintf(ret_text + len, size - len, "%s%s", len > 0 ? "," : "", names[i]);

            len += n > 0 ? (size_t)n : 0;
        }
    }
}
