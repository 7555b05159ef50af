#include "collector/contract/sre.h"

#include "tests/unit/unit.h"

static bool parse(const char *text, struct arena *a, struct sre_result *ret)
{
    struct err err;

    return sre_result_parse(slice_from_cstr(text), a, ret, &err);
}

static void a_result_decides_by_permission_then_legacy_then_ok(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum decision decision;
    } cases[] = {
        { "{}", DECISION_PASS },
        { "{\"ok\":true}", DECISION_PASS },
        { "{\"ok\":false}", DECISION_REJECT },
        { "{\"decision\":\"block\",\"ok\":true}", DECISION_REJECT },
        { "{\"decision\":\"approve\"}", DECISION_PASS },
        { "{\"decision\":\"approve\",\"ok\":false}", DECISION_REJECT },
        { "{\"hookSpecificOutput\":{\"permissionDecision\":\"allow\"}}", DECISION_ALLOW },
        { "{\"ok\":false,\"hookSpecificOutput\":{\"permissionDecision\":\"allow\"}}",
          DECISION_REJECT },
        { "{\"ok\":true,\"hookSpecificOutput\":{\"permissionDecision\":\"deny\"}}", DECISION_DENY },
        { "{\"decision\":\"block\",\"hookSpecificOutput\":{\"permissionDecision\":\"ask\"}}",
          DECISION_ASK },
        { "{\"hookSpecificOutput\":{\"permissionDecision\":null}}", DECISION_PASS },
        { "{\"ok\":false,\"ok\":true}", DECISION_REJECT },
        { "{\"o\\u006b\":false}", DECISION_REJECT },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena a;
        struct sre_result r;

        arena_init(&a, 1 << 20);
        assert_true(parse(cases[i].text, &a, &r));
        assert_int_equal(sre_result_decision(&r), cases[i].decision);
        arena_clear(&a);
    }
}

static void a_wrong_type_is_no_result(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "true",
        "{\"ok\":1}",
        "{\"ok\":null}",
        "{\"reason\":[]}",
        "{\"decision\":{}}",
        "{\"hookSpecificOutput\":\"x\"}",
        "{\"hookSpecificOutput\":{\"permissionDecision\":true}}",
        "{\"hookSpecificOutput\":{\"permissionDecision\":\"DENY\"}}",
        "{\"hookSpecificOutput\":{\"permissionDecision\":\"\"}}",
        "{\"hookSpecificOutput\":{\"additionalContext\":7}}",
        "{\"ok\":true} trailing",
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct arena a;
        struct sre_result r;

        arena_init(&a, 1 << 20);
        assert_false(parse(texts[i], &a, &r));
        arena_clear(&a);
    }
}

static void what_was_meant_is_guessed_from_broken_output(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum decision decision;
    } cases[] = {
        { "{'permissionDecision': 'deny'", DECISION_DENY },
        { "log\n{\"hookSpecificOutput\":{\"permissionDecision\" : \"ask\"}}", DECISION_ASK },
        { "{\"ok\": false,}", DECISION_REJECT },
        { "{'ok': False}", DECISION_REJECT },
        { "x {\"decision\":\"block\"}", DECISION_REJECT },
        { "{\"ok\": false, \"permissionDecision\": \"allow\",}", DECISION_REJECT },
        { "all good", DECISION_NONE },
        { "permissionDecision", DECISION_NONE },
        { "{\"ok\": true,}", DECISION_NONE },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(sre_result_guess(slice_from_cstr(cases[i].text)), cases[i].decision);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_decides_by_permission_then_legacy_then_ok),
        cmocka_unit_test(a_wrong_type_is_no_result),
        cmocka_unit_test(what_was_meant_is_guessed_from_broken_output),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
