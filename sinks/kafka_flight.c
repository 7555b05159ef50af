#include "sinks/kafka_flight.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

enum { BLOCK_ENTRIES = 512 };

/* Entries side by side: spans are walked over and over. */
struct kafka_block {
    struct kafka_block *next;
    struct kafka_entry entries[BLOCK_ENTRIES];
};

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

void kafka_flights_free(struct kafka_flight *head)
{
    while (head) {
        struct kafka_flight *next = head->next;

        while (head->blocks) {
            struct kafka_block *block = head->blocks;

            head->blocks = block->next;
            free(block);
        }
        free(head);
        head = next;
    }
}

/* Forgotten ones are taken again in their order, which is that of memory. */
static void add_spare(struct kafka_flight *f, struct kafka_entry *e)
{
    e->next = NULL;
    if (f->spare) {
        f->spare_last->next = e;
    } else {
        f->spare = e;
    }
    f->spare_last = e;
}

static struct kafka_entry *take_spare(struct kafka_flight *f)
{
    if (!f->spare) {
        struct kafka_block *block = xcalloc(1, sizeof(*block));

        block->next = f->blocks;
        f->blocks = block;
        for (size_t i = 0; i < BLOCK_ENTRIES; i++) {
            add_spare(f, &block->entries[i]);
        }
    }

    struct kafka_entry *e = f->spare;

    f->spare = e->next;
    return e;
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
    struct kafka_entry *e = take_spare(f);

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

bool kafka_flight_torn(const struct kafka_flight *f, uint64_t to)
{
    for (const struct kafka_entry *e = f->failed > 0 ? f->first : NULL; e && e->seq <= to;
         e = e->next) {
        if (e->failed && e->pending > 0) {
            return true;
        }
    }
    return false;
}

bool kafka_flight_waits(const struct kafka_flight *f, uint64_t to)
{
    const struct kafka_entry *e = f->first;

    while (e && e->seq <= to && e->pending == 0) {
        e = e->next;
    }
    return e && e->seq <= to;
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
        add_spare(f, f->first);
        f->first = next;
    }
    if (!f->first) {
        f->last = NULL;
    }
}
