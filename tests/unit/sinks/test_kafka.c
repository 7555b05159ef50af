/* Both Kafka drivers against librdkafka's mock broker: what a real one does on demand only. */
#include "sinks/kafka.h"

#include <string.h>

#include "collector/base/log.h"
#include "sinks/kafka_position.h"
#include "sinks/positions.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/sinks/fake_kafka.h"
#include "tests/unit/sinks/sink_contract.h"
#include "tests/unit/unit.h"

#define FAKE CLEANUP(fake_kafka_freep) struct fake_kafka
#define SAMPLES CLEANUP(sink_samples_freep) struct sink_samples
#define J SLICE("0190a000-0000-7000-8000-000000000001")
#define K SLICE("0190a000-0000-7000-8000-000000000002")

enum {
    PRODUCE = 0, /* numbers of the protocol's requests */
    INIT_PRODUCER_ID = 22,
    END_TXN = 26,
    RECORDS = 1500, /* some chunks */
    BAD = 1200,     /* its sequence */
};

/* A sink and records; every second of these is a tool call, a message of its own. */
struct place {
    struct fake_kafka *fake;
    struct sink_config cfg;
    struct sink *sink;
    struct sink_samples *samples;
    struct sink_record records[RECORDS];
};

static void begin_in(struct place *p, const char *delivery, int64_t timeout_ms,
                     const char *state_dir)
{
    struct err err;

    *p = (struct place){ .fake = fake_kafka_new() };
    fake_kafka_topics(p->fake);
    p->cfg = (struct sink_config){ .settings = fake_kafka_settings(p->fake, delivery),
                                   .name = "k",
                                   .state_dir = state_dir,
                                   .timeout_ms = timeout_ms };
    p->samples = sink_samples_new(1, RECORDS);
    memcpy(p->records, sink_samples_list(p->samples), sizeof(p->records));
    assert_true(sink_kafka_driver(p->cfg.settings)->open(&p->cfg, &p->sink, &err));
}

static void begin_for(struct place *p, const char *delivery, int64_t timeout_ms)
{
    begin_in(p, delivery, timeout_ms, NULL);
}

static void begin(struct place *p, const char *delivery)
{
    begin_for(p, delivery, 5000);
}

/* With a state folder. */
static void begin_kept(struct place *p, const char *delivery)
{
    begin_in(p, delivery, 5000, fake_folder_path());
}

static void end(struct place *p)
{
    p->sink->ops->close(p->sink);
    sink_samples_free(p->samples);
    fake_kafka_free(p->fake);
}
#define PLACE CLEANUP(end) struct place

static struct span span_of(const struct place *p, uint64_t from, uint64_t to)
{
    return (struct span){
        .journal = J, .from = from, .to = to, .records = p->records + from - 1, .n = to - from + 1
    };
}

static enum sink_result ship(struct place *p, uint64_t from, uint64_t to, struct err *err)
{
    struct span span = span_of(p, from, to);

    return p->sink->ops->write(p->sink, &span, err);
}

static void spoil(struct place *p, uint64_t seq)
{
    p->records[seq - 1].json = SLICE("{\"poison\":true}");
}

static int64_t tool_calls(const struct place *p)
{
    return fake_kafka_count(p->fake, "t.tool_execution");
}

/* ---- At least once ------------------------------------------------------------------------ */

static void what_was_sent_before_a_bad_record_is_neither_lost_nor_sent_again(void **state)
{
    (void)state;
    struct err err;
    PLACE p;

    begin(&p, "at-least-once");
    spoil(&p, BAD);
    assert_int_equal(ship(&p, 1, RECORDS, &err), SINK_REJECT);
    assert_int_equal(ship(&p, 1, RECORDS / 2, &err), SINK_OK);
    assert_int_equal(ship(&p, RECORDS / 2 + 1, RECORDS, &err), SINK_REJECT);
    assert_int_equal(ship(&p, RECORDS / 2 + 1, BAD - 1, &err), SINK_OK);
    assert_int_equal(ship(&p, BAD, BAD, &err), SINK_REJECT);

    const struct span skip = { .journal = J, .from = BAD, .to = BAD };

    assert_int_equal(p.sink->ops->write(p.sink, &skip, &err), SINK_OK);
    assert_int_equal(ship(&p, BAD + 1, RECORDS, &err), SINK_OK);
    assert_int_equal(tool_calls(&p), RECORDS / 2 - 1);
}

