#include "collector/journal/keys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

static struct err err;

/* The path of a file in the keys' folder. */
static const char *key_path(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/keys/%s", fake_folder_path(), name);
    return path;
}

static struct key *open_key(const char *expected)
{
    struct key *k = NULL;

    assert_true(key_open(fake_folder_path(), "collect", expected, &k, &err));
    return k;
}

static void assert_same_key(struct key *a, struct key *b, bool same)
{
    assert_int_equal(strcmp(key_id(a), key_id(b)) == 0, same);
}

/* RFC 8032, 7.1, TEST 3: its public key, message and signature. */
static void a_signature_of_the_rfc_holds(void **state)
{
    (void)state;
    static const unsigned char public[] = "\xfc\x51\xcd\x8e\x62\x18\xa1\xa3\x8d\xa4\x7e\xd0\x02"
                                          "\x30\xf0\x58\x08\x16\xed\x13\xba\x33\x03\xac\x5d\xeb"
                                          "\x91\x15\x48\x90\x80\x25";
    struct signature s;
    struct key *k = NULL;

    memcpy(s.bytes,
           "\x62\x91\xd6\x57\xde\xec\x24\x02\x48\x27\xe6\x9c\x3a\xbe\x01\xa3\x0c\xe5\x48\xa2\x84"
           "\x74\x3a\x44\x5e\x36\x80\xd7\xdb\x5a\xc3\xac\x18\xff\x9b\x53\x8d\x16\xf2\x90\xae\x67"
           "\xf7\x60\x98\x4d\xc6\x59\x4a\x7c\x15\xe9\x71\x6e\xd2\x8d\xc0\x27\xbe\xce\xea\x1e\xc4"
           "\x0a",
           KEY_SIGNATURE_BYTES);
    assert_true(key_from_public(public, &k, &err));
    assert_true(key_signed(k, SLICE("\xaf\x82"), &s));
    assert_false(key_signed(k, SLICE("\xaf\x83"), &s));
    s.bytes[40] ^= 1;
    assert_false(key_signed(k, SLICE("\xaf\x82"), &s));
    key_free(k);
}

static void a_key_is_made_once_and_kept(void **state)
{
    (void)state;
    struct key *first = open_key(NULL);
    struct key *again = open_key(key_id(first));
    struct key *public = NULL;
    struct signature s;
    struct stat st;

    assert_same_key(first, again, true);
    assert_int_equal(stat(key_path("collect.key"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    assert_true(key_open_public(key_path(""), key_id(first), &public, &err));
    key_sign(again, SLICE("text"), &s);
    assert_true(key_signed(public, SLICE("text"), &s));
    assert_false(key_signed(public, SLICE("other"), &s));
    key_free(first);
    key_free(again);
    key_free(public);
}

static void each_role_has_a_key_of_its_own(void **state)
{
    (void)state;
    struct key *collect = open_key(NULL);
    struct key *ship = NULL;

    assert_true(key_open(fake_folder_path(), "ship", NULL, &ship, &err));
    assert_same_key(collect, ship, false);
    key_free(collect);
    key_free(ship);
}

static void a_lost_public_half_comes_back(void **state)
{
    (void)state;
    struct key *k = open_key(NULL);
    struct key *public = NULL;
    char name[32];

    (void)snprintf(name, sizeof(name), "%s.pub", key_id(k));
    assert_int_equal(unlink(key_path(name)), 0);
    assert_false(key_open_public(key_path(""), key_id(k), &public, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    key_free(open_key(NULL));
    assert_true(key_open_public(key_path(""), key_id(k), &public, &err));
    key_free(public);
    key_free(k);
}

static void a_public_key_under_another_name_is_refused(void **state)
{
    (void)state;
    struct key *mine = open_key(NULL);
    struct key *theirs = NULL;
    struct key *public = NULL;
    char from[512];
    char name[32];

    assert_true(key_open(fake_folder_path(), "ship", NULL, &theirs, &err));
    (void)snprintf(name, sizeof(name), "%s.pub", key_id(theirs));
    (void)snprintf(from, sizeof(from), "%s", key_path(name));
    (void)snprintf(name, sizeof(name), "%s.pub", key_id(mine));
    assert_int_equal(rename(from, key_path(name)), 0);
    assert_false(key_open_public(key_path(""), key_id(mine), &public, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    key_free(mine);
    key_free(theirs);
}

/* Make a next key, and start again where the journal's last checkpoint names one of the two. */
static void rotate(bool adopt, bool journal_names_next)
{
    struct key *old = open_key(NULL);
    struct key *next = NULL;

    assert_true(key_make_next(fake_folder_path(), "collect", &next, &err));
    assert_same_key(old, next, false);
    if (adopt) {
        assert_true(key_adopt_next(fake_folder_path(), "collect", &err));
        assert_int_equal(access(key_path("collect.key.next"), F_OK), -1);
    }

    struct key *expected = journal_names_next ? next : old;
    struct key *now = open_key(key_id(expected));

    assert_same_key(now, expected, true);
    assert_int_equal(access(key_path("collect.key.next"), F_OK), -1);
    key_free(old);
    key_free(next);
    key_free(now);
}

static void a_rotation_is_adopted_when_it_is_told_so(void **state)
{
    (void)state;
    rotate(true, true);
}

/* The rotation's checkpoint is durable, and then the power fails. */
static void a_rotation_that_the_journal_knows_is_finished(void **state)
{
    (void)state;
    rotate(false, true);
}

/* The power fails before it. */
static void a_rotation_that_the_journal_does_not_know_is_forgotten(void **state)
{
    (void)state;
    rotate(false, false);
}

static void write_file(const char *name, const char *text)
{
    CLEANUP(fs_closep) int fd = open(key_path(name), O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void assert_refused(enum err_code code, const char *says)
{
    struct key *k = NULL;

    assert_false(key_open(fake_folder_path(), "collect", NULL, &k, &err));
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, says));
}

static void a_file_that_is_no_key_is_refused(void **state)
{
    (void)state;
    key_free(open_key(NULL));
    write_file("collect.key", "-----BEGIN PRIVATE KEY-----\nno\n");
    assert_refused(ERR_CORRUPT, "collect.key");
}

static void a_private_key_that_others_can_read_is_refused(void **state)
{
    (void)state;
    key_free(open_key(NULL));
    assert_int_equal(chmod(key_path("collect.key"), 0640), 0);
    assert_refused(ERR_INVALID, "0600");
}

static void a_folder_that_others_can_write_to_is_refused(void **state)
{
    (void)state;
    static const mode_t modes[] = { 0775, 0757, 0777, 01777 };

    key_free(open_key(NULL));
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(key_path(""), modes[i]), 0);
        assert_refused(ERR_INVALID, "others may write there");
    }
    assert_int_equal(chmod(key_path(""), 0755), 0);
    key_free(open_key(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_signature_of_the_rfc_holds),
        TEST(a_key_is_made_once_and_kept),
        TEST(each_role_has_a_key_of_its_own),
        TEST(a_lost_public_half_comes_back),
        TEST(a_public_key_under_another_name_is_refused),
        TEST(a_rotation_is_adopted_when_it_is_told_so),
        TEST(a_rotation_that_the_journal_knows_is_finished),
        TEST(a_rotation_that_the_journal_does_not_know_is_forgotten),
        TEST(a_file_that_is_no_key_is_refused),
        TEST(a_private_key_that_others_can_read_is_refused),
        TEST(a_folder_that_others_can_write_to_is_refused),
    };

    return cmocka_run_group_tests_name("journal/keys", tests, NULL, NULL);
}
