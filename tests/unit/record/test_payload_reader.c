#include "collector/record/payload_reader.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/record/any_record.h"
#include "tests/unit/unit.h"

/* Is the value at hand this one? It is taken. */
static bool took(struct payload_reader *r, const char *raw)
{
    struct json_value v;

    return payload_take(r, &v) && slice_equal(v.raw, slice_from_cstr(raw));
}

/* Is the next member this one? The reader is then at its value. */
static bool went_to(struct payload_reader *r, const char *raw)
{
    struct slice key;

    return payload_member(r, &key) && slice_equal(key, slice_from_cstr(raw));
}

static bool is_container(enum json_kind kind)
{
    return kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY;
}

/* ---- By hand -------------------------------------------------------------------------- */

static void a_container_is_entered_or_taken_whole(void **state)
{
    (void)state;
    struct payload_reader r;
    struct slice key;
    struct err err;

    payload_reader_init(
        &r, SLICE(" {\"a\" : [1 , {\"b\":[null]} ,[]],\n\"c\":{ \"d\":\"}\" }, \"e\":true } "),
        &err);
    assert_true(payload_enter(&r, JSON_KIND_OBJECT));
    assert_true(went_to(&r, "\"a\""));
    assert_true(payload_enter(&r, JSON_KIND_ARRAY));
    assert_true(payload_item(&r));
    assert_true(took(&r, "1"));
    assert_true(payload_item(&r));
    assert_true(took(&r, "{\"b\":[null]}"));
    assert_true(payload_item(&r));
    assert_true(payload_enter(&r, JSON_KIND_ARRAY));
    assert_false(payload_item(&r));
    assert_false(payload_item(&r));
    assert_true(went_to(&r, "\"c\""));
    assert_true(payload_enter(&r, JSON_KIND_OBJECT));
    assert_true(went_to(&r, "\"d\""));
    assert_true(took(&r, "\"}\""));
    assert_false(payload_member(&r, &key));
    assert_true(went_to(&r, "\"e\""));
    assert_true(took(&r, "true"));
    assert_false(payload_member(&r, &key));
    assert_true(payload_reader_done(&r));
}

static void what_is_no_such_container_is_not_entered_and_can_still_be_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_kind kind;
    } cases[] = {
        { "[]", JSON_KIND_ARRAY },    { "{}", JSON_KIND_OBJECT }, { "null", JSON_KIND_NULL },
        { "true", JSON_KIND_TRUE },   { "-1", JSON_KIND_NUMBER }, { "0", JSON_KIND_NUMBER },
        { "false", JSON_KIND_FALSE }, { "9", JSON_KIND_NUMBER },  { "\"\"", JSON_KIND_STRING },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct payload_reader r;
        struct json_value v;
        struct err err;

        payload_reader_init(&r, slice_from_cstr(cases[i].text), &err);
        assert_int_equal(payload_kind(&r), cases[i].kind);
        assert_false(cases[i].kind != JSON_KIND_OBJECT && payload_enter(&r, JSON_KIND_OBJECT));
        assert_false(cases[i].kind != JSON_KIND_ARRAY && payload_enter(&r, JSON_KIND_ARRAY));
        assert_true(payload_take(&r, &v));
        assert_int_equal(v.kind, cases[i].kind);
        assert_true(slice_equal(v.raw, slice_from_cstr(cases[i].text)));
        assert_int_equal(payload_kind(&r), JSON_KIND_NONE);
        assert_true(payload_reader_done(&r));
    }
}

static void where_there_is_no_text_there_is_no_value(void **state)
{
    (void)state;
    struct payload_reader r;
    struct json_value v;
    struct err err;

    payload_reader_init(&r, (struct slice){ 0 }, &err);
    assert_int_equal(payload_kind(&r), JSON_KIND_NONE);
    assert_false(payload_enter(&r, JSON_KIND_OBJECT));
    assert_false(payload_take(&r, &v));
    assert_string_equal(err.text, "line 1, column 1: the text ends too early");
}

/* ---- The member that is expected --------------------------------------------------------- */

