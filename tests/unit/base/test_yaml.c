#include "collector/base/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/buf.h"
#include "tests/unit/unit.h"

static struct faults faults;

static int begin(void **state)
{
    (void)state;
    faults_init(&faults);
    return 0;
}

static int end(void **state)
{
    (void)state;
    faults_done(&faults);
    return 0;
}

static struct yaml *parse(const char *text)
{
    return yaml_parse("f.yaml", slice_from_cstr(text), &faults);
}

/* The only fault, which must be on `line` and say `text`. */
static void assert_fault(size_t line, const char *text)
{
    assert_int_equal(faults.errors, 1);
    assert_string_equal(faults.first->file, "f.yaml");
    assert_int_equal(faults.first->line, line);
    if (!strstr(faults.first->text, text)) {
        fail_msg("'%s' does not say '%s'", faults.first->text, text);
    }
}

static void plain_scalars_have_the_types_of_the_core_schema(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        const char *json;
    } cases[] = {
        { "~", "null" },
        { "null", "null" },
        { "[a, ]", "[\"a\"]" },
        { "k:", "{\"k\":null}" },
        { "true", "true" },
        { "FALSE", "false" },
        { "yes", "\"yes\"" },
        { "off", "\"off\"" },
        { "12", "12" },
        { "-7", "-7" },
        { "+7", "7" },
        { "0", "0" },
        { "0x1F", "31" },
        { "0o17", "15" },
        { "1.5", "1.5" },
        { "1e3", "1000.0" },
        { ".5", "0.5" },
        { "1.", "1.0" },
        { "-", "[null]" },
        { ".", "\".\"" },
        { "1_000", "\"1_000\"" },
        { "1:30", "\"1:30\"" },
        { "0x", "\"0x\"" },
        { "0b11", "\"0b11\"" },
        { "12a", "\"12a\"" },
        { "1e", "\"1e\"" },
        { "'12'", "\"12\"" },
        { "\"true\"", "\"true\"" },
        { "|\n  12\n", "\"12\\n\"" },
        { "''", "\"\"" },
        { "tRue", "\"tRue\"" },
        { "2026-11-30", "\"2026-11-30\"" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct yaml *y = parse(cases[i].yaml);

        assert_non_null(y);

        char *json = json_dumps(yaml_root(y, 0), JSON_COMPACT | JSON_ENCODE_ANY);

        assert_string_equal(json, cases[i].json);
        free(json);
        yaml_close(y);
    }
}

static void a_stream_keeps_its_documents_and_their_lines(void **state)
{
    (void)state;
    struct yaml *y = parse("# head\na: 1\n---\n\n# more\nb: 2\n---\n---\n- x\n");

    assert_non_null(y);
    assert_string_equal(yaml_file(y), "f.yaml");
    assert_int_equal(yaml_count(y), 4);
    assert_int_equal(yaml_root_line(y, 0), 2);
    assert_int_equal(yaml_root_line(y, 1), 6);
    assert_true(json_is_null(yaml_root(y, 2)));
    assert_int_equal(yaml_root_line(y, 3), 9);
    assert_int_equal(yaml_root_line(y, 4), 0);
    yaml_close(y);
}

static void an_empty_file_has_no_document(void **state)
{
    (void)state;
    struct yaml *y = parse("# nothing\n");

    assert_non_null(y);
    assert_int_equal(yaml_count(y), 0);
    yaml_close(y);
}

static void every_key_and_item_knows_its_line(void **state)
{
    (void)state;
    struct yaml *y =
        parse("on: true\noff: true\nlist:\n  - true\n  - true\n  - {a: true,\n     b: 1}\n");

    assert_non_null(y);

    const json_t *root = yaml_root(y, 0);
    const json_t *list = json_object_get(root, "list");
    const json_t *map = json_array_get(list, 2);

    assert_int_equal(yaml_key_line(y, root, "on"), 1);
    assert_int_equal(yaml_key_line(y, root, "off"), 2);
    assert_int_equal(yaml_key_line(y, root, "list"), 3);
    assert_int_equal(yaml_key_line(y, root, "none"), 0);
    assert_int_equal(yaml_key_line(y, map, "a"), 6);
    assert_int_equal(yaml_key_line(y, map, "b"), 7);
    yaml_close(y);
}

