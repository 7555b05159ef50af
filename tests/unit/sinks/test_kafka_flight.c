#include "sinks/kafka_flight.h"

#include "tests/unit/unit.h"

#define J SLICE("0190a000-0000-7000-8000-000000000001")

/* A record with one message on its way. */
static struct kafka_entry *send_one(struct kafka_flight *f, uint64_t seq)
{
    bool sends = false;
    struct kafka_entry *e = kafka_flight_enter(f, seq, &sends);

    assert_true(sends);
    kafka_entry_sent(e);
    return e;
}

static void what_is_on_its_way_is_not_sent_again(void **state)
{
    (void)state;
    struct kafka_flight *list = NULL;
    struct kafka_flight *f = kafka_flight_of(&list, J);

    assert_ptr_equal(kafka_flight_of(&list, J), f);
    assert_true(kafka_flight_wants(f, 1));
    (void)send_one(f, 1);
    (void)send_one(f, 2);
    assert_false(kafka_flight_wants(f, 1));
    assert_int_equal(kafka_flight_standing(f, 1, 2).pending, 2);
    kafka_flights_free(list);
}

static void what_failed_is_sent_again_and_counted(void **state)
{
    (void)state;
    struct kafka_flight *list = NULL;
    struct kafka_flight *f = kafka_flight_of(&list, J);

    kafka_entry_answered(send_one(f, 7), RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_equal(kafka_flight_standing(f, 1, 9).failed_seq, 7);
    assert_true(kafka_flight_wants(f, 7));
    (void)send_one(f, 7);
    assert_int_equal(kafka_flight_standing(f, 1, 9).failed, 0);
    assert_int_equal(f->resent, 1);
    kafka_flights_free(list);
}

/* An entry that is used again begins anew, whatever it was before. */
static void a_forgotten_entry_serves_another_record(void **state)
{
    (void)state;
    struct kafka_flight *list = NULL;
    struct kafka_flight *f = kafka_flight_of(&list, J);
    struct kafka_entry *first = send_one(f, 1);

    kafka_entry_answered(first, RD_KAFKA_RESP_ERR_INVALID_MSG);
    assert_int_equal(f->failed, 1);
    kafka_flight_forget(f, 1);
    assert_int_equal(f->failed, 0);
    assert_null(f->first);
    assert_null(f->last);
    assert_true(kafka_flight_wants(f, 1));

    uint64_t seq = 2;

    while (send_one(f, seq) != first) { /* they are taken in turn */
        assert_true(++seq < 10000);
    }
    assert_int_equal(kafka_flight_standing(f, seq, seq).failed, 0);
    assert_int_equal(kafka_flight_standing(f, seq, seq).pending, 1);
    assert_ptr_equal(f->last, first);
    kafka_flights_free(list);
}

static void a_span_waits_until_its_own_records_are_answered(void **state)
{
    (void)state;
    struct kafka_flight *list = NULL;
    struct kafka_flight *f = kafka_flight_of(&list, J);
    struct kafka_entry *own = send_one(f, 3);
    struct kafka_entry *later = send_one(f, 5);

    assert_false(kafka_flight_waits(f, 2));
    assert_true(kafka_flight_waits(f, 3));
    kafka_entry_answered(own, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_false(kafka_flight_waits(f, 4));
    assert_true(kafka_flight_waits(f, 5));
    kafka_entry_answered(later, RD_KAFKA_RESP_ERR_INVALID_MSG);
    assert_false(kafka_flight_waits(f, 5));
    assert_int_equal(kafka_flight_standing(f, 1, 4).failed, 0);
    assert_int_equal(kafka_flight_standing(f, 5, 5).failed_seq, 5);
    kafka_flights_free(list);
}

static void a_record_that_went_in_part_holds_up_what_is_behind_it(void **state)
{
    (void)state;
    struct kafka_flight *list = NULL;
    struct kafka_flight *f = kafka_flight_of(&list, J);
    struct kafka_entry *e = send_one(f, 3);

    kafka_entry_sent(e);
    assert_false(kafka_flight_torn(f, 9));
    kafka_entry_answered(e, RD_KAFKA_RESP_ERR__QUEUE_FULL);
    assert_false(kafka_flight_torn(f, 2));
    assert_true(kafka_flight_torn(f, 3));
    assert_false(kafka_flight_wants(f, 3)); /* the other one would pass itself */
    kafka_entry_answered(e, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_false(kafka_flight_torn(f, 9));
    assert_true(kafka_flight_wants(f, 3));
    kafka_flights_free(list);
}

/* Looked for in order, out of order, and what is not there. */
static void a_record_is_found_wherever_the_last_one_was(void **state)
{
    (void)state;
    static const uint64_t order[] = { 2, 4, 6, 8, 2, 8, 4, 4, 6, 2 };
    struct kafka_flight *list = NULL;
    struct kafka_flight *f = kafka_flight_of(&list, J);

    for (uint64_t seq = 2; seq <= 8; seq += 2) {
        (void)send_one(f, seq);
    }
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        assert_false(kafka_flight_wants(f, order[i]));
        assert_true(kafka_flight_wants(f, order[i] + 1));
        assert_true(kafka_flight_wants(f, order[i] - 1));
    }
    (void)send_one(f, 5); /* between two, and at the front */
    (void)send_one(f, 1);
    assert_int_equal(kafka_flight_standing(f, 1, 8).pending, 6);
    assert_int_equal(f->first->seq, 1);
    assert_int_equal(f->last->seq, 8);
    kafka_flights_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_on_its_way_is_not_sent_again),
        cmocka_unit_test(what_failed_is_sent_again_and_counted),
        cmocka_unit_test(a_forgotten_entry_serves_another_record),
        cmocka_unit_test(a_span_waits_until_its_own_records_are_answered),
        cmocka_unit_test(a_record_that_went_in_part_holds_up_what_is_behind_it),
        cmocka_unit_test(a_record_is_found_wherever_the_last_one_was),
    };

    return cmocka_run_group_tests_name("sinks/kafka_flight", tests, NULL, NULL);
}
