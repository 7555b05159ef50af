#include "collector/web/route.h"

#include "tests/unit/unit.h"

static const struct web_route routes[] = {
    { .method = "GET", .path = "/healthz" },
    { .method = "POST", .path = "/v1/dispatch" },
    { .method = "GET", .path = "/v1/threads/:thread/trace" },
    { .method = "POST", .path = "/v1/threads/:thread/trace" },
    { .method = "GET", .path = "/" },
};

static void a_path_finds_its_route_or_none(void **state)
{
    static const struct {
        const char *path;
        int route; /* -1: none */
    } cases[] = {
        { "/healthz", 0 },
        { "/healthz/", -1 },
        { "/health", -1 },
        { "/v1/threads/t-1/trace", 2 },
        { "/v1/threads//trace", -1 },
        { "/v1/threads/a/b/trace", -1 },
        { "/v1/threads/a%2Fb/trace", 2 },
        { "/", 4 },
        { "", -1 },
        { "healthz", -1 },
        { "*", -1 },
        { "//", -1 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct route_match m =
            route_find(routes, COUNT_OF(routes), "GET", slice_from_cstr(cases[i].path));

        assert_ptr_equal(m.route, cases[i].route < 0 ? NULL : &routes[cases[i].route]);
    }
}

static void a_parameter_is_the_segment_as_it_came(void **state)
{
    struct route_match m;

    (void)state;
    m = route_find(routes, COUNT_OF(routes), "GET", SLICE("/v1/threads/a%2Fb/trace"));

    assert_int_equal(m.n_params, 1);
    assert_true(slice_equal(m.params[0].name, SLICE("thread")));
    assert_true(slice_equal(m.params[0].value, SLICE("a%2Fb")));
}

static void a_known_path_with_another_method_tells_what_it_takes(void **state)
{
    char allowed[32];

    (void)state;
    assert_true(route_find(routes, COUNT_OF(routes), "POST", SLICE("/v1/dispatch")).method_fits);
    assert_false(route_find(routes, COUNT_OF(routes), "PUT", SLICE("/v1/dispatch")).method_fits);
    assert_ptr_equal(
        route_find(routes, COUNT_OF(routes), "POST", SLICE("/v1/threads/x/trace")).route,
        &routes[3]);
    route_allowed(routes, COUNT_OF(routes), SLICE("/v1/threads/x/trace"), allowed, sizeof(allowed));
    assert_string_equal(allowed, "GET, HEAD, POST");
}

static void escapes_are_resolved_or_refused(void **state)
{
    static const struct {
        const char *raw;
        const char *text; /* NULL: refused */
    } cases[] = {
        { "", "" },        { "a%20b", "a b" }, { "%2f%2F", "//" }, { "%c3%a4", "\xc3\xa4" },
        { "%", NULL },     { "%4", NULL },     { "%zz", NULL },    { "a%00", NULL },
        { "%41%4", NULL }, { "%2541", "%41" },
    };
    struct arena a;

    (void)state;
    arena_init(&a, 4096);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice text;

        assert_int_equal(route_decode(slice_from_cstr(cases[i].raw), &a, &text),
                         cases[i].text != NULL);
        if (cases[i].text) {
            assert_true(slice_equal(text, slice_from_cstr(cases[i].text)));
        }
    }
    arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_its_route_or_none),
        cmocka_unit_test(a_parameter_is_the_segment_as_it_came),
        cmocka_unit_test(a_known_path_with_another_method_tells_what_it_takes),
        cmocka_unit_test(escapes_are_resolved_or_refused),
    };

    return cmocka_run_group_tests_name("web/route", tests, NULL, NULL);
}