/* Past those members that the case begins with, is the next one `lead`? It is then at its value. */
static bool next_is(struct payload_reader *r, size_t passed, const char *lead)
{
    struct slice key;
    struct json_value v;

    assert_true(payload_enter(r, JSON_KIND_OBJECT));
    for (size_t i = 0; i < passed; i++) {
        assert_true(payload_member(r, &key));
        if (payload_kind(r) == JSON_KIND_OBJECT) { /* an empty one, in the cases */
            assert_true(payload_enter(r, JSON_KIND_OBJECT));
            assert_false(payload_member(r, &key));
        } else {
            assert_true(payload_take(r, &v));
        }
    }
    return payload_member_is(r, slice_from_cstr(lead));
}

static void a_member_is_gone_to_where_its_name_is_the_next(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t passed; /* members before the one in question */
        const char *lead;
        const char *value; /* NULL: it is another one, or there are blanks */
    } cases[] = {
        { "{\"a\":1}", 0, ",\"a\":", "1" },
        { "{ \"a\":1}", 0, ",\"a\":", "1" },
        { "{\"a\": 1 }", 0, ",\"a\":", "1" },
        { "{\"a\" :1}", 0, ",\"a\":", NULL },
        { "{\"ab\":1}", 0, ",\"a\":", NULL },
        { "{\"a\":1}", 0, ",\"ab\":", NULL },
        { "{\"ab\":1}", 0, ",\"ab\":", "1" },
        { "{\"ab\":1}", 0, ",\"ac\":", NULL },
        { "{\"xy\":1}", 0, ",\"ay\":", NULL },
        { "{\"abcd\":1}", 0, ",\"abce\":", NULL },
        { "{\"b\":1}", 0, ",\"a\":", NULL },
        { "{\"\":1}", 0, ",\"\":", "1" },
        { "{\"\":1}", 0, ",\"a\":", NULL },
        { "{\"a\":1}", 0, ",\"\":", NULL },
        { "{}", 0, ",\"a\":", NULL },
        { "{\"x\":0,\"a\":1}", 1, ",\"a\":", "1" },
        { "{\"x\":0,\"a\":\n1}", 1, ",\"a\":", "1" },
        { "{\"x\":0 ,\"a\":1}", 1, ",\"a\":", NULL },
        { "{\"x\":0, \"a\":1}", 1, ",\"a\":", NULL },
        { "{\"x\":0,\"a\" :1}", 1, ",\"a\":", NULL },
        { "{\"x\":0,\"ab\":1}", 1, ",\"a\":", NULL },
        { "{\"x\":0,\"a\":1}", 1, ",\"ab\":", NULL },
        { "{\"x\":0,\"a\":1}", 1, ",\"x\":", NULL },
        { "{\"x\":0,\"\":1}", 1, ",\"\":", "1" },
        { "{\"x\":0}", 1, ",\"a\":", NULL },
        { "{\"x\":{},\"a\":1}", 1, ",\"a\":", "1" },
        { "{\"x\":{ },\"y\":0,\"a\":1}", 2, ",\"a\":", "1" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *copy = exact_copy(cases[i].text, len);
        struct payload_reader r;
        struct json_value v;
        struct slice key;
        struct err err;

        payload_reader_init(&r, (struct slice){ .ptr = copy, .len = len }, &err);

        bool is = next_is(&r, cases[i].passed, cases[i].lead);

        if (is != (cases[i].value != NULL)) {
            fail_msg("%s: %s", cases[i].text, cases[i].lead);
        }
        if (is || payload_member(&r, &key)) {
            assert_true(payload_take(&r, &v));
            assert_true(!is || slice_equal(v.raw, slice_from_cstr(cases[i].value)));
            assert_false(payload_member(&r, &key));
        }
        assert_true(payload_reader_done(&r));
        free(copy);
    }
}

static void the_first_letters_of_the_next_name_are_told_ahead(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t passed;
        const char *ahead; /* NULL: too little is left */
    } cases[] = {
        { "{\"ab\":1}", 0, "ab" },         { "{\"a\":1}", 0, "a\"" },
        { "{\"x\":0,\"ab\":1}", 1, "ab" }, { "{\"x\":{},\"\":1}", 1, "\":" },
        { "{\"x\":0}", 1, NULL },          { "{}", 0, NULL },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct payload_reader r;
        struct err err;

        payload_reader_init(&r, slice_from_cstr(cases[i].text), &err);
        assert_false(next_is(&r, cases[i].passed, ",\"no such\":"));

        const char *ahead = payload_ahead(&r);

        assert_int_equal(ahead == NULL, cases[i].ahead == NULL);
        assert_true(!ahead || memcmp(ahead, cases[i].ahead, 2) == 0);
    }
}

