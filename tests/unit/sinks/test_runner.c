#include "sinks/runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "sinks/deadletter.h"
#include "tests/unit/sinks/fake_sink.h"
#include "tests/unit/sinks/fake_source.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"

enum { N = 20, BATCH = 8 };
#define J SLICE("0190a000-0000-7000-8000-000000000001")

static struct sink_config cfg = { .timeout_ms = 1000, .name = "fake" };
static struct sink_samples *samples;
static struct source *source;
static struct stop stop;
static int64_t linger_ms;
static uint64_t told_rows; /* of cuts, before they began */
static bool refuses_cuts;

static int begin(void **state)
{
    struct err err;

    if (fake_folder_begin(state) != 0) {
        return -1;
    }
    cfg.state_dir = fake_folder_path();
    linger_ms = 0;
    told_rows = 0;
    refuses_cuts = false;
    fake_sink_cuts(NULL, 0);
    fake_sink_refuse_open(false);
    samples = sink_samples_new(1, N);
    source = fake_source_new(J, sink_samples_list(samples), N, BATCH);
    return stop_init(&stop, &err) ? 0 : -1;
}

static int end(void **state)
{
    source->ops->close(source);
    sink_samples_free(samples);
    stop_done(&stop);
    return fake_folder_end(state);
}

static bool on_cut(void *ctx, const char *sink, const struct sink_cut *cut, struct err *err)
{
    (void)ctx;
    assert_string_equal(sink, "fake");
    told_rows = told_rows * 100 + cut->rows;
    return !refuses_cuts || err_set(err, ERR_IO, "no room for the record");
}

static enum runner_end run_into(const struct sink_ops *ops, bool once, int64_t patience_ms,
                                struct err *err)
{
    const struct runner_options o = {
        .cfg = &cfg,
        .ops = ops,
        .source = source,
        .stop = &stop,
        .batch_records = BATCH,
        .linger_ms = linger_ms,
        .once = once,
        .patience_ms = patience_ms,
        .on_cut = on_cut,
    };

    return runner_run(&o, err);
}

static enum runner_end run_with(bool once, int64_t patience_ms, struct err *err)
{
    return run_into(&fake_sink_ops, once, patience_ms, err);
}

static enum runner_end run_for(int64_t patience_ms, struct err *err)
{
    return run_with(true, patience_ms, err);
}

static enum runner_end run_once(struct err *err)
{
    return run_for(5000, err);
}

static uint64_t sink_position(void)
{
    struct sink_position at = { 0 };
    struct err err;

    assert_true(fake_sink_ops.position(NULL, J, &at, &err));
    return at.next;
}

static void assert_file(uint64_t next, enum sink_state sink_state, uint64_t dead)
{
    static const char *const words[] = { "\"connecting\"", "\"ok\"", "\"retrying\"", "\"broken\"" };
    struct positions p;
    struct err err;

    assert_true(positions_load(fake_folder_path(), "fake", &p, &err));
    assert_int_equal(positions_get(&p, J), next);
    assert_int_equal(p.dead, dead);
    positions_done(&p);
    assert_non_null(strstr(fake_folder_get("sinks/fake.positions.json"), words[sink_state]));
}

static void all_arrives_and_the_file_says_so(void **state)
{
    (void)state;
    struct err err;

    fake_sink_script(NULL, 0);
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_int_equal(sink_position(), N + 1);
    assert_file(N + 1, SINK_STATE_OK, 0);
    assert_int_equal(fake_source_rewinds(source), 1);
}

static void a_single_run_that_could_not_read_everything_has_failed(void **state)
{
    (void)state;
    static const struct {
        enum err_code why;
        enum sink_state want;
    } cases[] = { { ERR_IO, SINK_STATE_RETRYING }, { ERR_INVALID, SINK_STATE_BROKEN } };
    struct err err;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)err_set(&source->unread, cases[i].why, "no reading here");
        fake_sink_script(NULL, 0);
        assert_int_equal(run_once(&err), RUNNER_GAVE_UP);
        assert_non_null(strstr(err.text, "cannot be read"));
        assert_file(N + 1, cases[i].want, 0); /* all else is delivered */
        assert_non_null(
            strstr(fake_folder_get("sinks/fake.positions.json"), "\"error\": \"no reading here\""));
    }
}