static bool begin_span(struct place *p, uint64_t from, uint64_t to)
{
    struct span span = span_of(p, from, to);

    return p->sink->ops->begin(p->sink, &span);
}

static void what_was_begun_is_written_once(void **state)
{
    (void)state;
    struct err err;
    PLACE p;

    begin(&p, "at-least-once");
    assert_true(begin_span(&p, 1, 600));
    assert_true(begin_span(&p, 601, 1200));
    assert_int_equal(ship(&p, 1, 600, &err), SINK_OK);
    assert_true(begin_span(&p, 601, 1200)); /* nothing is left to do */
    assert_true(begin_span(&p, 1201, RECORDS));
    assert_int_equal(ship(&p, 601, 1200, &err), SINK_OK);
    assert_int_equal(ship(&p, 1201, RECORDS, &err), SINK_OK);
    assert_int_equal(tool_calls(&p), RECORDS / 2);
}

static void a_bad_record_in_what_was_begun_is_found_when_it_is_written(void **state)
{
    (void)state;
    struct err err;
    PLACE p;

    begin(&p, "at-least-once");
    spoil(&p, BAD);
    assert_true(begin_span(&p, 1, 600));
    assert_false(begin_span(&p, 601, RECORDS));
    assert_int_equal(ship(&p, 1, 600, &err), SINK_OK);
    assert_int_equal(ship(&p, 601, RECORDS, &err), SINK_REJECT);
    assert_int_equal(ship(&p, 601, BAD - 1, &err), SINK_OK);
    assert_int_equal(tool_calls(&p), (BAD - 1) / 2);
}