/* Behind a container the comma is needed again. */
static void a_member_without_its_comma_is_not_gone_to(void **state)
{
    (void)state;
    static const char *const texts[] = { "{\"x\":0\"a\":1}", "{\"x\":{}\"a\":1}" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct payload_reader r;
        struct slice key;
        struct err err = { 0 };

        payload_reader_init(&r, slice_from_cstr(texts[i]), &err);
        assert_false(next_is(&r, 1, ",\"a\":"));
        assert_false(payload_member(&r, &key));
        assert_non_null(strstr(err.text, "',' or '}' is expected"));
    }
}

static void a_member_s_name_is_not_sought_past_the_text_s_end(void **state)
{
    (void)state;
    static const char text[] = "{\"x\":0,\"a\":1";
    static const char *const leads[] = { ",\"\":", ",\"a\":", ",\"ab\":", ",\"thread_id\":" };

    for (size_t n = 6; n < sizeof(text); n++) { /* up to the first value, at least */
        for (size_t i = 0; i < 2 * COUNT_OF(leads); i++) {
            size_t passed = i % 2;
            const char *lead = leads[i / 2];
            char *copy = exact_copy(text, n);
            struct payload_reader r;
            struct err err;

            payload_reader_init(&r, (struct slice){ .ptr = copy, .len = n }, &err);
            assert_int_equal(next_is(&r, passed, lead), i == 3 && n >= strlen("{\"x\":0,\"a\":"));
            free(copy);
        }
    }
    for (size_t n = 1; n < 6; n++) {
        char *copy = exact_copy(text, n);
        struct payload_reader r;
        struct err err;

        payload_reader_init(&r, (struct slice){ .ptr = copy, .len = n }, &err);
        assert_int_equal(next_is(&r, 0, ",\"x\":"), n == 5);
        free(copy);
    }
}

/* ---- The walk of everything --------------------------------------------------------------- */

static void say(struct buf *out, struct slice key, struct slice raw)
{
    buf_add(out, key);
    buf_add_char(out, '=');
    buf_add(out, raw);
    buf_add_char(out, '\n');
}

/* All that is in v, by payload_iter. */
static void say_inside(struct json_value v, struct buf *out)
{
    struct payload_iter it = payload_iter(v);
    struct json_value value;
    struct slice key;

    while (payload_next(&it, &key, &value)) {
        say_inside(value, out);
        say(out, key, value.raw);
    }
}

/* To the next member by its name, where a throw of the dice says so and it is one of these. */
static bool go_on(struct payload_reader *r, bool object, uint64_t *seed, struct slice *ret_key)
{
    static const char *const leads[] = { ",\"a\":", ",\"b\":", ",\"ab\":", ",\"\":" };

    *ret_key = (struct slice){ 0 };
    if (!object) {
        return payload_item(r);
    }
    for (size_t i = 0; i < COUNT_OF(leads); i++) {
        if (roll(seed, 2) == 0 && payload_member_is(r, slice_from_cstr(leads[i]))) {
            *ret_key = (struct slice){ .ptr = leads[i] + 1, .len = strlen(leads[i]) - 2 };
            return true;
        }
    }
    return payload_member(r, ret_key);
}

/* The same as say_inside() of the value at hand, by the reader; most containers are entered. */
static bool walk(struct payload_reader *r, uint64_t *seed, struct buf *out, struct slice *ret_raw)
{
    enum json_kind kind = payload_kind(r);
    const char *first = r->at;
    struct json_value v;
    struct slice key;

    if (!is_container(kind) || roll(seed, 4) == 0) {
        if (!payload_take(r, &v)) {
            return false;
        }
        say_inside(v, out);
        *ret_raw = v.raw;
        return true;
    }
    if (!payload_enter(r, kind)) {
        return false;
    }
    while (go_on(r, kind == JSON_KIND_OBJECT, seed, &key)) {
        if (!walk(r, seed, out, ret_raw)) {
            return false;
        }
        say(out, key, *ret_raw);
    }
    *ret_raw = (struct slice){ .ptr = first, .len = (size_t)(r->at - first) };
    return !r->failed;
}