static void a_thousand_keys_keep_their_lines(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, 1024 * 1024);
    for (int i = 0; i < 1000; i++) {
        buf_addf(&b, "key%d: %d\n", i, i);
    }

    struct yaml *y = yaml_parse("f.yaml", buf_slice(&b), &faults);

    assert_non_null(y);
    assert_int_equal(json_object_size(yaml_root(y, 0)), 1000);
    for (size_t i = 0; i < 1000; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "key%zu", i);
        assert_int_equal(yaml_key_line(y, yaml_root(y, 0), key), i + 1);
    }
    yaml_close(y);
}

static void what_cannot_be_meant_is_a_fault_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        size_t line;
        const char *text;
    } cases[] = {
        { "a: 1\nb: 2\na: 3\n", 3, "stands twice, first on line 1" },
        { "a: 1\nb: {c: 1, d: 2,\n c: 3}\n", 3, "stands twice, first on line 2" },
        { "a: 1\nb: [1, 2\nc: 3\n", 3, "not YAML: did not find expected ',' or ']'" },
        { "a: b: c\n", 1, "mapping values are not allowed" },
        { "a:\n\t- 1\n", 2, "not YAML" },
        { "a: 1\nb: \xff\n", 2, "not YAML" },
        { "\n\na: \x01\n", 3, "not YAML" },
        { "a: \"\\ud800\"\n", 1, "not YAML" },
        { "a: \"x\\0y\"\n", 1, "NUL" },
        { "\"x\\0y\": 1\n", 1, "NUL" },
        { "a: !!str 1\n", 1, "tag" },
        { "a: 1\nb: !python/object x\n", 2, "tag" },
        { "a: !!map {}\n", 1, "tag" },
        { "- !!seq []\n", 1, "tag" },
        { "a: *b\n", 1, "not there" },
        { "a: &a [1, *a]\n", 1, "inside of what it stands for" },
        { "x: 1\n? [1, 2]\n: 2\n", 2, "a key must be" },
        { "x: &k k\n*k : 2\n", 2, "a key must be" },
        { "a: 1\nb: 0777\n", 2, "leading zero" },
        { "a: -012\n", 1, "leading zero" },
        { "a: .inf\n", 1, "finite" },
        { "a: 9223372036854775808\n", 1, "out of range" },
        { "a: 0xffffffffffffffff\n", 1, "out of range" },
        { "a: 1e999\n", 1, "out of range" },
        { "a: 1000000000000000000000000000000000000000000000000000000000000000000000\n", 1,
          "out of range" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_null(parse(cases[i].yaml));
        assert_fault(cases[i].line, cases[i].text);
        faults_done(&faults);
    }
}

static void a_fault_names_the_path_of_its_key(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        const char *key;
    } cases[] = {
        { "spec:\n  hooks:\n    - a: 1\n    - {t: 1, t: 2}\n", "spec.hooks[1].t" },
        { "- 1\n- 0x1\n- 09\n", "[2]" },
        { "a: 1\na: 1\n", "a" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_null(parse(cases[i].yaml));
        assert_string_equal(faults.first->key, cases[i].key);
        faults_done(&faults);
    }
}

static void an_alias_stands_for_its_anchor(void **state)
{
    (void)state;
    struct yaml *y = parse("a: &x\n  k: [1]\nb: *x\nc: &s text\nd: *s\n---\ne: &x 2\nf: *x\n");

    assert_non_null(y);

    const json_t *root = yaml_root(y, 0);

    assert_true(json_equal(json_object_get(root, "a"), json_object_get(root, "b")));
    assert_string_equal(json_string_value(json_object_get(root, "d")), "text");
    assert_int_equal(json_integer_value(json_object_get(yaml_root(y, 1), "f")), 2);
    yaml_close(y);
}

static void an_anchor_ends_with_its_document(void **state)
{
    (void)state;

    assert_null(parse("a: &x 1\n---\nb: *x\n"));
    assert_fault(3, "not there");
}

