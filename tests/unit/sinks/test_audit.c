#include "sinks/audit.h"

#include <string.h>

#include "collector/journal/reader.h"
#include "collector/record/decode.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

#define J "0190a000-0000-7000-8000-000000000001"

static struct audit new_audit(void)
{
    const struct journal_options o = {
        .state_dir = fake_folder_path(),
        .role = "ship",
        .collector = "host-a",
        .quota_bytes = UINT64_C(1) << 30,
        .segment_bytes = 1 << 20,
        .checkpoint_ms = INT64_C(3600) * 1000,
        .queue_bytes = 1 << 20,
    };
    struct audit a;

    audit_init(&a, &o);
    return a;
}

static bool take_dir(void *ctx, const struct journal_info *info)
{
    assert_string_equal(info->role, "ship");
    memcpy(ctx, info->dir, sizeof(info->dir));
    return true;
}

/* The first record of a type in ship's journal, in the arena; empty: there is none. */
static struct slice first_of(enum record_type type, struct arena *a)
{
    char dir[sizeof(((struct journal_info *)NULL)->dir)] = "";
    struct journal_reader *r = NULL;
    struct journal_frame f;
    struct slice found = { 0 };
    struct err err = { 0 };

    assert_true(journal_list(fake_folder_path(), take_dir, dir, &err));
    if (!*dir) {
        return found;
    }
    assert_true(journal_reader_open(dir, 1, &r, &err));
    while (found.len == 0 && journal_reader_next(r, &f, &err) == JOURNAL_READ_FRAME) {
        assert_true(f.type != type || arena_dup(a, f.bytes, &found));
    }
    journal_reader_close(r);
    return found;
}

static void a_ship_that_has_nothing_to_tell_writes_no_journal(void **state)
{
    (void)state;
    CLEANUP(arena_clear) struct arena arena;
    struct audit a = new_audit();

    arena_init(&arena, 1 << 20);
    assert_null(audit_journal(&a));
    audit_done(&a);
    assert_int_equal(first_of(RECORD_GAP, &arena).len, 0);
}

static void tell_loss(uint64_t from, uint64_t to)
{
    const struct feed_loss loss = {
        .journal = J, .role = "collect", .from = from, .to = to, .cause = "retired"
    };
    struct audit a = new_audit();
    struct err err = { 0 };

    if (!audit_loss(&a, &loss, &err)) {
        fail_msg("%s", err.text);
    }
    assert_non_null(audit_journal(&a));
    audit_done(&a);
}

static void a_loss_is_a_gap_record_with_its_count(void **state)
{
    (void)state;
    CLEANUP(arena_clear) struct arena arena;
    struct gap gap;
    struct err err = { 0 };

    arena_init(&arena, 1 << 20);
    tell_loss(5, 9);
    assert_true(decode_gap(first_of(RECORD_GAP, &arena), &arena, &gap, &err));
    assert_true(gap.known);
    assert_int_equal(gap.lost, 5);
    assert_true(slice_equal(gap.cause, SLICE("retired")));
    assert_true(slice_equal(gap.head.collector, SLICE("host-a")));
}

static void a_loss_of_unknown_size_says_so(void **state)
{
    (void)state;
    CLEANUP(arena_clear) struct arena arena;
    struct gap gap;
    struct err err = { 0 };

    arena_init(&arena, 1 << 20);
    tell_loss(5, 0);
    assert_true(decode_gap(first_of(RECORD_GAP, &arena), &arena, &gap, &err));
    assert_false(gap.known);
    assert_int_equal(gap.lost, 0);
}

static void a_cut_is_an_admin_record_that_names_sink_and_size(void **state)
{
    (void)state;
    CLEANUP(arena_clear) struct arena arena;
    const struct sink_cut cut = { .before_us = 86400000000, .rows = 12 };
    struct audit a = new_audit();
    struct admin admin;
    struct err err = { 0 };

    arena_init(&arena, 1 << 20);
    assert_true(audit_cut(&a, "sqlite", &cut, &err));
    audit_done(&a);
    assert_true(decode_admin(first_of(RECORD_ADMIN, &arena), &arena, &admin, &err));
    assert_true(slice_equal(admin.action, SLICE("retention")));
    assert_true(slice_starts_with(admin.actor, SLICE("uid ")));
    assert_true(slice_equal(admin.details,
                            SLICE("{\"sink\":\"sqlite\",\"before\":\"1970-01-02T00:00:00.000000Z\","
                                  "\"records\":12}")));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_folder_begin, fake_folder_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ship_that_has_nothing_to_tell_writes_no_journal),
        TEST(a_loss_is_a_gap_record_with_its_count),
        TEST(a_loss_of_unknown_size_says_so),
        TEST(a_cut_is_an_admin_record_that_names_sink_and_size),
    };

    return cmocka_run_group_tests_name("sinks/audit", tests, NULL, NULL);
}
