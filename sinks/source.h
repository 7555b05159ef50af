/*
 * source: where a sink's records come from: the journals (feed.h), or a topic.
 *
 * Gives spans of one journal each, in order, from where the sink stands. One source,
 * one sink, one thread.
 */
#pragma once

#include "sinks/sink.h"

enum source_read {
    SOURCE_SPAN,  /* *ret is filled */
    SOURCE_WAIT,  /* all that is there was given */
    SOURCE_ERROR, /* err: the position could not be asked, or nothing can be read */
};

/* Where the sink stands. False: the sink cannot tell now. */
typedef bool (*source_position)(void *ctx, struct slice journal, struct sink_position *ret,
                                struct err *err);

/* The journal was opened, and is what the sink knows: all before `next` is delivered. */
typedef void (*source_joined)(void *ctx, struct slice journal, uint64_t next);

/*
 * Losses of a journal that stand before where the sink stands: up to which sequence
 * they were told (0: none), and a new one of those, both ends included.
 */
typedef uint64_t (*source_told)(void *ctx, struct slice journal);
typedef void (*source_tell)(void *ctx, struct slice journal, uint64_t from, uint64_t to);

struct source;

struct source_ops {
    /*
     * The next span: it goes on where the one before ended, whether that has arrived or not.
     * Valid until two more were given. For each journal that appears, and after a rewind, the
     * source asks where the sink stands.
     */
    enum source_read (*next)(struct source *s, struct span *ret, struct err *err) MUST_CHECK;

    /* The sink was opened anew: forget what was given, ask again where it stands. */
    void (*rewind)(struct source *s);

    /* Wait until there may be more, at most timeout_ms. */
    void (*wait)(struct source *s, int64_t timeout_ms);

    void (*close)(struct source *s); /* accepts NULL */
};

struct source {
    const struct source_ops *ops;
    source_position position; /* set by whoever runs the source, before the first call */
    source_joined joined;     /* as above; NULL: nobody wants to know */
    source_told told;         /* both NULL: nobody remembers, a restart tells again */
    source_tell tell;
    void *position_ctx;
    struct err unread; /* by next(): why something cannot be read now; ERR_NONE: all can be */
    bool lull; /* by SOURCE_SPAN: behind it, and in all other journals, nothing is known to wait */
};
