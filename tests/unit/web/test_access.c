#include "collector/web/access.h"

#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static void only_our_names_are_our_host(void **state)
{
    static const char *const more[] = { "hooks.example", "other.example:8416", NULL };
    static const struct {
        const char *host;
        bool ours;
    } cases[] = {
        { "localhost", true },
        { "LOCALHOST:8416", true },
        { "127.0.0.1:1", true },
        { "[::1]:8416", true },
        { "[::1]", true },
        { "::1", false },
        { "hooks.example:1", true },
        { "other.example:8416", true },
        { "own.example", true },
        { "evil.example", false },
        { "localhost.evil.example", false },
        { "evil.localhost", false },
        { "127.0.0.1.evil.example", false },
        { "localhost:", true },
        { "localhost:x", false },
        { "localhost:8416:1", false },
        { "localhost:99999", false },
        { "localhost@evil.example", false },
        { "[::1", false },
        { "[::1]x", false },
        { "[", false },
        { ":80", false },
        { "", false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool ours = access_host(slice_from_cstr(cases[i].host), "own.example", more);

        if (ours != cases[i].ours) {
            fail_msg("Host '%s' is %s", cases[i].host, ours ? "taken" : "refused");
        }
    }
    assert_false(access_host(SLICE(""), "", NULL));
}

static void an_origin_must_be_the_host_itself(void **state)
{
    const struct slice host = SLICE("localhost:8416");
    static const struct {
        const char *origin;
        bool ours;
    } cases[] = {
        { "http://localhost:8416", true },
        { "https://LocalHost:8416", true },
        { "http://localhost:3000", false },
        { "http://localhost", false },
        { "http://evil.example", false },
        { "null", false },
        { "", false },
        { "localhost:8416", false },
        { "file://localhost:8416", false },
        { "http://localhost:8416/", false },
        { "http://localhost:84160", false },
        { "http://", false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(access_origin(slice_from_cstr(cases[i].origin), host), cases[i].ours);
    }
}

static void our_own_uid_is_let_in(void **state)
{
    int pair[2];
    uid_t uid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);

    assert_true(access_peer(pair[0], (gid_t)ACCESS_NO_GROUP, &uid));
    assert_int_equal(uid, geteuid());
    (void)close(pair[0]);
    (void)close(pair[1]);
    assert_false(access_peer(-1, (gid_t)ACCESS_NO_GROUP, &uid));
}

static void a_group_is_known_by_name_or_number(void **state)
{
    gid_t gid = 77;
    struct err err;

    (void)state;
    assert_true(access_group("root", &gid, &err));
    assert_int_equal(gid, 0);
    assert_true(access_group("4711", &gid, &err));
    assert_int_equal(gid, 4711);
    assert_false(access_group("no-such-group", &gid, &err));
    assert_string_equal(err.text, "socket_group 'no-such-group': there is no such group");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_our_names_are_our_host),
        cmocka_unit_test(an_origin_must_be_the_host_itself),
        cmocka_unit_test(our_own_uid_is_let_in),
        cmocka_unit_test(a_group_is_known_by_name_or_number),
    };

    return cmocka_run_group_tests_name("web/access", tests, NULL, NULL);
}