static void of_a_journal_that_is_not_the_sinks_the_file_keeps_its_own_position(void **state)
{
    (void)state;
    struct positions older;
    struct err err;

    fake_sink_script(NULL, 0);
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_true(positions_load(fake_folder_path(), "fake", &older, &err));
    positions_set(&older, J, 3);
    assert_true(positions_flush(&older, true, &err));
    positions_done(&older);
    fake_source_refuse(source);
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_file(3, SINK_STATE_OK, 0);
}

static bool kept_here(void)
{
    struct positions p;
    struct err err;
    bool here;

    assert_true(positions_load(fake_folder_path(), "fake", &p, &err));
    here = positions_here(&p, J);
    positions_done(&p);
    return here;
}

static void the_file_knows_whether_the_sink_keeps_the_position(void **state)
{
    (void)state;
    struct sink_ops forgetful = fake_sink_ops;
    struct err err;

    forgetful.position = NULL;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_into(&forgetful, true, 5000, &err), RUNNER_DELIVERED);
    assert_true(kept_here());
    assert_int_equal(run_once(&err), RUNNER_DELIVERED); /* nothing is delivered */
    assert_true(kept_here());
    source->ops->close(source);
    source = fake_source_new(J, sink_samples_list(samples), N, BATCH);
    fake_sink_script(NULL, 0);
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_false(kept_here());
}

static void behind_little_it_gathers_for_a_moment_and_behind_much_it_does_not(void **state)
{
    (void)state;
    struct err err;
    int64_t begun_ms = clock_mono_ms();

    linger_ms = 1000;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_true(clock_mono_ms() - begun_ms < 1000);

    linger_ms = 20;
    source->lull = true;
    fake_sink_script(NULL, 0);
    begun_ms = clock_mono_ms();
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_true(clock_mono_ms() - begun_ms >= (N + BATCH - 1) / BATCH * linger_ms);
}

static void a_sink_that_goes_down_is_asked_anew_where_it_stands(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_OK, SINK_DOWN, SINK_RETRY };
    struct err err;

    fake_sink_script(script, COUNT_OF(script));
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_int_equal(sink_position(), N + 1);
    assert_int_equal(fake_source_rewinds(source), 2);
}

static void a_sink_that_is_back_is_well_though_it_lacks_nothing(void **state)
{
    (void)state;
    struct err err;

    fake_sink_script(NULL, 0);
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    fake_sink_refuse_once();
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_file(N + 1, SINK_STATE_OK, 0);
}

static void a_sink_that_is_not_there_ends_a_single_run_in_words(void **state)
{
    (void)state;
    struct err err;

    fake_sink_refuse_open(true);
    assert_int_equal(run_for(200, &err), RUNNER_GAVE_UP);
    assert_string_equal(err.text, "connection refused");
    assert_file(1, SINK_STATE_RETRYING, 0);
}

static void what_was_asked_to_stop_stops_at_once(void **state)
{
    (void)state;
    struct err err;

    fake_sink_script(NULL, 0);
    stop_ask(&stop);
    assert_int_equal(run_once(&err), RUNNER_STOPPED);
    assert_int_equal(sink_position(), 1);
    assert_file(1, SINK_STATE_CONNECTING, 0);
}

static void what_was_asked_to_end_delivers_what_is_there_first(void **state)
{
    (void)state;
    struct err err;

    fake_sink_script(NULL, 0);
    stop_when_done(&stop);
    assert_int_equal(run_with(false, 0, &err), RUNNER_DELIVERED);
    assert_int_equal(sink_position(), N + 1);
}

static void what_was_asked_to_end_does_not_wait_for_a_sink_that_is_away(void **state)
{
    (void)state;
    struct err err;

    fake_sink_refuse_open(true);
    stop_when_done(&stop);
    assert_int_equal(run_with(false, 0, &err), RUNNER_STOPPED);
    assert_file(1, SINK_STATE_RETRYING, 0);
}

