/*
 * loader_cut: the loader cuts what the database no longer keeps, between its batches.
 *
 * Of the loaders of one database, one at a time looks, tells and cuts a day: it holds an
 * advisory lock meanwhile. The others leave it to that one. It is done as the sink does
 * it, over a connection of its own that is open while there is something to cut: what
 * harms it leaves the batches alone.
 * Thread: the loader's.
 */
#pragma once

#include "sinks/cutting.h"
#include "sinks/sink.h"

struct loader_options;
struct postgres;

struct loader_cut {
    struct cutting cutting;
    struct sink_config cfg;
    struct sink *sink; /* owned; NULL: closed */
};

/* As the loader's options say, which are borrowed; connects nowhere. */
void loader_cut_init(struct loader_cut *c, const struct loader_options *o);

/* Release the connection, if there is one. */
void loader_cut_done(struct loader_cut *c);

/* Where it is time for it: a day, under a lock that `db` holds. What fails stands in c->cutting. */
void loader_cut_some(struct loader_cut *c, struct postgres *db);