/* The reader and payload_check() say the same of a text: its values, or its fault. True: JSON. */
static bool agree_on(struct slice text, uint64_t seed)
{
    char *copy = exact_copy(text.ptr, text.len);
    struct slice exact = { .ptr = copy, .len = text.len };
    CLEANUP(buf_done) struct buf walked;
    CLEANUP(buf_done) struct buf iterated;
    struct payload_reader r;
    struct json_value v = { 0 };
    struct slice raw = { 0 };
    struct err err = { 0 };
    struct err expected = { 0 };
    bool json = payload_check(exact, &v, &expected);

    buf_init(&walked, 1 << 20);
    buf_init(&iterated, 1 << 20);
    payload_reader_init(&r, exact, &err);

    bool ok = walk(&r, &seed, &walked, &raw) && payload_reader_done(&r);

    if (ok != json || strcmp(err.text, expected.text) != 0 || err.code != expected.code) {
        fail_msg("%" SLICE_FMT ": \"%s\" and not \"%s\"", SLICE_ARG(text), err.text, expected.text);
    }
    if (json) {
        say_inside(v, &iterated);
        assert_string_equal(buf_cstr(&walked), buf_cstr(&iterated));
        assert_true(slice_equal(raw, v.raw));
    }
    free(copy);
    return json;
}

static void what_is_wrong_inside_is_told_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        { "{\"a\":1 \"b\":2}", "line 1, column 8: ',' or '}' is expected" },
        { "[{\"a\":{}\"b\":2}]", "line 1, column 9: ',' or '}' is expected" },
        { "[1\n 2]", "line 2, column 2: ',' or ']' is expected" },
        { "[[][]]", "line 1, column 4: ',' or ']' is expected" },
        { "{\"a\":1,}", "line 1, column 8: a name in quotes is expected" },
        { "{,\"a\":1}", "line 1, column 2: a name in quotes is expected" },
        { "{\"a\":1,,\"b\":1}", "line 1, column 8: a name in quotes is expected" },
        { "{\"a\":{b:1}}", "line 1, column 7: a name in quotes is expected" },
        { "{1:1}", "line 1, column 2: a name in quotes is expected" },
        { "[1,]", "line 1, column 4: a value is expected" },
        { "[,1]", "line 1, column 2: a value is expected" },
        { "[1,,1]", "line 1, column 4: a value is expected" },
        { "{\"a\":}", "line 1, column 6: a value is expected" },
        { "{\"a\":[1}", "line 1, column 8: ',' or ']' is expected" },
        { "[{\"a\":1]", "line 1, column 8: ',' or '}' is expected" },
        { "[}", "line 1, column 2: a value is expected" },
        { "{]", "line 1, column 2: a name in quotes is expected" },
        { "{\"a\" 1}", "line 1, column 6: ':' is expected" },
        { "{\"a\n\":1}", "line 1, column 4: a control character inside a string" },
        { "{\"\\x\":1}", "line 1, column 4: an escape that JSON does not have" },
        { "{\n  \"\xc3\xa4\xc3\xb6\": [tru]\n}",
          "line 2, column 10: neither null, true nor false" },
        { "[\"\\u12g4\"]", "line 1, column 7: \\u needs four hexadecimal digits" },
        { "[\"\xe2\x82\"]", "line 1, column 3: a byte that is no UTF-8" },
        { "[1.]", "line 1, column 4: a digit is missing" },
        { "{\"a\":[]} x", "line 1, column 10: something stands behind the value" },
        { "{}}", "line 1, column 3: something stands behind the value" },
        { "[]]", "line 1, column 3: something stands behind the value" },
        { "", "line 1, column 1: the text ends too early" },
        { "{", "line 1, column 2: the text ends too early" },
        { "{\"a", "line 1, column 4: the text ends too early" },
        { "{\"a\"", "line 1, column 5: the text ends too early" },
        { "{\"a\":", "line 1, column 6: the text ends too early" },
        { "{\"a\":1", "line 1, column 7: the text ends too early" },
        { "{\"a\":1,", "line 1, column 8: the text ends too early" },
        { "[", "line 1, column 2: the text ends too early" },
        { "[[]", "line 1, column 4: the text ends too early" },
        { "[[],", "line 1, column 5: the text ends too early" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice text = slice_from_cstr(cases[i].text);
        struct json_value v;
        struct err err;

        assert_false(payload_check(text, &v, &err));
        assert_string_equal(err.text, cases[i].error);
        for (uint64_t seed = 0; seed < 50; seed++) {
            assert_false(agree_on(text, seed));
        }
    }
}