struct seen {
    uint64_t n;
    uint64_t seq;
    char error[64];
    bool same_bytes;
};

static enum deadletter_fate look(void *ctx, struct deadletter *d)
{
    struct seen *seen = ctx;

    seen->n++;
    seen->seq = d->seq;
    seen->same_bytes = slice_equal(d->record, sink_samples_list(samples)[d->seq - 1].json);
    (void)snprintf(seen->error, sizeof(seen->error), "%" SLICE_FMT, SLICE_ARG(d->error));
    return DEADLETTER_KEEP;
}

static void a_record_that_is_refused_is_in_the_dead_letters_and_all_others_arrive(void **state)
{
    (void)state;
    /* 8, 4, 2, 1: the first record; then the position past it. */
    static const enum sink_result script[] = { SINK_REJECT, SINK_REJECT, SINK_REJECT, SINK_REJECT };
    struct seen seen = { 0 };
    struct deadletter_count count;
    struct err err;

    fake_sink_script(script, COUNT_OF(script));
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_int_equal(sink_position(), N + 1);
    assert_true(deadletter_walk(fake_folder_path(), "fake", false, look, &seen, &count, &err));
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.seq, 1);
    assert_true(seen.same_bytes);
    assert_string_equal(seen.error, "scripted");
    assert_file(N + 1, SINK_STATE_OK, 1);
}

static void a_letter_is_written_once_when_the_position_does_not_follow(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_REJECT, SINK_REJECT, SINK_REJECT,
                                               SINK_REJECT, SINK_RETRY,  SINK_REJECT };
    struct seen seen = { 0 };
    struct deadletter_count count;
    struct err err;

    fake_sink_script(script, COUNT_OF(script));
    assert_int_equal(run_once(&err), RUNNER_DELIVERED);
    assert_true(deadletter_walk(fake_folder_path(), "fake", false, look, &seen, &count, &err));
    assert_int_equal(seen.n, 1);
    assert_int_equal(sink_position(), N + 1);
}

static void without_room_for_the_letter_the_record_is_not_passed(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_REJECT, SINK_REJECT, SINK_REJECT, SINK_REJECT,
                                               SINK_REJECT, SINK_REJECT, SINK_REJECT, SINK_REJECT };
    struct err err;

    fake_folder_put("deadletters", ""); /* a file where the folder should be */
    fake_sink_script(script, COUNT_OF(script));
    assert_int_equal(run_for(200, &err), RUNNER_GAVE_UP);
    assert_non_null(strstr(err.text, "deadletters"));
    assert_int_equal(sink_position(), 1);
}

static void assert_cuts(const struct fake_cut *list, size_t n, uint64_t rows)
{
    struct err err;

    fake_sink_script(NULL, 0);
    fake_sink_cuts(list, n);
    assert_int_equal(run_into(&fake_cutting_ops, true, 5000, &err), RUNNER_DELIVERED);
    assert_int_equal(fake_sink_cuts_taken(), n);
    assert_int_equal(told_rows, rows);
}

static void each_day_that_is_due_is_told_and_cut_before_a_single_run_ends(void **state)
{
    static const struct fake_cut list[] = {
        { .before_us = 1, .rows = 7 }, { .done = false }, { .done = true },
        { .before_us = 2, .rows = 0 }, { .done = true }, /* nothing goes: nothing is told */
        { .before_us = 4, .rows = 9 }, { .done = true },  { .before_us = 0 },
    };

    (void)state;
    assert_cuts(list, COUNT_OF(list), 709);
    assert_file(N + 1, SINK_STATE_OK, 0);
}

/* Old records come in while their day is cut: the next look has them. */
static void a_day_that_was_cut_is_not_cut_again_at_once(void **state)
{
    static const struct fake_cut list[] = { { .before_us = 3, .rows = 7 },
                                            { .done = true },
                                            { .before_us = 3, .rows = 1 } };

    (void)state;
    assert_cuts(list, COUNT_OF(list), 7);
}

