#include "collector/match/matcher.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/base/mem.h"
#include "tests/unit/unit.h"

struct comparison {
    const char *pattern;
    const char *name;
    bool matches;
    enum matcher_rule rule;
};

static void check_all(const struct comparison *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct matcher *m = matcher_new(slice_from_cstr(cases[i].pattern));
        enum matcher_rule rule = MATCHER_BY_ANY;
        bool matches = matcher_matches(m, slice_from_cstr(cases[i].name), &rule);

        matcher_free(m);
        if (matches != cases[i].matches || rule != cases[i].rule) {
            fail_msg("'%s' on '%s': matches %d by rule %d", cases[i].pattern, cases[i].name,
                     matches, (int)rule);
        }
    }
}

static void a_pattern_must_match_the_whole_name(void **state)
{
    (void)state;
    static const struct comparison cases[] = {
        { "ReadFile", "ReadFile", true, MATCHER_BY_REGEX },
        { "Read", "ReadFile", false, MATCHER_BY_REGEX },
        { "File", "ReadFile", false, MATCHER_BY_REGEX },
        { "Read|ReadFile", "ReadFile", true, MATCHER_BY_REGEX },
        { "Read|CreateFile", "ReadFile", false, MATCHER_BY_REGEX },
        { "Create|File", "CreateFile", false, MATCHER_BY_REGEX },
        { "^(Task|Agent)$", "Agent", true, MATCHER_BY_REGEX },
        { "^(Task|Agent)$", "Agents", false, MATCHER_BY_REGEX },
        { "Task", "Task\n", false, MATCHER_BY_REGEX },
        { "^Task$", "Task\n", false, MATCHER_BY_REGEX },
        { "(?m)^Task$", "Task\nx", false, MATCHER_BY_REGEX },
        { ".*", "mcp__srv__tool", true, MATCHER_BY_REGEX },
        { ".*", "", true, MATCHER_BY_REGEX },
        { "mcp__.*", "mcp__srv__tool", true, MATCHER_BY_REGEX },
        { "readfile", "ReadFile", false, MATCHER_BY_REGEX },
        { "(?i)readfile", "ReadFile", true, MATCHER_BY_REGEX },
    };

    check_all(cases, COUNT_OF(cases));
}

static void a_star_matches_every_name_and_an_empty_pattern_none(void **state)
{
    (void)state;
    static const struct comparison cases[] = {
        { "*", "ReadFile", true, MATCHER_BY_ANY }, { "*", "", true, MATCHER_BY_ANY },
        { "*", "\xff", true, MATCHER_BY_ANY },     { "", "ReadFile", false, MATCHER_BY_REGEX },
        { "", "", false, MATCHER_BY_REGEX },
    };

    check_all(cases, COUNT_OF(cases));
}

static void a_pattern_that_does_not_compile_is_an_exact_string(void **state)
{
    (void)state;
    static const struct comparison cases[] = {
        { "Read(", "Read(", true, MATCHER_BY_EXACT },
        { "Read(", "ReadFile", false, MATCHER_BY_EXACT },
        { "Read(", "read(", false, MATCHER_BY_EXACT },
        { "**", "**", true, MATCHER_BY_EXACT },
        { "**", "x", false, MATCHER_BY_EXACT },
        { "[a-", "[a-", true, MATCHER_BY_EXACT },
        { "a{2,1}", "aa", false, MATCHER_BY_EXACT },
        { "a\\C", "ab", false, MATCHER_BY_EXACT },
        { "\xff", "\xff", true, MATCHER_BY_EXACT },
    };

    check_all(cases, COUNT_OF(cases));
}

static void a_name_is_characters_not_bytes(void **state)
{
    (void)state;
    static const struct comparison cases[] = {
        { "caf.", "caf\xc3\xa9", true, MATCHER_BY_REGEX },
        { "....", "\xf0\x9f\x98\x80", false, MATCHER_BY_REGEX },
        { "\\w+", "\xc3\xa9t\xc3\xa9", true, MATCHER_BY_REGEX },
        { "Read.*", "Read\xff", false, MATCHER_BY_EXACT },
    };

    check_all(cases, COUNT_OF(cases));
}