/* Each line holds the one before it ten times: 10^9 values in 300 bytes. */
static void aliases_that_multiply_are_refused(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, 4096);
    buf_addf(&b, "- &a0 [x]\n");
    for (int i = 1; i < 10; i++) {
        buf_addf(&b, "- &a%d [", i);
        for (int k = 0; k < 10; k++) {
            buf_addf(&b, "%s*a%d", k > 0 ? "," : "", i - 1);
        }
        buf_addf(&b, "]\n");
    }
    assert_null(yaml_parse("f.yaml", buf_slice(&b), &faults));
    assert_fault(6, "more than 200000 values");
}

/* Anchor i is an array around anchor i - 1. */
static void aliases_that_nest_are_refused(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, 4096);
    buf_addf(&b, "- &a0 [x]\n");
    for (int i = 1; i < 64; i++) {
        buf_addf(&b, "- &a%d [*a%d]\n", i, i - 1);
    }
    assert_null(yaml_parse("f.yaml", buf_slice(&b), &faults));
    assert_fault(64, "64 levels");
}

static void write_nested(struct buf *b, int levels)
{
    for (int i = 0; i < levels; i++) {
        buf_add_char(b, '[');
    }
    for (int i = 0; i < levels; i++) {
        buf_add_char(b, ']');
    }
}

static void sixty_four_levels_are_taken_and_one_more_is_not(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, 4096);
    write_nested(&b, YAML_MAX_DEPTH);

    struct yaml *y = yaml_parse("f.yaml", buf_slice(&b), &faults);

    assert_non_null(y);
    yaml_close(y);
    buf_clear(&b);
    write_nested(&b, YAML_MAX_DEPTH + 1);
    assert_null(yaml_parse("f.yaml", buf_slice(&b), &faults));
    assert_fault(1, "64 levels");
}

static void a_file_over_the_limit_is_refused(void **state)
{
    (void)state;
    size_t n = YAML_MAX_BYTES + 1;
    char *text = malloc(n);

    assert_non_null(text);
    memset(text, '#', n);

    struct yaml *y = yaml_parse("f.yaml", (struct slice){ .ptr = text, .len = n - 1 }, &faults);

    assert_non_null(y);
    yaml_close(y);
    assert_null(yaml_parse("f.yaml", (struct slice){ .ptr = text, .len = n }, &faults));
    assert_fault(0, "4 MiB");
    free(text);
}

static void a_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    struct yaml *y = parse("\xef\xbb\xbfkey: 1\n");

    assert_non_null(y);
    assert_int_equal(yaml_key_line(y, yaml_root(y, 0), "key"), 1);
    yaml_close(y);
}

static void a_file_is_read_from_disk(void **state)
{
    (void)state;
    char path[] = "/tmp/test_yaml.XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: [1]\n", 7), 7);
    (void)close(fd);

    struct yaml *y = yaml_load(path, &faults);

    (void)unlink(path);
    assert_non_null(y);
    assert_int_equal(json_array_size(json_object_get(yaml_root(y, 0), "a")), 1);
    yaml_close(y);
}

static void what_is_no_file_is_a_fault_that_names_it(void **state)
{
    (void)state;
    static const char *const paths[] = { "/nonexistent/h.yaml", "/tmp", "/dev/null" };

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_null(yaml_load(paths[i], &faults));
        assert_string_equal(faults.first->file, paths[i]);
        assert_non_null(strstr(faults.first->text, "cannot be read"));
        faults_done(&faults);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_scalars_have_the_types_of_the_core_schema),
        TEST(a_stream_keeps_its_documents_and_their_lines),
        TEST(an_empty_file_has_no_document),
        TEST(every_key_and_item_knows_its_line),
        TEST(a_thousand_keys_keep_their_lines),
        TEST(what_cannot_be_meant_is_a_fault_with_its_line),
        TEST(a_fault_names_the_path_of_its_key),
        TEST(an_alias_stands_for_its_anchor),
        TEST(an_anchor_ends_with_its_document),
        TEST(aliases_that_multiply_are_refused),
        TEST(aliases_that_nest_are_refused),
        TEST(sixty_four_levels_are_taken_and_one_more_is_not),
        TEST(a_file_over_the_limit_is_refused),
        TEST(a_byte_order_mark_is_passed_over),
        TEST(a_file_is_read_from_disk),
        TEST(what_is_no_file_is_a_fault_that_names_it),
    };

    return cmocka_run_group_tests_name("base/yaml", tests, NULL, NULL);
}
