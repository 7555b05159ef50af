#include "collector/record/payload.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

/* A literal that may hold NULs. */
#define TEXT(lit)                             \
    {                                         \
        .ptr = "" lit, .len = sizeof(lit) - 1 \
    }

static struct json_value checked(const char *text)
{
    struct json_value v = { 0 };
    struct err err;

    if (!payload_check(slice_from_cstr(text), &v, &err)) {
        fail_msg("%s: %s", text, err.text);
    }
    return v;
}

static bool text_is(struct slice s, const char *expected)
{
    return slice_equal(s, slice_from_cstr(expected));
}

static void all_that_rfc_8259_allows_is_accepted(void **state)
{
    (void)state;
    static const struct slice cases[] = {
        TEXT("[]"),
        TEXT("{}"),
        TEXT(" [] "),
        TEXT("[[]   ]"),
        TEXT("[\"\"]"),
        TEXT("\t\r\n {\"a\"\t:\r\n1 , \"b\":[ ]}\n"),
        TEXT("null"),
        TEXT("true"),
        TEXT("false"),
        TEXT("\"text\""),
        TEXT("\"\""),
        TEXT("0"),
        TEXT("-0"),
        TEXT("-1"),
        TEXT("[123e65]"),
        TEXT("[0e+1]"),
        TEXT("[0e1]"),
        TEXT("[ 4]"),
        TEXT("[-0.000000000000000000000000000000000000000000000000000000000000000001]"),
        TEXT("[20e1]"),
        TEXT("[-123]"),
        TEXT("[1E22]"),
        TEXT("[1E-2]"),
        TEXT("[1E+2]"),
        TEXT("[123.456e78]"),
        TEXT("[1e99999]"),
        TEXT("[123456789012345678901234567890]"),
        TEXT("{\"a\":1,\"a\":2}"),
        TEXT("{\"a\":1,\"a\":1}"),
        TEXT("{\"\":0}"),
        TEXT("{\"foo\\u0000bar\": 42}"),
        TEXT("{\"min\":-1.0e+28,\"max\":1.0e+28}"),
        TEXT("[1,null,null,null,2]"),
        TEXT("[\"\\u0060\\u012a\\u12AB\"]"),
        TEXT("[\"\\uD801\\udc37\"]"),
        TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
        TEXT("[\"\\\\u0000\"]"),
        TEXT("[\"\\\\a\"]"),
        TEXT("[\"a/*b*/c/*d//e\"]"),
        TEXT("[\"\\u0000\"]"),
        TEXT("[\"\\uFFFE\"]"),
        TEXT("[\"\x7f\"]"),
        TEXT("[\"\xc2\x80\xe2\x80\xa8\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xef\xbf\xbf\"]"),
        TEXT("\"\xcf\x80 seven \xcf\x80\xcf\x80\xcf\x80\xcf\x80\xcf\x80\""),
        TEXT("[\"a lone surrogate passes: \\ud800\"]"),
        TEXT("[\"\\uDFAA\", \"\\uD888\\u1234\", \"\\uD800\\uD800\\n\", \"\\uDd1e\\uD834\"]"),
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json_value v;
        struct err err = { 0 };

        if (!payload_check(cases[i], &v, &err)) {
            fail_msg("%.*s: %s", SLICE_ARG(cases[i]), err.text);
        }
    }
}

