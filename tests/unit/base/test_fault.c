#include "collector/base/fault.h"

#include <string.h>

#include "tests/unit/unit.h"

static void faults_stand_by_line_and_files_as_they_came(void **state)
{
    CLEANUP(faults_done) struct faults f;
    const char *wanted[] = { "b0", "b2", "b2 again", "b9", "a1" };
    size_t n = 0;

    (void)state;
    faults_init(&f);
    faults_add(&f, FAULT_ERROR, "b", 9, NULL, "b9");
    faults_add(&f, FAULT_ERROR, "a", 1, NULL, "a1");
    faults_add(&f, FAULT_WARNING, "b", 2, "key", "b2");
    faults_add(&f, FAULT_ERROR, "b", 2, NULL, "b2 again");
    faults_add(&f, FAULT_ERROR, "b", 0, NULL, "b0");

    for (const struct fault *one = f.first; one; one = one->next) {
        assert_string_equal(one->text, wanted[n++]);
    }
    assert_int_equal(n, COUNT_OF(wanted));
    assert_int_equal(f.errors, 4);
    assert_int_equal(f.warnings, 1);
}

static void a_text_does_not_repeat_its_file(void **state)
{
    CLEANUP(faults_done) struct faults f;

    (void)state;
    faults_init(&f);
    faults_add(&f, FAULT_ERROR, "/a.yaml", 0, NULL, "%s: Permission denied", "/a.yaml");
    faults_add(&f, FAULT_ERROR, "/b.yaml", 0, NULL, "/b.yamlx: Permission denied");

    assert_string_equal(f.first->text, "Permission denied");
    assert_string_equal(f.first->next->text, "/b.yamlx: Permission denied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_stand_by_line_and_files_as_they_came),
        cmocka_unit_test(a_text_does_not_repeat_its_file),
    };

    return cmocka_run_group_tests_name("base/fault", tests, NULL, NULL);
}
