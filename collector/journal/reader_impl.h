/* reader_impl: a reader on a disk of the caller's choice, for tests. */
#pragma once

#include "collector/journal/io.h"
#include "collector/journal/reader.h"

/* As journal_reader_open(). */
bool reader_open(const struct journal_io *io, const char *dir, uint64_t from_seq,
                 struct journal_reader **ret, struct err *err) MUST_CHECK;
