#include "collector/match/matcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "collector/base/mem.h"

/*
 * PCRE2 counts the steps of its matching function. A step costs at most one
 * pass over the name, so the number that is allowed falls with its length: the
 * product bounds the time, whatever the pattern. The interpreter is used, not
 * the JIT compiler, which checks these limits too rarely.
 */
enum {
    STEPS_MAX = 60 * 1000,      /* a usual name: some 5 ms */
    STEPS_MIN = 200,            /* a name of a megabyte */
    WORK_MAX = 8 * 1000 * 1000, /* steps times bytes of the name */
    DEPTH_MAX = 20 * 1000,      /* nested backtracking points */
    HEAP_MAX_KIB = 4 * 1024,    /* for those points */
    FAULT_SIZE = 160,           /* bytes of a compile error, with its NUL */
};

struct matcher {
    char *pattern; /* owned */
    size_t pattern_len;
    pcre2_code *code; /* owned; NULL: `*`, empty, or does not compile */
    bool any;
    char fault[FAULT_SIZE];
};

static void compile(struct matcher *m)
{
    const uint32_t options =
        PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    int code = 0;
    PCRE2_SIZE offset = 0;

    m->code = pcre2_compile((PCRE2_SPTR)m->pattern, m->pattern_len, options, &code, &offset, NULL);
    if (m->code) {
        return;
    }

    PCRE2_UCHAR text[FAULT_SIZE];

    if (pcre2_get_error_message(code, text, sizeof(text)) < 0) {
        (void)snprintf((char *)text, sizeof(text), "error %d", code);
    }
    (void)snprintf(m->fault, sizeof(m->fault), "%.120s at offset %zu", (const char *)text, offset);
}

struct matcher *matcher_new(struct slice pattern)
{
    struct matcher *m = xcalloc(1, sizeof(*m));

    m->pattern = xcalloc(pattern.len + 1, 1);
    m->pattern_len = pattern.len;
    if (pattern.len > 0) {
        memcpy(m->pattern, pattern.ptr, pattern.len);
    }
    m->any = slice_equal(pattern, SLICE("*"));
    if (!m->any && pattern.len > 0) {
        compile(m);
    }
    return m;
}

void matcher_free(struct matcher *m)
{
    if (!m) {
        return;
    }
    pcre2_code_free(m->code);
    free(m->pattern);
    free(m);
}

void matcher_freep(struct matcher **m)
{
    matcher_free(*m);
    *m = NULL;
}

static uint32_t steps_allowed(size_t name_len)
{
    size_t steps = WORK_MAX / (name_len + 1);

    if (steps > STEPS_MAX) {
        return STEPS_MAX;
    }
    return steps < STEPS_MIN ? STEPS_MIN : (uint32_t)steps;
}

/* PCRE2's answer: > 0 a match, PCRE2_ERROR_NOMATCH none, else it could not tell. */
static int run(const struct matcher *m, struct slice name)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    int result = PCRE2_ERROR_NOMEMORY;

    if (data && limits) {
        (void)pcre2_set_match_limit(limits, steps_allowed(name.len));
        (void)pcre2_set_depth_limit(limits, DEPTH_MAX);
        (void)pcre2_set_heap_limit(limits, HEAP_MAX_KIB);
        result = pcre2_match(m->code, (PCRE2_SPTR)(name.ptr ? name.ptr : ""), name.len, 0, 0, data,
                             limits);
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(data);
    return result;
}

bool matcher_matches(const struct matcher *m, struct slice name, enum matcher_rule *ret_rule)
{
    struct slice pattern = { .ptr = m->pattern, .len = m->pattern_len };

    if (m->any) {
        *ret_rule = MATCHER_BY_ANY;
        return true;
    }
    *ret_rule = MATCHER_BY_REGEX;
    if (pattern.len == 0) {
        return false;
    }

    int result = m->code ? run(m, name) : PCRE2_ERROR_INTERNAL;

    if (result >= 0) {
        return true;
    }
    if (result == PCRE2_ERROR_NOMATCH) {
        return false;
    }
    *ret_rule = MATCHER_BY_EXACT;
    return slice_equal(pattern, name);
}

const char *matcher_fault(const struct matcher *m)
{
    return m->fault;
}
