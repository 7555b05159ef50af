#include "collector/journal/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct key *key;
static struct key *other;
static struct arena arena;
static struct buf record;
static struct err err;

static int begin(void **state)
{
    (void)state;
    key_generate(&key);
    key_generate(&other);
    arena_init(&arena, 64 * 1024);
    buf_init(&record, 4096);
    return 0;
}

static int end(void **state)
{
    (void)state;
    key_free(key);
    key_free(other);
    arena_clear(&arena);
    buf_done(&record);
    return 0;
}

static struct checkpoint sample(void)
{
    struct checkpoint c = {
        .id = id_new(),
        .collector = SLICE("box \"1\""),
        .time_us = 1764512565000001,
        .journal = id_new(),
        .first_seq = 7,
        .last_seq = UINT64_MAX,
        .root = digest_of(SLICE("root")),
        .has_previous = true,
        .previous = digest_of(SLICE("previous")),
        .boot = id_new(),
    };

    return c;
}

static bool read_back(struct slice bytes, struct checkpoint *ret)
{
    return checkpoint_read(bytes, &arena, ret, &err);
}

static void what_is_written_is_read_and_holds(void **state)
{
    (void)state;
    struct checkpoint c = sample();
    struct checkpoint back;

    checkpoint_write(&c, key, NULL, &record);
    assert_true(buf_ok(&record));
    assert_true(read_back(buf_slice(&record), &back));
    assert_string_equal(back.id.text, c.id.text);
    assert_true(slice_equal(back.collector, c.collector));
    assert_int_equal(back.time_us, c.time_us);
    assert_string_equal(back.journal.text, c.journal.text);
    assert_int_equal(back.first_seq, 7);
    assert_true(back.last_seq == UINT64_MAX);
    assert_true(digest_equal(&back.root, &c.root));
    assert_true(back.has_previous);
    assert_true(digest_equal(&back.previous, &c.previous));
    assert_string_equal(back.boot.text, c.boot.text);
    assert_false(back.rotates);
    assert_string_equal(checkpoint_key_in_force(&back), key_id(key));
    assert_true(checkpoint_holds(buf_slice(&record), &back, key));
    assert_false(checkpoint_holds(buf_slice(&record), &back, other));
}

static void the_first_one_has_none_before_it(void **state)
{
    (void)state;
    struct checkpoint c = sample();
    struct checkpoint back;

    c.has_previous = false;
    checkpoint_write(&c, key, NULL, &record);
    assert_null(strstr(buf_cstr(&record), "previous"));
    assert_true(read_back(buf_slice(&record), &back));
    assert_false(back.has_previous);
    assert_true(checkpoint_holds(buf_slice(&record), &back, key));
}

static void a_rotation_is_signed_by_both_keys(void **state)
{
    (void)state;
    struct checkpoint c = sample();
    struct checkpoint back;

    checkpoint_write(&c, key, other, &record);
    assert_true(read_back(buf_slice(&record), &back));
    assert_true(back.rotates);
    assert_string_equal(checkpoint_key_in_force(&back), key_id(other));
    assert_true(checkpoint_holds(buf_slice(&record), &back, key));

    back.next_signature.bytes[0] ^= 1;
    assert_false(checkpoint_holds(buf_slice(&record), &back, key));
}

static void no_bit_can_be_changed(void **state)
{
    (void)state;
    struct checkpoint c = sample();
    size_t unsigned_yet_readable = 0;

    checkpoint_write(&c, key, other, &record);
    for (size_t i = 0; i < record.len_bytes * 8; i++) {
        char *at = record.ptr + i / 8;
        char before = *at;
        struct checkpoint back;

        *at = (char)(before ^ 1 << i % 8);
        if (read_back(buf_slice(&record), &back)) {
            assert_false(checkpoint_holds(buf_slice(&record), &back, key));
            unsigned_yet_readable++;
        } else {
            assert_int_equal(err.code, ERR_CORRUPT);
        }
        *at = before;
        arena_clear(&arena);
    }
    assert_true(unsigned_yet_readable > 100); /* the digits of hashes and signatures, at least */
}

static void another_way_to_write_the_same_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *find;
        const char *put;
    } changes[] = {
        { "\"schema\":1", "\"schema\": 1" },
        { "\"first_seq\":7", "\"first_seq\":07" },
        { "\"first_seq\":7", "\"first_seq\":7.0" },
        { "\"first_seq\":7", "\"first_seq\":7,\"first_seq\":7" },
        { "\"first_seq\":7", "\"x\":1,\"first_seq\":7" },
        { "\"schema\":1", "\"schema\":2" },
        { "\"type\":\"checkpoint\"", "\"type\":\"gap\"" },
        { "000001Z", "000001+00:00" },
        { "box ", "b\\u006fx " },
        { "\"first_seq\":7,", "" },
    };
    struct checkpoint c = sample();

    checkpoint_write(&c, key, NULL, &record);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        CLEANUP(buf_done) struct buf changed = { .max_bytes = 8192 };
        struct checkpoint back;
        const char *text = buf_cstr(&record);
        const char *at = strstr(text, changes[i].find);

        assert_non_null(at);
        buf_addf(&changed, "%.*s%s%s", (int)(at - text), text, changes[i].put,
                 at + strlen(changes[i].find));
        assert_false(read_back(buf_slice(&changed), &back));
        assert_int_equal(err.code, ERR_CORRUPT);
    }
}

static void what_is_no_checkpoint_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "{", "{}", "[]", "1", "{\"type\":\"checkpoint\"}" };
    struct checkpoint back;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_false(read_back(slice_from_cstr(texts[i]), &back));
        assert_int_equal(err.code, ERR_CORRUPT);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_and_holds),        TEST(the_first_one_has_none_before_it),
        TEST(a_rotation_is_signed_by_both_keys),        TEST(no_bit_can_be_changed),
        TEST(another_way_to_write_the_same_is_refused), TEST(what_is_no_checkpoint_is_refused),
    };

    return cmocka_run_group_tests_name("journal/checkpoint", tests, NULL, NULL);
}
