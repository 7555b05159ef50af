/* fake_source: records of one journal as a source, without a journal. */
#pragma once

#include "sinks/source.h"

/*
 * A source of `n` records from list[0].seq on, in spans of at most `batch`. The
 * list is borrowed; close() releases the source.
 */
struct source *fake_source_new(struct slice journal, const struct sink_record *list, size_t n,
                               size_t batch);

/* Its journal is not the one that the sink knows: it gives nothing. */
void fake_source_refuse(struct source *s);

/* How often it was rewound. */
size_t fake_source_rewinds(struct source *s);
