#include "queries/near_miss.h"

#include <string.h>

#include "tests/unit/unit.h"

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
        cmocka_unit_test(each_mistake_gets_its_own_advice),
    };

    return cmocka_run_group_tests_name("queries/near_miss", tests, NULL, NULL);
}
