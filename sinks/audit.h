/*
 * audit: what `ship` itself has to tell, in a journal of its own.
 *
 * Records that cannot be delivered (a `gap`), and a retention cut (an `admin`
 * record, durable before its first row goes). The journal is opened with the
 * first of them: a ship that has nothing to tell writes none.
 * Thread: any.
 */
#pragma once

#include <pthread.h>

#include "collector/journal/journal.h"
#include "sinks/feed.h"

struct audit {
    struct journal_options options; /* of its journal; strings are borrowed */
    pthread_mutex_t lock;           /* guards `journal` being opened */
    struct journal *journal;        /* owned; NULL: nothing was told yet */
};

/* Options as for journal_open(). Released by audit_done(), which seals what was told. */
void audit_init(struct audit *a, const struct journal_options *o);
void audit_done(struct audit *a);

/* Its journal, to be retired now and then; NULL while nothing was told. */
struct journal *audit_journal(struct audit *a);

/* Tell; false with err when it is not on disk. */
bool audit_loss(struct audit *a, const struct feed_loss *loss, struct err *err) MUST_CHECK;
bool audit_cut(struct audit *a, const char *sink, const struct sink_cut *cut, struct err *err)
    MUST_CHECK;

/* As audit_cut(), for whoever cuts (cutting.h), and in the log. */
bool audit_on_cut(void *audit, const char *sink, const struct sink_cut *cut, struct err *err)
    MUST_CHECK;