/* Each of a failed reader's functions does nothing. */
static void nothing_is_done_by(struct payload_reader *r, const struct err *first)
{
    const struct payload_reader before = *r;
    const struct err err = *first;
    struct json_value v;
    struct slice key;

    assert_true(r->failed);
    (void)payload_kind(r);
    assert_false(payload_member_is(r, SLICE(",\"b\":")));
    assert_false(payload_member(r, &key));
    assert_false(payload_item(r));
    assert_false(payload_enter(r, JSON_KIND_OBJECT));
    assert_false(payload_enter(r, JSON_KIND_ARRAY));
    assert_false(payload_take(r, &v));
    assert_false(payload_reader_done(r));
    assert_ptr_equal(r->at, before.at);
    assert_int_equal(r->depth, before.depth);
    assert_string_equal(first->text, err.text);
}

static void after_a_failure_nothing_moves_and_the_first_error_stays(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\":1.,\"b\":2}",        /* what follows is the member that is asked for */
        "{\"a\":1. ,\"b\":2}",       /* blanks */
        "{\"a\":1.}",                /* the end */
        "{\"a\":1.[1]}",             /* a value */
        "{\"a\":\"\\u12\",\"b\":{}", /* a string's end */
        "{\"a\":tru",
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct payload_reader r;
        struct json_value v;
        struct err err = { 0 };

        payload_reader_init(&r, slice_from_cstr(texts[i]), &err);
        assert_true(payload_enter(&r, JSON_KIND_OBJECT));
        assert_true(went_to(&r, "\"a\""));
        assert_false(payload_take(&r, &v));
        nothing_is_done_by(&r, &err);
    }
}

/* `entered` of so many arrays one in another by hand, the rest taken. */
static bool nested_is_read(size_t depth, size_t entered, struct err *err)
{
    CLEANUP(buf_done) struct buf b;
    struct payload_reader r;
    struct json_value v;

    buf_init(&b, 1024);
    for (size_t i = 0; i < depth; i++) {
        buf_add_char(&b, '[');
    }
    buf_add_char(&b, '0');
    for (size_t i = 0; i < depth; i++) {
        buf_add_char(&b, ']');
    }
    payload_reader_init(&r, buf_slice(&b), err);
    for (size_t i = 0; i < entered; i++) {
        if (!payload_enter(&r, JSON_KIND_ARRAY)) {
            assert_true(r.failed);
            return false;
        }
        assert_true(payload_item(&r));
    }
    if (!payload_take(&r, &v)) {
        return false;
    }
    assert_int_equal(v.raw.len, 2 * (depth - entered) + 1);
    for (size_t i = 0; i < entered; i++) {
        assert_false(payload_item(&r));
    }
    return payload_reader_done(&r);
}

static void what_was_entered_counts_as_nested(void **state)
{
    (void)state;
    static const size_t entered[] = { 0, 1, 64, 127, 128, 129 };
    struct err err;

    for (size_t i = 0; i < COUNT_OF(entered); i++) {
        if (entered[i] <= PAYLOAD_MAX_DEPTH) {
            assert_true(nested_is_read(PAYLOAD_MAX_DEPTH, entered[i], &err));
        }
        memset(&err, 0, sizeof(err));
        assert_false(nested_is_read(PAYLOAD_MAX_DEPTH + 1, entered[i], &err));
        assert_string_equal(err.text, "line 1, column 129: deeper than 128");
    }
}