static void all_else_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        struct slice text;
        size_t line;
        size_t column;
        const char *what;
    } cases[] = {
        { TEXT(""), 1, 1, "too early" },
        { TEXT(" \n "), 2, 2, "too early" },
        { TEXT("["), 1, 2, "too early" },
        { TEXT("{"), 1, 2, "too early" },
        { TEXT("[1"), 1, 3, "too early" },
        { TEXT("[1,"), 1, 4, "too early" },
        { TEXT("[\"a"), 1, 4, "too early" },
        { TEXT("[\"a\","), 1, 6, "too early" },
        { TEXT("{\"a\""), 1, 5, "too early" },
        { TEXT("{\"a\":"), 1, 6, "too early" },
        { TEXT("{\"a\":1,"), 1, 8, "too early" },
        { TEXT("\"\\"), 1, 3, "too early" },
        { TEXT("\"\\u12"), 1, 6, "too early" },
        { TEXT("-"), 1, 2, "too early" },
        { TEXT("1."), 1, 3, "too early" },
        { TEXT("1e"), 1, 3, "too early" },
        { TEXT("tru"), 1, 1, "neither" },
        { TEXT("[nul]"), 1, 2, "neither" },
        { TEXT("[fals\xff]"), 1, 2, "neither" },
        { TEXT("[truth]"), 1, 2, "neither" },
        { TEXT("[True]"), 1, 2, "a value" },
        { TEXT("[NaN]"), 1, 2, "a value" },
        { TEXT("[Infinity]"), 1, 2, "a value" },
        { TEXT("[-Infinity]"), 1, 3, "digit" },
        { TEXT("[+1]"), 1, 2, "a value" },
        { TEXT("[.5]"), 1, 2, "a value" },
        { TEXT("[-.5]"), 1, 3, "digit" },
        { TEXT("[1.e1]"), 1, 4, "digit" },
        { TEXT("[1.]"), 1, 4, "digit" },
        { TEXT("[1e+]"), 1, 5, "digit" },
        { TEXT("[1e1.5]"), 1, 5, "',' or ']'" },
        { TEXT("[012]"), 1, 3, "',' or ']'" },
        { TEXT("[-012]"), 1, 4, "',' or ']'" },
        { TEXT("[0x1]"), 1, 3, "',' or ']'" },
        { TEXT("[1 000]"), 1, 4, "',' or ']'" },
        { TEXT("[1_000]"), 1, 3, "',' or ']'" },
        { TEXT("[\xef\xbc\x91]"), 1, 2, "a value" },
        { TEXT("[1,]"), 1, 4, "a value" },
        { TEXT("[,1]"), 1, 2, "a value" },
        { TEXT("[1,,2]"), 1, 4, "a value" },
        { TEXT("[1}"), 1, 3, "',' or ']'" },
        { TEXT("[1:2]"), 1, 3, "',' or ']'" },
        { TEXT("[\"a\" \"b\"]"), 1, 6, "',' or ']'" },
        { TEXT("{\"a\":1]"), 1, 7, "',' or '}'" },
        { TEXT("{\"a\":1 \"b\":2}"), 1, 8, "',' or '}'" },
        { TEXT("{\"a\" 1}"), 1, 6, "':'" },
        { TEXT("{\"a\",1}"), 1, 5, "':'" },
        { TEXT("{\"a\"::1}"), 1, 6, "a value" },
        { TEXT("{\"a\":}"), 1, 6, "a value" },
        { TEXT("{\"a\":1,}"), 1, 8, "name in quotes" },
        { TEXT("{,\"a\":1}"), 1, 2, "name in quotes" },
        { TEXT("{a:1}"), 1, 2, "name in quotes" },
        { TEXT("{'a':1}"), 1, 2, "name in quotes" },
        { TEXT("{1:1}"), 1, 2, "name in quotes" },
        { TEXT("['a']"), 1, 2, "a value" },
        { TEXT("[1] x"), 1, 5, "behind" },
        { TEXT("[1]]"), 1, 4, "behind" },
        { TEXT("{}{}"), 1, 3, "behind" },
        { TEXT("1 2"), 1, 3, "behind" },
        { TEXT("\"a\"\"b\""), 1, 4, "behind" },
        { TEXT("[] /* comment */"), 1, 4, "behind" },
        { TEXT("// comment\n[]"), 1, 1, "a value" },
        { TEXT("\xef\xbb\xbf[]"), 1, 1, "a value" },
        { TEXT("[\f]"), 1, 2, "a value" },
        { TEXT("[\xc2\xa0]"), 1, 2, "a value" },
        { TEXT("[\0]"), 1, 2, "a value" },
        { TEXT("[]\0"), 1, 3, "behind" },
        { TEXT("[\"\0\"]"), 1, 3, "control" },
        { TEXT("[\"\x1f\"]"), 1, 3, "control" },
        { TEXT("[\"12345678\n\"]"), 1, 11, "control" },
        { TEXT("[\"a\tb\"]"), 1, 4, "control" },
        { TEXT("[\"\\x00\"]"), 1, 4, "escape" },
        { TEXT("[\"\\a\"]"), 1, 4, "escape" },
        { TEXT("[\"\\U0041\"]"), 1, 4, "escape" },
        { TEXT("[\"\\\0\"]"), 1, 4, "escape" },
        { TEXT("[\"\\u00g0\"]"), 1, 7, "hexadecimal" },
        { TEXT("[\"\\u12\"]"), 1, 7, "hexadecimal" },
        { TEXT("[\"\\uD800\\\"]"), 1, 12, "too early" },
        { TEXT("[\"\xff\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"\xc0\xaf\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"\xe0\x80\x80\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"\xed\xa0\x80\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"\xf4\x90\x80\x80\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"\xe2\x82\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"\x80\"]"), 1, 3, "UTF-8" },
        { TEXT("[\"12345678\xe9\"]"), 1, 11, "UTF-8" },
        { TEXT("{\"\xe9\":1}"), 1, 3, "UTF-8" },
        { TEXT("{\n  \"\xc3\xa4\xc3\xb6\": x\n}"), 2, 9, "a value" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json_value v = { 0 };
        struct err err = { 0 };
        char place[64];

        if (payload_check(cases[i].text, &v, &err)) {
            fail_msg("accepted: %.*s", SLICE_ARG(cases[i].text));
        }
        (void)snprintf(place, sizeof(place), "line %zu, column %zu: ", cases[i].line,
                       cases[i].column);
        if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, cases[i].what)) {
            fail_msg("%.*s: %s", SLICE_ARG(cases[i].text), err.text);
        }
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(v.raw.ptr);
    }
}

