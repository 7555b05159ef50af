#include "queries/near_miss.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/buf.h"
#include "collector/base/suggest.h"
#include "collector/match/matcher.h"
#include "queries/say.h"

enum { PATTERN_MAX_BYTES = 64 * 1024, NAME_MAX_BYTES = 256 };

/* Would it match, as a regular expression? */
static bool would_match(struct slice pattern, struct slice tool)
{
    CLEANUP(matcher_freep) struct matcher *m = matcher_new(pattern);
    enum matcher_rule rule;

    return matcher_matches(m, tool, &rule) && rule == MATCHER_BY_REGEX;
}

static bool has_char(struct slice s, char c)
{
    return s.len > 0 && memchr(s.ptr, c, s.len) != NULL;
}

/* The pattern with `from` written as `to`. */
static struct slice rewritten(struct slice pattern, char from, const char *to, struct arena *a)
{
    CLEANUP(buf_done) struct buf b;
    struct slice ret = { 0 };

    buf_init(&b, PATTERN_MAX_BYTES);
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.ptr[i] == from) {
            buf_add(&b, slice_from_cstr(to));
        } else if (from != ',' || pattern.ptr[i] != ' ') {
            buf_add_char(&b, pattern.ptr[i]);
        }
    }
    return arena_dup(a, buf_slice(&b), &ret) ? ret : pattern;
}

/* "RunInTerminal(rm *)": the tool's name, then something of its arguments. */
static bool is_argument_pattern(struct slice pattern, struct slice tool)
{
    return pattern.len > tool.len && slice_starts_with(pattern, tool) &&
           (pattern.ptr[tool.len] == '(' || pattern.ptr[tool.len] == ' ' ||
            pattern.ptr[tool.len] == ':');
}

/* The pattern as a glob, or as a list: both compile, and mean something else. */
static struct slice other_notation(struct slice pattern, struct slice tool, struct arena *a)
{
    struct slice glob = rewritten(pattern, '*', ".*", a);
    struct slice list = rewritten(pattern, ',', "|", a);

    if (has_char(pattern, '*') && would_match(glob, tool)) {
        return say(a,
                   "It reads like a file glob; in a regular expression `*` repeats what is before "
                   "it: write '%" SLICE_FMT "'.",
                   SLICE_ARG(glob));
    }
    if (has_char(pattern, ',') && would_match(list, tool)) {
        return say(a,
                   "It reads like a list; alternatives are divided by `|`: write '%" SLICE_FMT "'.",
                   SLICE_ARG(list));
    }
    return (struct slice){ 0 };
}

/* The pattern fits, but not the whole name, or not its case. */
static struct slice other_extent(struct slice pattern, struct slice tool, struct arena *a)
{
    /* What is put around alternatives would go to the outer ones alone. */
    bool group = has_char(pattern, '|');
    struct slice whole = group ? say(a, "(%" SLICE_FMT ")", SLICE_ARG(pattern)) : pattern;
    struct slice start = say(a, "%" SLICE_FMT ".*", SLICE_ARG(whole));
    struct slice part = say(a, ".*%" SLICE_FMT ".*", SLICE_ARG(whole));

    if (would_match(say(a, "(?i:%" SLICE_FMT ")", SLICE_ARG(pattern)), tool)) {
        return say(a, "It differs in case only: tool names are compared with regard to case. "
                      "Write the name as the trace shows it.");
    }
    if (would_match(start, tool)) {
        return say(a,
                   "It matches the beginning of the name, and a matcher must match all of it: "
                   "write '%" SLICE_FMT "'.",
                   SLICE_ARG(start));
    }
    if (would_match(part, tool)) {
        return say(a,
                   "It matches a part of the name, and a matcher must match all of it: "
                   "write '%" SLICE_FMT "'.",
                   SLICE_ARG(part));
    }
    return (struct slice){ 0 };
}

/* Few letters apart. */
static bool is_nearly(struct slice pattern, struct slice tool)
{
    char name[NAME_MAX_BYTES];
    const char *names[] = { name };

    if (tool.len >= sizeof(name)) {
        return false;
    }
    (void)snprintf(name, sizeof(name), "%" SLICE_FMT, SLICE_ARG(tool));
    return suggest_name(pattern, names, 1) != NULL;
}

static struct slice not_compiling(const char *fault, struct slice tool, struct arena *a)
{
    return say(a,
               "The pattern does not compile (%s), so it was compared as an exact string. Repair "
               "it, and check it against '%" SLICE_FMT "' with `hooktrail check`.",
               fault, SLICE_ARG(tool));
}

struct slice near_miss(struct slice pattern, struct slice tool, struct arena *a)
{
    CLEANUP(matcher_freep) struct matcher *m = matcher_new(pattern);

    if (pattern.len == 0) {
        return say(a,
                   "The hook has no matcher, and then matches no tool: set matcher to '%" SLICE_FMT
                   "', or to `*` for every tool.",
                   SLICE_ARG(tool));
    }
    if (is_argument_pattern(pattern, tool)) {
        return say(a,
                   "It looks like a pattern for arguments; the matcher sees the tool's name alone. "
                   "Write '%" SLICE_FMT "', and look at tool_input in the hook.",
                   SLICE_ARG(tool));
    }

    struct slice notation = other_notation(pattern, tool, a);

    if (notation.len > 0) {
        return notation;
    }
    if (matcher_fault(m)[0] != '\0') {
        return not_compiling(matcher_fault(m), tool, a);
    }

    struct slice extent = other_extent(pattern, tool, a);

    if (extent.len > 0) {
        return extent;
    }
    if (is_nearly(pattern, tool)) {
        return say(a, "It is nearly the name: write '%" SLICE_FMT "'.", SLICE_ARG(tool));
    }
    return say(a,
               "If the hook is meant for this tool, add its name: '%" SLICE_FMT "|%" SLICE_FMT "'.",
               SLICE_ARG(pattern), SLICE_ARG(tool));
}
