#include "collector/web/token.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "tests/unit/unit.h"

static char dir[64];
static char path[96];

static int make_dir(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/test_token.XXXXXX");
    if (!mkdtemp(dir)) {
        return -1;
    }
    (void)snprintf(path, sizeof(path), "%s/tokens.json", dir);
    return 0;
}

static int remove_dir(void **state)
{
    char lock[128];

    (void)state;
    (void)snprintf(lock, sizeof(lock), "%s.lock", path);
    (void)unlink(path);
    (void)unlink(lock);
    return rmdir(dir);
}

static void write_file(const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void a_token_is_known_until_it_is_revoked(void **state)
{
    struct token_cache *c = token_cache_new(path);
    char token[TOKEN_TEXT_SIZE];
    char name[TOKEN_NAME_MAX + 1];
    unsigned scopes = 0;
    struct err err;

    (void)state;
    assert_false(token_cache_find(c, SLICE("hkt_none"), &scopes, name));
    assert_true(
        token_create(path, SLICE("ci"), WEB_SCOPE_DISPATCH | WEB_SCOPE_QUERY, 0, token, &err));
    assert_int_equal(strlen(token), TOKEN_TEXT_SIZE - 1);
    assert_true(slice_starts_with(slice_from_cstr(token), SLICE("hkt_")));

    assert_true(token_cache_find(c, slice_from_cstr(token), &scopes, name));
    assert_int_equal(scopes, WEB_SCOPE_DISPATCH | WEB_SCOPE_QUERY);
    assert_string_equal(name, "ci");
    token[10] = token[10] == 'A' ? 'B' : 'A';
    assert_false(token_cache_find(c, slice_from_cstr(token), &scopes, name));
    assert_false(token_cache_find(c, SLICE(""), &scopes, name));

    assert_true(token_revoke(path, SLICE("ci"), &err));
    token[10] = token[10] == 'A' ? 'B' : 'A';
    assert_false(token_cache_find(c, slice_from_cstr(token), &scopes, name));
    assert_false(token_revoke(path, SLICE("ci"), &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    token_cache_free(c);
}

static void an_expired_token_is_refused(void **state)
{
    struct token_cache *c = token_cache_new(path);
    char old[TOKEN_TEXT_SIZE];
    char fresh[TOKEN_TEXT_SIZE];
    char name[TOKEN_NAME_MAX + 1];
    unsigned scopes = 0;
    struct err err;

    (void)state;
    assert_true(token_create(path, SLICE("old"), 1, clock_now_us() - 1, old, &err));
    assert_true(token_create(path, SLICE("new"), 1, clock_now_us() + 60000000, fresh, &err));

    assert_false(token_cache_find(c, slice_from_cstr(old), &scopes, name));
    assert_true(token_cache_find(c, slice_from_cstr(fresh), &scopes, name));
    token_cache_free(c);
}

static void the_file_is_private_and_holds_no_token(void **state)
{
    char token[TOKEN_TEXT_SIZE];
    char text[4096] = { 0 };
    struct stat st;
    struct err err;

    (void)state;
    assert_true(token_create(path, SLICE("a"), 1, 0, token, &err));

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    FILE *f = fopen(path, "re");

    assert_non_null(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    (void)fclose(f);
    assert_null(strstr(text, token));
    assert_null(strstr(text, token + 4));
}

static void names_are_unique_and_plain(void **state)
{
    static const char *const bad[] = {
        "", "a b", "a/b", "\xc3\xa4",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    };
    char token[TOKEN_TEXT_SIZE];
    struct err err;

    (void)state;
    assert_true(token_create(path, SLICE("a"), 1, 0, token, &err));
    assert_false(token_create(path, SLICE("a"), 1, 0, token, &err));
    assert_string_equal(err.text, "there is a token 'a' already");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(token_create(path, slice_from_cstr(bad[i]), 1, 0, token, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void the_list_tells_all_and_an_id_revokes(void **state)
{
    struct token_info *infos;
    char token[TOKEN_TEXT_SIZE];
    struct arena a;
    struct err err;
    size_t n;

    (void)state;
    arena_init(&a, 65536);
    assert_true(token_list(path, &a, &infos, &n, &err));
    assert_int_equal(n, 0);
    assert_true(token_create(path, SLICE("one"), WEB_SCOPE_ADMIN, 0, token, &err));
    assert_true(token_create(path, SLICE("two"), WEB_SCOPE_QUERY, 5000000, token, &err));

    assert_true(token_list(path, &a, &infos, &n, &err));
    assert_int_equal(n, 2);
    assert_true(slice_equal(infos[1].name, SLICE("two")));
    assert_int_equal(infos[1].scopes, WEB_SCOPE_QUERY);
    assert_int_equal(infos[1].expires_us, 5000000);
    assert_true(infos[0].created_us > 0);

    assert_true(token_revoke(path, infos[0].id, &err));
    assert_true(token_list(path, &a, &infos, &n, &err));
    assert_int_equal(n, 1);
    arena_clear(&a);
}

static void a_file_that_is_not_ours_lets_nobody_in(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"tokens\":{}}",
        "{\"tokens\":[{\"name\":\"x\",\"hash\":\"zz\",\"scopes\":\"query\",\"created\":\"x\"}]}",
    };
    char token[TOKEN_TEXT_SIZE];
    char name[TOKEN_NAME_MAX + 1];
    unsigned scopes;
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct token_cache *c = token_cache_new(path);

        write_file(bad[i]);
        assert_false(token_cache_find(c, SLICE("hkt_x"), &scopes, name));
        token_cache_free(c);
    }
    write_file("{");
    assert_false(token_create(path, SLICE("a"), 1, 0, token, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
}

static void a_file_that_cannot_be_opened_now_is_read_again(void **state)
{
    struct token_cache *c = token_cache_new(path);
    struct rlimit usual;
    struct rlimit none;
    char token[TOKEN_TEXT_SIZE];
    char name[TOKEN_NAME_MAX + 1];
    unsigned scopes;
    struct err err;

    (void)state;
    assert_true(token_create(path, SLICE("ci"), WEB_SCOPE_QUERY, 0, token, &err));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = usual.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_false(token_cache_find(c, slice_from_cstr(token), &scopes, name));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_true(token_cache_find(c, slice_from_cstr(token), &scopes, name));
    token_cache_free(c);
}

static void a_command_waits_for_another_no_longer_than_it_must(void **state)
{
    char lock[128];
    char token[TOKEN_TEXT_SIZE];
    struct err err;

    (void)state;
    (void)snprintf(lock, sizeof(lock), "%s.lock", path);

    int held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_false(token_create(path, SLICE("ci"), WEB_SCOPE_QUERY, 0, token, &err));
    assert_int_equal(err.code, ERR_AGAIN);
    (void)close(held);
    assert_true(token_create(path, SLICE("ci"), WEB_SCOPE_QUERY, 0, token, &err));
}

static void scopes_are_read_and_written(void **state)
{
    unsigned scopes = 99;
    char text[64];
    struct err err;

    (void)state;
    assert_true(token_scopes_parse(SLICE("dispatch,export"), &scopes, &err));
    assert_int_equal(scopes, WEB_SCOPE_DISPATCH | WEB_SCOPE_EXPORT);
    token_scopes_format(scopes, text, sizeof(text));
    assert_string_equal(text, "dispatch,export");
    assert_false(token_scopes_parse(SLICE("dispatch,root"), &scopes, &err));
    assert_string_equal(err.text,
                        "unknown scope 'root'; known are dispatch, ingest, query, export, admin");
    assert_false(token_scopes_parse(SLICE(""), &scopes, &err));
    assert_false(token_scopes_parse(SLICE("query,"), &scopes, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_token_is_known_until_it_is_revoked, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(an_expired_token_is_refused, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(the_file_is_private_and_holds_no_token, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(names_are_unique_and_plain, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(the_list_tells_all_and_an_id_revokes, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_file_that_is_not_ours_lets_nobody_in, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_opened_now_is_read_again, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_command_waits_for_another_no_longer_than_it_must,
                                        make_dir, remove_dir),
        cmocka_unit_test(scopes_are_read_and_written),
    };

    return cmocka_run_group_tests_name("web/token", tests, NULL, NULL);
}