static bool nested_is_accepted(size_t depth, const char *open, const char *close)
{
    struct buf b;
    struct json_value v;
    struct err err = { 0 };

    buf_init(&b, 64 * 1024);
    for (size_t i = 0; i < depth; i++) {
        buf_add(&b, slice_from_cstr(open));
    }
    buf_add(&b, SLICE("0"));
    for (size_t i = 0; i < depth; i++) {
        buf_add(&b, slice_from_cstr(close));
    }

    bool ok = payload_check(buf_slice(&b), &v, &err);

    buf_done(&b);
    assert_true(ok || strstr(err.text, "deeper than 128"));
    return ok;
}

static void nesting_ends_at_its_limit(void **state)
{
    (void)state;

    assert_true(nested_is_accepted(PAYLOAD_MAX_DEPTH, "[", "]"));
    assert_true(nested_is_accepted(PAYLOAD_MAX_DEPTH, "{\"a\":", "}"));
    assert_false(nested_is_accepted(PAYLOAD_MAX_DEPTH + 1, "[", "]"));
    assert_false(nested_is_accepted(PAYLOAD_MAX_DEPTH + 1, "{\"a\":", "}"));
    assert_false(nested_is_accepted(5000, "[1,", ",1]"));
}

static void many_values_side_by_side_are_not_deep(void **state)
{
    (void)state;
    struct buf b;
    struct json_value v;
    struct err err = { 0 };

    buf_init(&b, 64 * 1024);
    buf_add(&b, SLICE("[0"));
    for (int i = 0; i < 1000; i++) {
        buf_add(&b, SLICE(",[{}],{\"a\":[]}"));
    }
    buf_add(&b, SLICE("]"));
    assert_true(payload_check(buf_slice(&b), &v, &err));
    buf_done(&b);
}

static void the_value_has_no_blanks_around_it(void **state)
{
    (void)state;

    struct json_value v = checked(" \n[ 1 ]\t");

    assert_int_equal(v.kind, JSON_KIND_ARRAY);
    assert_true(text_is(v.raw, "[ 1 ]"));
}

static void the_first_byte_tells_the_kind(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_kind kind;
    } cases[] = {
        { "null", JSON_KIND_NULL },    { "true", JSON_KIND_TRUE }, { "false", JSON_KIND_FALSE },
        { "-1", JSON_KIND_NUMBER },    { "7", JSON_KIND_NUMBER },  { "\"\"", JSON_KIND_STRING },
        { "[null]", JSON_KIND_ARRAY }, { "{}", JSON_KIND_OBJECT },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(checked(cases[i].text).kind, cases[i].kind);
    }
}

static void get_finds_the_first_member_of_a_name(void **state)
{
    (void)state;
    struct json_value v =
        checked("{\"a\" : {\"b\":[1, \"}\\\"\"]} , \"b\":1,\"b\":2, \"\\u0063\":3,"
                "\"d\\\\\":4,\"\":5,\"e\":null,\"\xc3\xa4\":7 }");
    static const struct {
        const char *key;
        const char *raw;
    } cases[] = {
        { "a", "{\"b\":[1, \"}\\\"\"]}" },
        { "b", "1" },
        { "c", "3" },
        { "d\\", "4" },
        { "", "5" },
        { "e", "null" },
        { "\xc3\xa4", "7" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json_value found = payload_get(v, slice_from_cstr(cases[i].key));

        if (!text_is(found.raw, cases[i].raw)) {
            fail_msg("%s: %.*s", cases[i].key, SLICE_ARG(found.raw));
        }
    }
    assert_int_equal(payload_get(v, SLICE("B")).kind, JSON_KIND_NONE);
    assert_int_equal(payload_get(v, SLICE("aa")).kind, JSON_KIND_NONE);
}

static void get_in_what_is_no_object_finds_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = { "[\"a\",1]", "\"a\"", "1", "null", "[]", "{}" };
    struct json_value none = { 0 };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(payload_get(checked(texts[i]), SLICE("a")).kind, JSON_KIND_NONE);
    }
    assert_int_equal(payload_get(none, SLICE("a")).kind, JSON_KIND_NONE);
}

