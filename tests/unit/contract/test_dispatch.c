#include "collector/contract/contract.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "tests/unit/unit.h"

static void a_file_of_a_dispatch_is_private_and_goes_with_it(void **state)
{
    (void)state;
    struct dispatch d;
    struct stat st;
    struct err err;
    const char *path = NULL;
    char dir[256];
    char inner[300];

    dispatch_init(&d, NULL, SLICE("{}"));
    assert_null(d.dir);
    assert_true(dispatch_file(&d, "x.json", SLICE("first"), &path, &err));
    assert_true(dispatch_file(&d, "x.json", SLICE("2nd"), &path, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(d.dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    /* A hook may leave things beside ours. */
    (void)snprintf(dir, sizeof(dir), "%s", d.dir);
    (void)snprintf(inner, sizeof(inner), "%s/left", dir);
    assert_int_equal(mkdir(inner, 0700), 0);
    (void)snprintf(inner, sizeof(inner), "%s/left/by-a-hook", dir);
    assert_int_equal(symlink("/etc", inner), 0);
    dispatch_done(&d);

    assert_int_equal(stat(dir, &st), -1);
    assert_int_equal(stat("/etc/passwd", &st), 0);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    struct dispatch d;
    struct err err;
    const char *path = NULL;
    const char *before = getenv("TMPDIR");
    char kept[256];

    (void)snprintf(kept, sizeof(kept), "%s", before ? before : "");
    assert_int_equal(setenv("TMPDIR", "/no/such/folder", 1), 0);
    dispatch_init(&d, NULL, SLICE("{}"));
    assert_false(dispatch_file(&d, "x", SLICE(""), &path, &err));
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.text, "/no/such/folder"));
    dispatch_done(&d);
    assert_int_equal(before ? setenv("TMPDIR", kept, 1) : unsetenv("TMPDIR"), 0);
}

static void a_digest_depends_on_where_texts_are_divided(void **state)
{
    (void)state;
    struct hookset one = { 0 };
    struct hookset two = { 0 };
    struct hookset again = { 0 };

    hookset_digest_add(&one, SLICE("ab"));
    hookset_digest_add(&one, SLICE("c"));
    hookset_digest_add(&two, SLICE("a"));
    hookset_digest_add(&two, SLICE("bc"));
    hookset_digest_add(&again, SLICE("ab"));
    hookset_digest_add(&again, SLICE("c"));

    assert_memory_not_equal(&one.digest, &two.digest, sizeof(one.digest));
    assert_memory_equal(&one.digest, &again.digest, sizeof(one.digest));
}

static void contracts_are_found_by_their_exact_name(void **state)
{
    (void)state;

    assert_non_null(contract_find(SLICE("sre")));
    assert_null(contract_find(SLICE("SRE")));
    assert_null(contract_find(SLICE("")));
    assert_non_null(strstr(contract_names(), "sre"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_a_dispatch_is_private_and_goes_with_it),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_an_error),
        cmocka_unit_test(a_digest_depends_on_where_texts_are_divided),
        cmocka_unit_test(contracts_are_found_by_their_exact_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