static void containers_that_were_left_do_not_count_as_nested(void **state)
{
    (void)state;
    struct payload_reader r;
    struct slice key;
    struct err err;
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, 4096);
    buf_add(&b, SLICE("[[]"));
    for (int i = 0; i < 300; i++) {
        buf_add(&b, SLICE(",{}"));
    }
    buf_add_char(&b, ']');
    payload_reader_init(&r, buf_slice(&b), &err);
    assert_true(payload_enter(&r, JSON_KIND_ARRAY));
    assert_true(payload_item(&r));
    assert_true(took(&r, "[]"));
    while (payload_item(&r)) {
        assert_true(payload_enter(&r, JSON_KIND_OBJECT));
        assert_false(payload_member(&r, &key));
    }
    assert_true(payload_reader_done(&r));
}

static const char *const good[] = {
    "{}",
    " [ ] ",
    "-0.5e+3",
    "\"\\u00e4\\\\\"",
    "[[],[[1]],{}]",
    "{\"a\":{\"b\":[1,2]},\"ab\":[{}],\"d\":3,\"a\":null}",
    " { \"a\" : [ \"]}\" , 1 ] , \"b\" : 2 } ",
    "[{\"\":\"\\\"]\"}, {\"y\":[]}, [ {} ] ]",
    "{\"b\":true,\"a\":false,\"\":{\"a\":{\"b\":{\"ab\":{}}}},\"\\u0061\":[null]}\n",
    "[\"\xf0\x9f\x98\x80\\ud83d\\ude00\",1e99,{\"a b\":\"0123456789\\n\"}]",
};

static void a_walk_of_all_says_what_check_and_iteration_say(void **state)
{
    (void)state;

    for (size_t i = 0; i < COUNT_OF(good); i++) {
        for (uint64_t seed = 0; seed < 50; seed++) {
            assert_true(agree_on(slice_from_cstr(good[i]), seed));
        }
    }
}

/* Another byte in it, or one more, or one less; up to three times. */
static void mutate(uint64_t *seed, struct buf *b)
{
    static const char bytes[] = "{}[]:,\"\\0-1.e \nanu\x01\xc3\xa4\xff"; /* the NUL, too */

    for (uint32_t i = 1 + roll(seed, 3); i > 0; i--) {
        size_t at = roll(seed, (uint32_t)b->len_bytes);
        char byte = bytes[roll(seed, sizeof(bytes))];
        size_t behind = b->len_bytes - at - 1;
        uint32_t how = roll(seed, 3);

        if (how == 0) {
            b->ptr[at] = byte;
        } else if (how == 1) {
            buf_add_char(b, '\0');
            memmove(b->ptr + at + 1, b->ptr + at, behind + 1);
            b->ptr[at] = byte;
        } else if (b->len_bytes > 1) {
            memmove(b->ptr + at, b->ptr + at + 1, behind);
            b->len_bytes--;
        }
    }
}

static void a_walk_of_a_broken_text_says_what_check_says(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf b;
    size_t n_json = 0;

    buf_init(&b, 4096);
    for (uint64_t n = 0; n < 20000; n++) {
        uint64_t seed = n;

        buf_clear(&b);
        buf_add(&b, slice_from_cstr(good[n % COUNT_OF(good)]));
        mutate(&seed, &b);
        n_json += agree_on(buf_slice(&b), seed);
    }
    assert_in_range(n_json, 1000, 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_is_entered_or_taken_whole),
        cmocka_unit_test(what_is_no_such_container_is_not_entered_and_can_still_be_taken),
        cmocka_unit_test(where_there_is_no_text_there_is_no_value),
        cmocka_unit_test(a_member_is_gone_to_where_its_name_is_the_next),
        cmocka_unit_test(the_first_letters_of_the_next_name_are_told_ahead),
        cmocka_unit_test(a_member_without_its_comma_is_not_gone_to),
        cmocka_unit_test(a_member_s_name_is_not_sought_past_the_text_s_end),
        cmocka_unit_test(what_is_wrong_inside_is_told_with_its_place),
        cmocka_unit_test(after_a_failure_nothing_moves_and_the_first_error_stays),
        cmocka_unit_test(what_was_entered_counts_as_nested),
        cmocka_unit_test(containers_that_were_left_do_not_count_as_nested),
        cmocka_unit_test(a_walk_of_all_says_what_check_and_iteration_say),
        cmocka_unit_test(a_walk_of_a_broken_text_says_what_check_says),
    };

    return cmocka_run_group_tests_name("record/payload_reader", tests, NULL, NULL);
}