/* Keys and values one after the other, parted by blanks. */
static void walk(const char *text, struct buf *out)
{
    struct payload_iter it = payload_iter(checked(text));
    struct json_value value;
    struct slice key;

    while (payload_next(&it, &key, &value)) {
        buf_addf(out, "%.*s=%.*s ", SLICE_ARG(key), SLICE_ARG(value.raw));
    }
}

static void iteration_sees_every_value_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        { "{}", "" },
        { "[ ]", "" },
        { "\"a,b\"", "" },
        { "{\"a\":1,\"b\" : [2,{}] , \"a\":\"x\" }", "\"a\"=1 \"b\"=[2,{}] \"a\"=\"x\" " },
        { "[1, true,null,\"]\",[ ],-2.5e3 ]", "=1 =true =null =\"]\" =[ ] =-2.5e3 " },
        { "[\"\\\\\",\"\\\"\",\"a\\\\\\\"\"]", "=\"\\\\\" =\"\\\"\" =\"a\\\\\\\"\" " },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf out;

        buf_init(&out, 4096);
        walk(cases[i].text, &out);
        assert_string_equal(buf_cstr(&out), cases[i].expected);
        buf_done(&out);
    }
}

static void iteration_does_not_need_the_key(void **state)
{
    (void)state;
    struct payload_iter it = payload_iter(checked("{\"a\":1}"));
    struct json_value value;

    assert_true(payload_next(&it, NULL, &value));
    assert_true(text_is(value.raw, "1"));
    assert_false(payload_next(&it, NULL, &value));
}

static void a_string_is_read_with_its_escapes_resolved(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        const char *text;
        uint32_t replaced;
    } cases[] = {
        { "\"\"", "", 0 },
        { "\"abc\"", "abc", 0 },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 0 },
        { "\"\\u0041\\u00e4\\u20AC\"", "A\xc3\xa4\xe2\x82\xac", 0 },
        { "\"\\uD83D\\uDE00\"", "\xf0\x9f\x98\x80", 0 },
        { "\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 0 },
        { "\"\\u07ff\\u0800\\uffff\"", "\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 0 },
        { "\"a\\u0000b\"",
          "a\xef\xbf\xbd"
          "b",
          1 },
        { "\"\\ud800\"", "\xef\xbf\xbd", 1 },
        { "\"\\udc00\\ud800\"", "\xef\xbf\xbd\xef\xbf\xbd", 2 },
        { "\"\\ud800\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 1 },
        { "\"\\ud800\\n\"", "\xef\xbf\xbd\n", 1 },
        { "\"\\ud800\\\\udc00\"", "\xef\xbf\xbd\\udc00", 1 },
        { "\"\\ufffd\"", "\xef\xbf\xbd", 0 },
        { "17", "", 0 },
        { "", "", 0 },
    };
    struct arena a;

    arena_init(&a, 64 * 1024);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice text;
        uint32_t replaced = 10;

        assert_true(payload_string(slice_from_cstr(cases[i].raw), &a, &text, &replaced));
        if (!text_is(text, cases[i].text)) {
            fail_msg("%s: %.*s", cases[i].raw, SLICE_ARG(text));
        }
        assert_int_equal(replaced, 10 + cases[i].replaced);
    }
    arena_clear(&a);
}

static void a_string_without_escapes_is_not_copied(void **state)
{
    (void)state;
    struct arena none;
    struct slice text;
    struct json_value v = checked("\"plain\"");

    arena_init(&none, 0);
    assert_true(payload_string(v.raw, &none, &text, NULL));
    assert_ptr_equal(text.ptr, v.raw.ptr + 1);
    assert_false(payload_string(SLICE("\"\\n\""), &none, &text, NULL));
}