static int64_t cpu_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* A name of n times `c`, then '!'; released with free(). */
static char *long_name(size_t n, char c)
{
    char *name = xcalloc(n + 2, 1);

    memset(name, c, n);
    name[n] = '!';
    return name;
}

static void a_pattern_that_explodes_ends_in_time_as_an_exact_string(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(a+)+",
        "(a|aa)+",
        "(a|a?)+",
        "(.*)*b",
        "(a*)*b",
        "(?:a?){30}a{30}",
        "(.*a){20}",
        "(.*)(.*)(.*)(.*)(.*)\\1\\2x",
        "(?=(a+)+b)x",
        "(a(?1)?a|a)+b",
        "((a{1,30}){1,30}){1,30}b",
        "(?:(?:a+)+)+$",
    };
    static const size_t lengths[] = { 30, 200, 5000, 300000 };

    for (size_t p = 0; p < COUNT_OF(patterns); p++) {
        struct matcher *m = matcher_new(slice_from_cstr(patterns[p]));

        assert_string_equal(matcher_fault(m), "");
        for (size_t l = 0; l < COUNT_OF(lengths); l++) {
            char *name = long_name(lengths[l], 'a');
            enum matcher_rule rule;
            int64_t began = cpu_us();
            bool matches = matcher_matches(m, slice_from_cstr(name), &rule);
            int64_t took = cpu_us() - began;

            free(name);
            assert_false(matches);
            if (took > (int64_t)MATCHER_LIMIT_MS * 1000) {
                fail_msg("'%s' on %zu bytes took %lld us", patterns[p], lengths[l],
                         (long long)took);
            }
        }
        matcher_free(m);
    }
}

static void a_pattern_that_explodes_still_fires_on_its_own_text(void **state)
{
    (void)state;
    static const struct comparison cases[] = {
        { "((.*)*)*!{9}", "((.*)*)*!{9}", true, MATCHER_BY_EXACT },
        { "((.*)*)*!{9}", "((.*)*)*!{8}", false, MATCHER_BY_EXACT },
    };

    check_all(cases, COUNT_OF(cases));
}

static void a_long_name_that_needs_no_backtracking_matches(void **state)
{
    (void)state;
    struct matcher *m = matcher_new(SLICE("mcp__.*"));
    char *name = long_name(1000000, 'a');
    enum matcher_rule rule;

    memcpy(name, "mcp__", 5);
    assert_true(matcher_matches(m, slice_from_cstr(name), &rule));
    assert_int_equal(rule, MATCHER_BY_REGEX);

    matcher_free(m);
    free(name);
}

static void a_fault_tells_what_and_where(void **state)
{
    (void)state;
    struct matcher *bad = matcher_new(SLICE("Read("));
    struct matcher *good = matcher_new(SLICE("Read"));

    assert_non_null(strstr(matcher_fault(bad), "parenthesis"));
    assert_non_null(strstr(matcher_fault(bad), "at offset 5"));
    assert_string_equal(matcher_fault(good), "");

    matcher_free(bad);
    matcher_free(good);
    matcher_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_must_match_the_whole_name),
        cmocka_unit_test(a_star_matches_every_name_and_an_empty_pattern_none),
        cmocka_unit_test(a_pattern_that_does_not_compile_is_an_exact_string),
        cmocka_unit_test(a_name_is_characters_not_bytes),
        cmocka_unit_test(a_pattern_that_explodes_ends_in_time_as_an_exact_string),
        cmocka_unit_test(a_pattern_that_explodes_still_fires_on_its_own_text),
        cmocka_unit_test(a_long_name_that_needs_no_backtracking_matches),
        cmocka_unit_test(a_fault_tells_what_and_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