/* Whether its answer comes before its turn or after. */
static void a_message_of_what_was_begun_that_is_refused_is_known_by_its_record(void **state)
{
    (void)state;
    struct err err = { 0 };
    PLACE p;

    begin(&p, "at-least-once");
    rd_kafka_mock_push_request_errors(fake_kafka_cluster(p.fake), PRODUCE, 2,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_true(begin_span(&p, 2, 2));
    assert_int_equal(ship(&p, 2, 2, &err), SINK_REJECT);
    assert_non_null(strstr(err.text, "record 2"));
}

static void a_broker_that_comes_back_gets_each_record_once(void **state)
{
    (void)state;
    struct err err;
    PLACE p;

    begin_for(&p, "at-least-once", 1000);
    assert_int_equal(ship(&p, 1, 10, &err), SINK_OK);
    rd_kafka_mock_broker_set_down(fake_kafka_cluster(p.fake), 1);
    assert_int_equal(ship(&p, 11, 20, &err), SINK_RETRY);
    assert_non_null(strstr(err.text, "127.0.0.1:"));
    rd_kafka_mock_broker_set_up(fake_kafka_cluster(p.fake), 1);
    assert_int_equal(ship(&p, 11, 20, &err), SINK_OK);
    assert_int_equal(tool_calls(&p), 10);
}

static void a_message_that_is_refused_is_known_by_its_record(void **state)
{
    (void)state;
    struct err err = { 0 };
    PLACE p;

    begin(&p, "at-least-once");
    rd_kafka_mock_push_request_errors(fake_kafka_cluster(p.fake), PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_equal(ship(&p, 2, 2, &err), SINK_REJECT);
    assert_non_null(strstr(err.text, "record 2"));
}

/* ---- Exactly once ------------------------------------------------------------------------- */

static void a_write_moves_the_position_with_the_records(void **state)
{
    (void)state;
    struct err err;
    struct sink_position at;
    PLACE p;

    begin(&p, "exactly-once");
    assert_true(p.sink->ops->position(p.sink, J, &at, &err));
    assert_int_equal(at.next, 1);
    assert_int_equal(ship(&p, 1, 10, &err), SINK_OK);
    assert_true(p.sink->ops->position(p.sink, J, &at, &err));
    assert_int_equal(at.next, 11);
    assert_int_equal(tool_calls(&p), 5);
}

static void two_journals_in_turn_have_a_producer_each(void **state)
{
    (void)state;
    struct err err;
    PLACE p;

    begin(&p, "exactly-once");
    for (uint64_t i = 1; i <= 5; i++) {
        struct span other = span_of(&p, i, i);

        other.journal = K;
        assert_int_equal(ship(&p, i, i, &err), SINK_OK);
        assert_int_equal(p.sink->ops->write(p.sink, &other, &err), SINK_OK);
        /* Who would begin anew for a journal now could not. */
        rd_kafka_mock_push_request_errors(fake_kafka_cluster(p.fake), INIT_PRODUCER_ID, 1,
                                          RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    }
}

static void a_bad_record_costs_one_transaction_however_often_its_span_is_halved(void **state)
{
    (void)state;
    struct err err = { 0 };
    PLACE p;

    begin(&p, "exactly-once");
    spoil(&p, 100);
    assert_int_equal(ship(&p, 1, 200, &err), SINK_REJECT);
    rd_kafka_mock_broker_set_down(fake_kafka_cluster(p.fake), 1);
    for (uint64_t to = 199; to > 100; to /= 2) {
        assert_int_equal(ship(&p, 1, to, &err), SINK_REJECT);
    }
    assert_non_null(strstr(err.text, "record 100"));
    rd_kafka_mock_broker_set_up(fake_kafka_cluster(p.fake), 1);
    assert_int_equal(ship(&p, 1, 99, &err), SINK_OK);
    assert_int_equal(ship(&p, 100, 100, &err), SINK_REJECT);
}

static void a_record_that_was_mended_is_taken_alone(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct slice mended;
    PLACE p;

    begin(&p, "exactly-once");
    mended = p.records[0].json;
    spoil(&p, 1);
    assert_int_equal(ship(&p, 1, 2, &err), SINK_REJECT);
    p.records[0].json = mended;
    assert_int_equal(ship(&p, 1, 1, &err), SINK_OK);
    assert_int_equal(ship(&p, 2, 3, &err), SINK_OK);
}

static void a_position_is_written_and_read_back_and_the_old_form_is_read(void **state)
{
    (void)state;
    struct sink_position at = { .next = UINT64_MAX, .last = UINT64_MAX - 1 };
    struct sink_position back;
    char text[KAFKA_POSITION_SIZE];
    size_t len;

    memset(at.leaf.bytes, 0xa5, sizeof(at.leaf.bytes));
    len = kafka_position_format(&at, text);
    assert_int_equal(len, sizeof(text) - 1);
    assert_true(kafka_position_parse((struct slice){ .ptr = text, .len = len }, &back));
    assert_memory_equal(&back, &at, sizeof(at));

    at = (struct sink_position){ .next = 7 };
    len = kafka_position_format(&at, text);
    assert_int_equal(len, 1);
    assert_true(kafka_position_parse(SLICE("7"), &back));
    assert_memory_equal(&back, &at, sizeof(at));
}

static void what_is_no_position_is_refused(void **state)
{
    (void)state;
#define HEX16 "0123456789abcdef"
    static const struct slice bad[] = {
        SLICE(""),
        SLICE("x"),
        SLICE("7 "),
        SLICE("7 6"),
        SLICE("7 6 "),
        SLICE("7 6 " HEX16),
        SLICE("7 x " HEX16 HEX16 HEX16 HEX16),
        SLICE("7 6 " HEX16 HEX16 HEX16 HEX16 " 5"),
        SLICE(" 7 6 " HEX16 HEX16 HEX16 HEX16),
    };
    struct sink_position at;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(kafka_position_parse(bad[i], &at));
    }
}

/* A file of positions that says `next`, which only we know or the topic told. */
static void keep(const struct place *p, uint64_t next, bool here)
{
    struct positions kept;
    struct err err;

    assert_true(positions_load(fake_folder_path(), p->cfg.name, &kept, &err));
    positions_set(&kept, J, next);
    positions_set_here(&kept, J, here);
    assert_true(positions_flush(&kept, true, &err));
    positions_done(&kept);
}

static void what_at_least_once_has_delivered_is_not_sent_again(void **state)
{
    (void)state;
    struct err err;
    struct sink_position at;
    PLACE p;

    begin_kept(&p, "exactly-once");
    keep(&p, 11, true);
    assert_true(p.sink->ops->position(p.sink, J, &at, &err));
    assert_int_equal(at.next, 11);
    assert_int_equal(fake_kafka_count(p.fake, "t.positions"), 0);
    assert_int_equal(ship(&p, 11, 20, &err), SINK_OK);
    assert_true(fake_kafka_count(p.fake, "t.positions") > 0);
}

static void a_topic_that_forgot_what_it_told_is_for_a_person_in_a_whole_sentence(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct sink_position at;
    PLACE p;

    begin_kept(&p, "exactly-once");
    keep(&p, 123456789, false);
    assert_false(p.sink->ops->position(p.sink, J, &at, &err));
    assert_non_null(
        strstr(err.text, "of journal 0190a000-0000-7000-8000-000000000001, and had 123456789"));
    assert_non_null(strstr(err.text, "see hooktrail.yaml(5)"));
    assert_true(strlen(err.text) < sizeof(err.text) - 40); /* of longer names */
}

static void a_fenced_producer_waits_for_a_person(void **state)
{
    (void)state;
    struct err err = { 0 };
    PLACE p;

    begin(&p, "exactly-once");
    assert_int_equal(ship(&p, 1, 2, &err), SINK_OK);
    rd_kafka_mock_push_request_errors(fake_kafka_cluster(p.fake), END_TXN, 1,
                                      RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
    assert_int_equal(ship(&p, 3, 4, &err), SINK_BROKEN);
}

/* The broker ends what is open for too long, and says the same as of a fenced one. */
static void a_transaction_that_the_broker_ended_is_tried_again(void **state)
{
    (void)state;
    struct err err = { 0 };
    json_t *properties;
    PLACE p;

    begin(&p, "exactly-once");
    properties = json_object_get(p.cfg.settings, "properties");
    assert_int_equal(json_object_set_new(properties, "transaction.timeout.ms", json_integer(1000)),
                     0);
    assert_int_equal(ship(&p, 1, 2, &err), SINK_OK);
    /* One answer alone must not be late: librdkafka would ask again. */
    rd_kafka_mock_broker_push_request_error_rtts(fake_kafka_cluster(p.fake), 1, PRODUCE, 1,
                                                 RD_KAFKA_RESP_ERR_NO_ERROR, 600);
    rd_kafka_mock_broker_push_request_error_rtts(fake_kafka_cluster(p.fake), 1, END_TXN, 1,
                                                 RD_KAFKA_RESP_ERR_PRODUCER_FENCED, 600);
    assert_int_equal(ship(&p, 3, 4, &err), SINK_DOWN);
    assert_non_null(strstr(err.text, "longer than 1000 ms"));
}

static void a_limit_that_the_broker_does_not_allow_is_for_a_person(void **state)
{
    (void)state;
    struct err err = { 0 };
    PLACE p;

    begin(&p, "exactly-once");
    rd_kafka_mock_push_request_errors(fake_kafka_cluster(p.fake), INIT_PRODUCER_ID, 1,
                                      RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT);
    assert_int_equal(ship(&p, 1, 2, &err), SINK_BROKEN);
    assert_non_null(strstr(err.text, "ransaction timeout"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_before_a_bad_record_is_neither_lost_nor_sent_again),
        cmocka_unit_test(what_was_begun_is_written_once),
        cmocka_unit_test(a_bad_record_in_what_was_begun_is_found_when_it_is_written),
        cmocka_unit_test(a_message_of_what_was_begun_that_is_refused_is_known_by_its_record),
        cmocka_unit_test(a_broker_that_comes_back_gets_each_record_once),
        cmocka_unit_test(a_message_that_is_refused_is_known_by_its_record),
        cmocka_unit_test(a_write_moves_the_position_with_the_records),
        cmocka_unit_test(a_position_is_written_and_read_back_and_the_old_form_is_read),
        cmocka_unit_test(what_is_no_position_is_refused),
        cmocka_unit_test(two_journals_in_turn_have_a_producer_each),
        cmocka_unit_test(a_bad_record_costs_one_transaction_however_often_its_span_is_halved),
        cmocka_unit_test(a_record_that_was_mended_is_taken_alone),
        cmocka_unit_test_setup_teardown(what_at_least_once_has_delivered_is_not_sent_again,
                                        fake_folder_begin, fake_folder_end),
        cmocka_unit_test_setup_teardown(
            a_topic_that_forgot_what_it_told_is_for_a_person_in_a_whole_sentence, fake_folder_begin,
            fake_folder_end),
        cmocka_unit_test(a_fenced_producer_waits_for_a_person),
        cmocka_unit_test(a_transaction_that_the_broker_ended_is_tried_again),
        cmocka_unit_test(a_limit_that_the_broker_does_not_allow_is_for_a_person),
    };

    log_set_level((enum log_level)(LOG_ERROR + 1));
    return cmocka_run_group_tests_name("sinks/kafka", tests, NULL, NULL);
}