static void a_string_is_compared_as_what_it_spells(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        struct slice text;
        bool same;
    } cases[] = {
        { "\"abc\"", TEXT("abc"), true },
        { "\"abc\"", TEXT("ab"), false },
        { "\"abc\"", TEXT("abcd"), false },
        { "\"\"", TEXT(""), true },
        { "\"\\u0061b\\u0063\"", TEXT("abc"), true },
        { "\"\\u0061b\\u0063\"", TEXT("ab"), false },
        { "\"\\u0061b\"", TEXT("abc"), false },
        { "\"\\ud83d\\ude00\"", TEXT("\xf0\x9f\x98\x80"), true },
        { "\"a\\/b\"", TEXT("a/b"), true },
        { "\"\\u0000\"", TEXT("\0"), true },
        { "\"\\u0000\"", TEXT("\xef\xbf\xbd"), false },
        { "\"\\ud800\"", TEXT("\xef\xbf\xbd"), false },
        { "\"\\ud800\"", TEXT("\xed\xa0\x80"), false },
        { "abc", TEXT("b"), false },
        { "", TEXT(""), false },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (payload_string_is(slice_from_cstr(cases[i].raw), cases[i].text) != cases[i].same) {
            fail_msg("%s", cases[i].raw);
        }
    }
}

static void an_integer_is_a_whole_number_however_it_is_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } cases[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "0.000", true, 0 },
        { "0e99999999999999999999", true, 0 },
        { "3", true, 3 },
        { "-17", true, -17 },
        { "3.0", true, 3 },
        { "3e2", true, 300 },
        { "3E+2", true, 300 },
        { "30e-1", true, 3 },
        { "1.50e1", true, 15 },
        { "0.03e2", true, 3 },
        { "1000000000000000000000e-20", true, 10 },
        { "10.10e1", true, 101 },
        { "9223372036854775807", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "922337203685477580.7e1", true, INT64_MAX },
        { "9223372036854775808", false, 0 },
        { "-9223372036854775809", false, 0 },
        { "1e19", false, 0 },
        { "1e99999999999999999999", false, 0 },
        { "1e-99999999999999999999", false, 0 },
        { "0.5", false, 0 },
        { "3.05", false, 0 },
        { "3e-1", false, 0 },
        { "123456789012345678901234567890e-29", false, 0 },
        { "\"3\"", false, 0 },
        { "null", false, 0 },
        { "[3]", false, 0 },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t value = 4711;
        bool whole = payload_integer(checked(cases[i].text), &value);

        if (whole != cases[i].whole || value != (whole ? cases[i].value : 4711)) {
            fail_msg("%s: %d %lld", cases[i].text, whole, (long long)value);
        }
    }
}

static void no_prefix_of_a_text_is_read_past_its_end(void **state)
{
    (void)state;
    static const char text[] = "{\"a\\u00e4\\\\\":[1.5e-3,\"\xf0\x9f\x98\x80\\ud83d\\ude00\",null],"
                               "\"b\":{\"c\":false}}";

    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n + 1);
        struct json_value v;
        struct err err;

        memcpy(copy, text, n);
        assert_false(payload_check((struct slice){ .ptr = copy, .len = n }, &v, &err));
        free(copy);
    }
    assert_int_equal(checked(text).kind, JSON_KIND_OBJECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_rfc_8259_allows_is_accepted),
        cmocka_unit_test(all_else_is_refused_with_its_place),
        cmocka_unit_test(nesting_ends_at_its_limit),
        cmocka_unit_test(many_values_side_by_side_are_not_deep),
        cmocka_unit_test(the_value_has_no_blanks_around_it),
        cmocka_unit_test(the_first_byte_tells_the_kind),
        cmocka_unit_test(get_finds_the_first_member_of_a_name),
        cmocka_unit_test(get_in_what_is_no_object_finds_nothing),
        cmocka_unit_test(iteration_sees_every_value_in_order),
        cmocka_unit_test(iteration_does_not_need_the_key),
        cmocka_unit_test(a_string_is_read_with_its_escapes_resolved),
        cmocka_unit_test(a_string_without_escapes_is_not_copied),
        cmocka_unit_test(a_string_is_compared_as_what_it_spells),
        cmocka_unit_test(an_integer_is_a_whole_number_however_it_is_written),
        cmocka_unit_test(no_prefix_of_a_text_is_read_past_its_end),
    };

    return cmocka_run_group_tests_name("record/payload", tests, NULL, NULL);
}
