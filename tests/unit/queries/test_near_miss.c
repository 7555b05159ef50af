#include "queries/near_miss.h"

#include <string.h>

#include "collector/match/matcher.h"
#include "tests/unit/unit.h"

/* The pattern in the advice: what stands between "write '" and the next quote. */
static struct slice pattern_in(struct slice advice)
{
    static const char before[] = "write '";
    const char *at = memmem(advice.ptr, advice.len, before, sizeof(before) - 1);
    struct slice rest = { 0 };
    struct slice pattern = { 0 };

    if (at) {
        rest = slice_from_cstr(at + sizeof(before) - 1);
        (void)slice_cut(rest, '\'', &pattern, &rest);
    }
    return pattern;
}

static void a_pattern_that_is_advised_matches(void **state)
{
    (void)state;
    static const char *const patterns[] = { "Read",    "File",    "Run|Read", "Task|Term", "Run*",
                                            "*minal*", "Ta,Run*", "In|[RX]",  "(Run)|x" };
    static const char *const tools[] = { "ReadFile", "RunInTerminal" };

    for (size_t i = 0; i < COUNT_OF(patterns) * COUNT_OF(tools); i++) {
        struct slice tool = slice_from_cstr(tools[i % COUNT_OF(tools)]);
        CLEANUP(arena_clear) struct arena a;
        enum matcher_rule rule;

        arena_init(&a, 1024 * 1024);

        struct slice advice = near_miss(slice_from_cstr(patterns[i / COUNT_OF(tools)]), tool, &a);
        struct slice pattern = pattern_in(advice);
        CLEANUP(matcher_freep) struct matcher *m = matcher_new(pattern);

        if (pattern.len > 0 && !matcher_matches(m, tool, &rule)) {
            fail_msg("for %.*s: %.*s", SLICE_ARG(tool), SLICE_ARG(advice));
        }
    }
}

static void each_mistake_gets_its_own_advice(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *tool;
        const char *advice;
    } cases[] = {
        { "", "ReadFile", "has no matcher" },
        { "readfile", "ReadFile", "differs in case only" },
        { "Read", "ReadFile", "matches the beginning of the name" },
        { "File", "ReadFile", "matches a part of the name" },
        { "Run|Read", "RunInTerminal", "write '(Run|Read).*'" },
        { "Term|Read", "RunInTerminal", "write '.*(Term|Read).*'" },
        { "Run*", "RunInTerminal", "write 'Run.*'" },
        { "*Terminal", "RunInTerminal", "write '.*Terminal'" },
        { "Task, Agent", "Agent", "write 'Task|Agent'" },
        { "RunInTerminal(rm *)", "RunInTerminal", "looks like a pattern for arguments" },
        { "RunInTerminal: rm", "RunInTerminal", "looks like a pattern for arguments" },
        { "(Task|Agent", "Agent", "does not compile" },
        { "ReadFiles", "ReadFile", "nearly the name" },
        { "Task", "ListDir", "add its name: 'Task|ListDir'" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_clear) struct arena a;

        arena_init(&a, 1024 * 1024);

        struct slice advice =
            near_miss(slice_from_cstr(cases[i].pattern), slice_from_cstr(cases[i].tool), &a);

        if (!memmem(advice.ptr, advice.len, cases[i].advice, strlen(cases[i].advice))) {
            fail_msg("'%s' for %s: %.*s", cases[i].pattern, cases[i].tool, SLICE_ARG(advice));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_that_is_advised_matches),
        cmocka_unit_test(each_mistake_gets_its_own_advice),
    };

    return cmocka_run_group_tests_name("queries/near_miss", tests, NULL, NULL);
}
