/* Files of hook documents: sets, digests, scripts on disk. What documents may say is in the
 * vectors. */
#include "collector/contract/sre.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/base/fs.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

#define DOCUMENT(name, text)                                            \
    "---\nmetadata: {name: " name "}\nspec:\n  eventType: PreToolUse\n" \
    "  activationMode: always\n  hook: {type: command, matcher: '*', " text "}\n"
#define SCRIPT "script: \"#!/bin/bash\\nexit 0\\n\""

struct fixture {
    char scripts[48];
    struct hookset set;
    struct faults faults;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    if (fake_folder_begin(state) != 0) {
        return -1;
    }
    (void)snprintf(f->scripts, sizeof(f->scripts), "%s", fake_folder_file("scripts"));
    arena_init(&f->set.arena, 1 << 24);
    faults_init(&f->faults);
    return 0;
}

static void forget(struct fixture *f)
{
    if (f->set.free_own) {
        f->set.free_own(&f->set);
    }
    arena_clear(&f->set.arena);
    faults_done(&f->faults);
    f->set = (struct hookset){ 0 };
    arena_init(&f->set.arena, 1 << 24);
    faults_init(&f->faults);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    forget(f);
    free(f);
    return fake_folder_end(state);
}

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(fake_folder_file(name), "w");

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void load(struct fixture *f, const char *name)
{
    sre_load(&(struct hook_source){ .path = fake_folder_file(name), .script_dir = f->scripts },
             &f->set, &f->faults);
}

static const struct sre_hook *own(const struct fixture *f, size_t i)
{
    return f->set.hooks[i].own;
}

static void a_folder_gives_its_files_in_lexical_order(void **state)
{
    struct fixture *f = *state;

    write_file("b.yaml", DOCUMENT("second", SCRIPT));
    write_file("a.yml", DOCUMENT("first", SCRIPT));
    write_file("c.txt", "no hooks here: [");
    load(f, "");

    assert_int_equal(f->faults.errors, 0);
    assert_int_equal(f->set.n_hooks, 2);
    assert_true(slice_equal(f->set.hooks[0].name, SLICE("first")));
    assert_true(slice_equal(f->set.hooks[1].name, SLICE("second")));
}

static void names_are_compared_across_files(void **state)
{
    struct fixture *f = *state;

    write_file("a.yaml", DOCUMENT("same", SCRIPT));
    write_file("b.yaml", DOCUMENT("same", SCRIPT));
    load(f, "");

    assert_int_equal(f->faults.errors, 1);
    assert_non_null(strstr(f->faults.first->text, "a.yaml:2"));
}

static void a_path_that_is_not_there_is_a_fault(void **state)
{
    struct fixture *f = *state;

    load(f, "nowhere.yaml");

    assert_int_equal(f->faults.errors, 1);
    assert_non_null(strstr(f->faults.first->text, "No such file"));
}

static void a_script_becomes_a_private_file_named_by_its_digest(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    write_file("h.yaml", DOCUMENT("h", SCRIPT));
    load(f, "h.yaml");

    const char *const *argv = own(f, 0)->argv;

    assert_string_equal(argv[0], "/bin/bash");
    assert_null(argv[2]);
    assert_int_equal(strlen(strrchr(argv[1], '/') + 1), DIGEST_HEX_SIZE - 1);
    assert_int_equal(stat(argv[1], &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(f->scripts, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void a_script_that_was_changed_on_disk_is_written_again(void **state)
{
    struct fixture *f = *state;
    char path[256];
    char text[64] = "";

    write_file("h.yaml", DOCUMENT("h", SCRIPT));
    load(f, "h.yaml");
    (void)snprintf(path, sizeof(path), "%s", own(f, 0)->argv[1]);

    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_true(fputs("#!/bin/bash\nexit 9\n", out) >= 0);
    assert_int_equal(fclose(out), 0);
    forget(f);
    load(f, "h.yaml");

    FILE *in = fopen(path, "r");

    assert_non_null(in);
    assert_true(fread(text, 1, sizeof(text) - 1, in) > 0);
    assert_int_equal(fclose(in), 0);
    assert_string_equal(text, "#!/bin/bash\nexit 0\n");
}

static void the_digest_changes_with_a_script_and_with_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct digest first;

    write_file("h.yaml", DOCUMENT("h", SCRIPT));
    load(f, "h.yaml");
    first = f->set.digest;
    forget(f);
    write_file("h.yaml", "# a comment\n" DOCUMENT("h", SCRIPT));
    load(f, "h.yaml");
    assert_memory_equal(&first, &f->set.digest, sizeof(first));
    forget(f);
    write_file("h.yaml", DOCUMENT("h", "script: \"#!/bin/bash\\nexit 1\\n\""));
    load(f, "h.yaml");

    assert_memory_not_equal(&first, &f->set.digest, sizeof(first));
}

static void a_definition_holds_no_text_of_a_script_or_command(void **state)
{
    struct fixture *f = *state;
    struct slice text;

    write_file("h.yaml", DOCUMENT("h", "command: 'curl -H token-s3cret', failMode: block"));
    load(f, "h.yaml");
    text = f->set.hooks[0].definition;

    assert_null(memmem(text.ptr, text.len, "s3cret", 6));
    assert_non_null(memmem(text.ptr, text.len, "\"fail_mode\":\"block\"", 19));
    assert_non_null(memmem(text.ptr, text.len, "\"events\":[\"PreToolUse\"]", 23));
}

static void an_option_of_the_first_line_is_passed_on(void **state)
{
    struct fixture *f = *state;

    write_file("h.yaml", DOCUMENT("a", "script: \"#!/bin/bash -e\\nexit 0\\n\"")
                             DOCUMENT("b", "script: \"#!/usr/bin/env python3\\npass\\n\""));
    load(f, "h.yaml");

    assert_string_equal(own(f, 0)->argv[1], "-e");
    assert_string_equal(own(f, 1)->argv[0], "/usr/bin/env");
    assert_string_equal(own(f, 1)->argv[1], "python3");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_gives_its_files_in_lexical_order),
        TEST(names_are_compared_across_files),
        TEST(a_path_that_is_not_there_is_a_fault),
        TEST(a_script_becomes_a_private_file_named_by_its_digest),
        TEST(a_script_that_was_changed_on_disk_is_written_again),
        TEST(the_digest_changes_with_a_script_and_with_nothing_else),
        TEST(a_definition_holds_no_text_of_a_script_or_command),
        TEST(an_option_of_the_first_line_is_passed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