static void retention_that_fails_shows_while_all_is_delivered(void **state)
{
    static const struct {
        struct fake_cut list[2];
        size_t n;
        uint64_t rows;
        enum sink_state sink_state;
    } cases[] = {
        { { { .result = SINK_RETRY } }, 1, 0, SINK_STATE_RETRYING },
        { { { .result = SINK_BROKEN } }, 1, 0, SINK_STATE_BROKEN },
        { { { .result = SINK_DOWN } }, 1, 0, SINK_STATE_RETRYING }, /* and is opened anew */
        { { { .before_us = 1, .rows = 7 }, { .result = SINK_RETRY } }, 2, 7, SINK_STATE_RETRYING },
        { { { .before_us = 1, .rows = 7 }, { .result = SINK_BROKEN } }, 2, 7, SINK_STATE_BROKEN },
        { { { .before_us = 1, .rows = 7 }, { .result = SINK_DOWN } }, 2, 7, SINK_STATE_RETRYING },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        told_rows = 0;
        assert_cuts(cases[i].list, cases[i].n, cases[i].rows);
        assert_file(N + 1, cases[i].sink_state, 0);
        assert_non_null(
            strstr(fake_folder_get("sinks/fake.positions.json"), "retention: scripted"));
    }
}

static void what_cannot_be_told_is_not_cut(void **state)
{
    static const struct fake_cut list[] = { { .before_us = 1, .rows = 7 } };

    (void)state;
    refuses_cuts = true;
    assert_cuts(list, COUNT_OF(list), 7);
    assert_file(N + 1, SINK_STATE_RETRYING, 0);
    assert_non_null(strstr(fake_folder_get("sinks/fake.positions.json"), "no room for the record"));
}

/* ---- A driver that begins a span before it is written ----------------------------------- */

static struct {
    char log[120]; /* b: begun, w: written, with the first sequence of each */
    bool can_begin;
    uint64_t stop_at;    /* the span in whose write a stop is asked for; 0: in none */
    uint64_t stop_begun; /* the same while it is begun */
} seen_by;

static void note(char what, const struct span *span)
{
    size_t len = strlen(seen_by.log);

    (void)snprintf(seen_by.log + len, sizeof(seen_by.log) - len, "%c%d ", what, (int)span->from);
}

static bool note_begin(struct sink *s, const struct span *span)
{
    (void)s;
    note('b', span);
    if (span->from == seen_by.stop_begun) {
        stop_ask(&stop);
    }
    return seen_by.can_begin;
}

static enum sink_result note_write(struct sink *s, const struct span *span, struct err *err)
{
    note('w', span);
    if (span->from == seen_by.stop_at) {
        stop_ask(&stop);
    }
    return fake_sink_ops.write(s, span, err);
}

static enum runner_end run_beginning_until(bool can_begin, uint64_t stop_at, uint64_t stop_begun)
{
    struct sink_ops ops = fake_sink_ops;
    struct err err;

    seen_by.log[0] = '\0';
    seen_by.can_begin = can_begin;
    seen_by.stop_at = stop_at;
    seen_by.stop_begun = stop_begun;
    ops.begin = note_begin;
    ops.write = note_write;
    return run_into(&ops, true, 5000, &err);
}

static enum runner_end run_beginning(bool can_begin, uint64_t stop_at)
{
    return run_beginning_until(can_begin, stop_at, 0);
}

static void the_next_span_is_begun_before_this_one_is_written(void **state)
{
    (void)state;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_beginning(true, 0), RUNNER_DELIVERED);
    assert_string_equal(seen_by.log, "b1 b9 w1 b9 b17 w9 b17 w17 ");
    assert_int_equal(sink_position(), N + 1);
}

static void behind_a_span_that_cannot_be_begun_none_is(void **state)
{
    (void)state;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_beginning(false, 0), RUNNER_DELIVERED);
    assert_string_equal(seen_by.log, "b1 w1 b9 w9 b17 w17 ");
}

static void in_a_lull_nothing_is_begun(void **state)
{
    (void)state;
    fake_sink_script(NULL, 0);
    source->lull = true;
    assert_int_equal(run_beginning(true, 0), RUNNER_DELIVERED);
    assert_string_equal(seen_by.log, "w1 w9 w17 ");
}

