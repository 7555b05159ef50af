#include "sinks/kafka_flight.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

struct kafka_flight *kafka_flight_of(struct kafka_flight **head, struct slice journal)
{
    for (struct kafka_flight *f = *head; f; f = f->next) {
        if (slice_equal(journal, slice_from_cstr(f->journal))) {
            return f;
        }
    }

    struct kafka_flight *f = xcalloc(1, sizeof(*f));

    assert(journal.len < sizeof(f->journal));
    memcpy(f->journal, journal.ptr, journal.len);
    f->next = *head;
    *head = f;
    return f;
}

static void free_entries(struct kafka_entry *e)
{
    while (e) {
        struct kafka_entry *next = e->next;

        free(e);
        e = next;
    }
}

void kafka_flights_free(struct kafka_flight *head)
{
    while (head) {
        struct kafka_flight *next = head->next;

        free_entries(head->first);
        free_entries(head->spare);
        free(head);
        head = next;
    }
}

/* The entry of seq, or where it belongs: behind *ret_before (NULL: at the front). */
static struct kafka_entry *find(struct kafka_flight *f, uint64_t seq,
                                struct kafka_entry **ret_before)
{
    struct kafka_entry *e = f->found && f->found->seq <= seq ? f->found : f->first;

    *ret_before = NULL;
    if (f->last && f->last->seq < seq) { /* the usual case: records come in order */
        *ret_before = f->last;
        return NULL;
    }
    while (e && e->seq < seq) {
        *ret_before = e;
        e = e->next;
    }
    f->found = e && e->seq == seq ? e : *ret_before;
    return e && e->seq == seq ? e : NULL;
}

static struct kafka_entry *insert(struct kafka_flight *f, struct kafka_entry *before, uint64_t seq)
{
    struct kafka_entry *e = f->spare;

    if (e) {
        f->spare = e->next;
    } else {
        e = xcalloc(1, sizeof(*e));
    }
    *e = (struct kafka_entry){
        .flight = f,
        .seq = seq,
        .next = before ? before->next : f->first,
    };
    if (before) {
        before->next = e;
    } else {
        f->first = e;
    }
    if (!e->next) {
        f->last = e;
    }
    return e;
}

static bool has_failed(const struct kafka_entry *e)
{
    return e->failed != RD_KAFKA_RESP_ERR_NO_ERROR && e->pending == 0;
}

/* The entry's refusal no longer counts. */
static void forgive(struct kafka_entry *e)
{
    if (e->failed) {
        e->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
        e->flight->failed--;
    }
}

bool kafka_flight_wants(struct kafka_flight *f, uint64_t seq)
{
    struct kafka_entry *before;
    const struct kafka_entry *e = find(f, seq, &before);

    return !e || has_failed(e);
}

struct kafka_entry *kafka_flight_enter(struct kafka_flight *f, uint64_t seq, bool *ret_send)
{
    struct kafka_entry *before;
    struct kafka_entry *e = find(f, seq, &before);

    if (!e) {
        *ret_send = true;
        return insert(f, before, seq);
    }
    *ret_send = has_failed(e);
    if (*ret_send) {
        forgive(e);
        f->resent++;
    }
    return e;
}

void kafka_entry_sent(struct kafka_entry *e)
{
    e->pending++;
    e->flight->pending++;
}

void kafka_entry_answered(struct kafka_entry *e, rd_kafka_resp_err_t code)
{
    assert(e->pending > 0);
    e->pending--;
    e->flight->pending--;
    if (code && !e->failed) {
        e->failed = code;
        e->flight->failed++;
    }
}

struct kafka_standing kafka_flight_standing(const struct kafka_flight *f, uint64_t from,
                                            uint64_t to)
{
    struct kafka_standing s = { 0 };

    if (f->pending == 0 && f->failed == 0) {
        return s;
    }
    for (const struct kafka_entry *e = f->first; e && e->seq <= to; e = e->next) {
        if (e->seq < from) {
            continue;
        }
        s.pending += e->pending;
        if (e->failed && !s.failed) {
            s.failed = e->failed;
            s.failed_seq = e->seq;
        }
    }
    return s;
}

void kafka_flight_forget(struct kafka_flight *f, uint64_t to)
{
    f->found = NULL;
    while (f->first && f->first->seq <= to) {
        struct kafka_entry *next = f->first->next;

        assert(f->first->pending == 0);
        forgive(f->first);
        f->first->next = f->spare;
        f->spare = f->first;
        f->first = next;
    }
    if (!f->first) {
        f->last = NULL;
    }
}
