/* sre_check: matchers that are legal and surely unmeant. */
#include "collector/contract/sre.h"

#include <string.h>
#include <strings.h>

/* The tools that the contract's document names; others exist, so a miss alone says nothing. */
static const char *const known_tools[] = {
    "ReadFile",
    "CreateFile",
    "ReplaceStringInFile",
    "MultiReplaceStringInFile",
    "GrepSearch",
    "FileSearch",
    "ListDir",
    "RunInTerminal",
    "Task",
    "Agent",
    "read_skill_file",
};
enum { KNOWN_TOOLS = sizeof(known_tools) / sizeof(known_tools[0]) };

static bool matches_some_tool(const struct matcher *m)
{
    enum matcher_rule rule;

    for (size_t i = 0; i < KNOWN_TOOLS; i++) {
        if (matcher_matches(m, slice_from_cstr(known_tools[i]), &rule)) {
            return true;
        }
    }
    return false;
}

/* The tool whose name begins with the pattern, or which it spells in another case. */
static const char *near_tool(const char *pattern, bool *ret_case_only)
{
    size_t n = strlen(pattern);

    for (size_t i = 0; i < KNOWN_TOOLS; i++) {
        if (strcasecmp(pattern, known_tools[i]) == 0) {
            *ret_case_only = true;
            return known_tools[i];
        }
    }
    for (size_t i = 0; i < KNOWN_TOOLS; i++) {
        if (n > 0 && strncasecmp(pattern, known_tools[i], n) == 0) {
            *ret_case_only = false;
            return known_tools[i];
        }
    }
    return NULL;
}

/* "RunInTerminal(rm *)", "ReadFile(/etc/.*)", "rm -rf .*": matchers never see arguments. */
static bool looks_like_arguments(const char *pattern)
{
    if (strpbrk(pattern, " \t/=")) {
        return true;
    }
    for (size_t i = 0; i < KNOWN_TOOLS; i++) {
        size_t n = strlen(known_tools[i]);

        if (strncasecmp(pattern, known_tools[i], n) == 0 &&
            (pattern[n] == '(' || pattern[n] == ':')) {
            return true;
        }
    }
    return false;
}

/* The contract's document warns of this one by name. */
static bool is_list_directory(const char *pattern)
{
    return strcasecmp(pattern, "ListDirectory") == 0;
}

static void check_names(const struct document *doc, const json_t *hook, const char *pattern)
{
    static const char path[] = "spec.hook";
    bool case_only = false;
    const char *near = near_tool(pattern, &case_only);

    if (looks_like_arguments(pattern)) {
        keys_fault(doc, FAULT_WARNING, hook, path, "matcher",
                   "'%s' looks like a pattern of arguments; a matcher sees the tool's name alone",
                   pattern);
    } else if (is_list_directory(pattern)) {
        keys_fault(doc, FAULT_WARNING, hook, path, "matcher",
                   "'%s' matches no known tool; the listing tool is ListDir", pattern);
    } else if (near && case_only) {
        keys_fault(doc, FAULT_WARNING, hook, path, "matcher",
                   "'%s' differs from the tool %s in case only, and case matters", pattern, near);
    } else if (near) {
        keys_fault(doc, FAULT_WARNING, hook, path, "matcher",
                   "'%s' is the beginning of the tool %s and does not match it: a matcher must "
                   "match the whole name, case included (%.*s.* would)",
                   pattern, near, (int)strlen(pattern), near);
    }
}

void sre_check_matcher(const struct document *doc, const json_t *hook)
{
    CLEANUP(matcher_freep) struct matcher *m = matcher_new(keys_slice(hook, "matcher"));
    const char *pattern = keys_string(hook, "matcher");

    if (*matcher_fault(m)) {
        keys_fault(doc, FAULT_WARNING, hook, "spec.hook", "matcher",
                   "'%s' does not compile (%s); it is compared as an exact string, which no tool "
                   "is likely to be called",
                   pattern, matcher_fault(m));
    }
    if (strcmp(pattern, "*") != 0 && !matches_some_tool(m)) {
        check_names(doc, hook, pattern);
    }
}