static void what_was_begun_is_ended_before_it_stops(void **state)
{
    (void)state;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_beginning(true, 1), RUNNER_STOPPED);
    assert_string_equal(seen_by.log, "b1 b9 w1 w9 ");
    assert_int_equal(sink_position(), 17);
    assert_file(17, SINK_STATE_OK, 0);
}

/* The stop comes while this span, and then the next, is begun. */
static void a_stop_does_not_leave_behind_what_is_being_begun(void **state)
{
    (void)state;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_beginning_until(true, 0, 1), RUNNER_STOPPED);
    assert_string_equal(seen_by.log, "b1 w1 ");
    assert_file(9, SINK_STATE_OK, 0);
}

static void a_stop_does_not_leave_behind_two_that_are_being_begun(void **state)
{
    (void)state;
    fake_sink_script(NULL, 0);
    assert_int_equal(run_beginning_until(true, 0, 9), RUNNER_STOPPED);
    assert_string_equal(seen_by.log, "b1 b9 w1 w9 ");
    assert_file(17, SINK_STATE_OK, 0);
}

static void what_was_begun_with_a_sink_that_went_away_is_asked_for_again(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_OK, SINK_DOWN };

    fake_sink_script(script, COUNT_OF(script));
    assert_int_equal(run_beginning(true, 0), RUNNER_DELIVERED);
    assert_string_equal(seen_by.log, "b1 b9 w1 b9 b17 w9 w9 b17 w17 ");
    assert_int_equal(sink_position(), N + 1);
}

static void what_was_begun_behind_a_refused_record_arrives_all_the_same(void **state)
{
    (void)state;
    static const enum sink_result script[] = { SINK_REJECT, SINK_REJECT, SINK_REJECT, SINK_REJECT };

    fake_sink_script(script, COUNT_OF(script));
    assert_int_equal(run_beginning(true, 0), RUNNER_DELIVERED);
    assert_int_equal(sink_position(), N + 1);
    assert_file(N + 1, SINK_STATE_OK, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_arrives_and_the_file_says_so),
        TEST(a_single_run_that_could_not_read_everything_has_failed),
        TEST(of_a_journal_that_is_not_the_sinks_the_file_keeps_its_own_position),
        TEST(the_file_knows_whether_the_sink_keeps_the_position),
        TEST(behind_little_it_gathers_for_a_moment_and_behind_much_it_does_not),
        TEST(a_sink_that_goes_down_is_asked_anew_where_it_stands),
        TEST(a_sink_that_is_back_is_well_though_it_lacks_nothing),
        TEST(a_sink_that_is_not_there_ends_a_single_run_in_words),
        TEST(what_was_asked_to_stop_stops_at_once),
        TEST(what_was_asked_to_end_delivers_what_is_there_first),
        TEST(what_was_asked_to_end_does_not_wait_for_a_sink_that_is_away),
        TEST(a_record_that_is_refused_is_in_the_dead_letters_and_all_others_arrive),
        TEST(a_letter_is_written_once_when_the_position_does_not_follow),
        TEST(each_day_that_is_due_is_told_and_cut_before_a_single_run_ends),
        TEST(a_day_that_was_cut_is_not_cut_again_at_once),
        TEST(retention_that_fails_shows_while_all_is_delivered),
        TEST(what_cannot_be_told_is_not_cut),
        TEST(without_room_for_the_letter_the_record_is_not_passed),
        TEST(the_next_span_is_begun_before_this_one_is_written),
        TEST(behind_a_span_that_cannot_be_begun_none_is),
        TEST(in_a_lull_nothing_is_begun),
        TEST(what_was_begun_is_ended_before_it_stops),
        TEST(a_stop_does_not_leave_behind_what_is_being_begun),
        TEST(a_stop_does_not_leave_behind_two_that_are_being_begun),
        TEST(what_was_begun_with_a_sink_that_went_away_is_asked_for_again),
        TEST(what_was_begun_behind_a_refused_record_arrives_all_the_same),
    };

    return cmocka_run_group_tests_name("sinks/runner", tests, NULL, NULL);
}
