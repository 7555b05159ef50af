/*
 * sink: one destination for records.
 *
 * A driver embeds `struct sink` as its first member and fills the functions of
 * `struct sink_ops`. Only the pump calls them, always from the one thread that
 * owns the sink, so a driver needs no locks.
 *
 * A destination that can keep a position in the same transaction as the records
 * (a database, a transactional topic) implements position(), and so delivers
 * exactly once. For the others the pump keeps the position itself, and
 * a crash sends a span again.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "collector/base/digest.h"
#include "collector/base/err.h"
#include "collector/record/types.h"

struct sink;
struct sink_config;

/* One journalled record, as the reader gave it. */
struct sink_record {
    uint64_t seq;
    enum record_type type;
    struct digest leaf; /* SHA-256(0x00 || json) */
    struct slice json;  /* the exact bytes of the record */
};

/*
 * A run of one journal, in order. Records borrowed, valid during the call only.
 * n may be 0: then only the position moves, past a record that was given up.
 *
 * `late` records were given up once (they stand in the dead letters) and are
 * sent again by a person: the position, which is past them, stays where it is,
 * and a destination that has one already leaves it as it is and answers SINK_OK.
 */
struct span {
    struct slice journal; /* its id */
    uint64_t from, to;    /* sequence numbers, both included; gaps may be inside */
    const struct sink_record *records;
    size_t n;
    bool late;
};

/* The record that a span ends with; NULL: it has none. */
static inline const struct sink_record *span_last(const struct span *span)
{
    return span->n > 0 ? &span->records[span->n - 1] : NULL;
}

/*
 * Where a destination stands in a journal: what it expects next, and the last record that
 * it was given. By that one a journal is found out that gives its numbers away a second
 * time (rejoin.h); spans without records, and late ones, leave it as it is.
 */
struct sink_position {
    uint64_t next;      /* 1: it has never seen the journal */
    uint64_t last;      /* the record's sequence; 0: not known */
    struct digest leaf; /* of that record */
};

/* Move it over a span that is not late. */
static inline void sink_position_move(struct sink_position *at, const struct span *span)
{
    const struct sink_record *last = span_last(span);

    at->next = span->to + 1;
    if (last) {
        at->last = last->seq;
        at->leaf = last->leaf;
    }
}

/* What became of a span. The pump acts on this and on nothing else. */
enum sink_result {
    SINK_OK,     /* the whole span is durable at the destination */
    SINK_RETRY,  /* nothing counts; send the same span again after a pause */
    SINK_DOWN,   /* as SINK_RETRY, but close and open the sink first */
    SINK_REJECT, /* the destination refuses the data itself, and always will */
    SINK_BROKEN, /* it refuses us (schema, permission, fenced): a person must act */
};

/* What goes next of what a sink no longer keeps: the oldest, of one day at the most. */
struct sink_cut {
    int64_t before_us; /* records of before this time go, the end of a day; 0: nothing is due */
    uint64_t rows;     /* how many records there are of before */
};

struct sink_ops {
    const char *name; /* as written in the config file, e.g. "kafka" */

    /* What a write gathers at most, and how long; 0: as the caller usually does. */
    size_t batch_records;
    int64_t linger_ms;

    /*
     * Allocate a sink and connect it. On success *ret_sink is owned by the
     * caller and released with close(). May block up to cfg->timeout_ms.
     */
    bool (*open)(const struct sink_config *cfg, struct sink **ret_sink, struct err *err) MUST_CHECK;

    /*
     * Where the destination stands in this journal, as the last write that was SINK_OK
     * left it, in the same transaction. NULL where it keeps no position.
     */
    bool (*position)(struct sink *s, struct slice journal, struct sink_position *ret,
                     struct err *err) MUST_CHECK;

    /*
     * Deliver a span all or nothing, and move the position from `from` over it.
     * May block up to timeout_ms. Fills *err on every result other than SINK_OK.
     *
     * A driver with position() that finds another position than `from` writes
     * nothing and answers SINK_DOWN: whoever opens a sink reads its positions
     * anew, so a lost answer, a restored database and a second ship all end in
     * going on from what the destination really has.
     */
    enum sink_result (*write)(struct sink *s, const struct span *span, struct err *err) MUST_CHECK;

    /*
     * NULL, or: begin to send a span, in order, that write() is called for later; what is on
     * its way by then is not sent again. So the destination works on one span while the next
     * is read. True: all of it is on its way. What goes wrong, write() finds and tells. May
     * block up to timeout_ms.
     */
    bool (*begin)(struct sink *s, const struct span *span);

    /*
     * Retention, NULL where the sink has none: what is due first at now_us, and one small
     * step of that cut (*ret_done: it was the last). The caller writes the `admin` record
     * between the two, and asks again when a cut is done: what is counted and cut at
     * once is a day's, however much has piled up. Each blocks up to timeout_ms.
     */
    enum sink_result (*cut_due)(struct sink *s, int64_t now_us, struct sink_cut *ret,
                                struct err *err) MUST_CHECK;
    enum sink_result (*cut_step)(struct sink *s, const struct sink_cut *cut, bool *ret_done,
                                 struct err *err) MUST_CHECK;

    /* Release everything. Accepts NULL. Never blocks longer than timeout_ms. */
    void (*close)(struct sink *s);
};

struct sink_config {
    struct slice target;    /* driver-specific address; lives as long as the config */
    int64_t timeout_ms;     /* limit for each blocking call */
    const json_t *settings; /* the sink's own mapping in hooktrail.yaml, checked; NULL: defaults */
    const char *name;       /* of this sink: names its dead letters, its transactional id */
    const char *state_dir;  /* for what a driver must keep beside its destination */
    bool late;              /* late spans alone are written, while another may write the others */
};

/* The sink's own timeout_ms; the configuration has one for every sink. */
static inline int64_t sink_timeout_ms(const json_t *settings)
{
    return json_integer_value(json_object_get(settings, "timeout_ms"));
}

struct sink {
    const struct sink_ops *ops;
};
