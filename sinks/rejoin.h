/*
 * rejoin: a journal is opened where a sink stands in it, if it is the journal that the sink knows.
 *
 * A state folder that was put back from an older copy gives the journal's numbers away a
 * second time, for other records. Two things show it: the journal ends before where the
 * sink stands; or, when it has grown past that, the last record that the sink was given is
 * another one here. What is retired or damaged here, and what the sink does not know, shows
 * nothing.
 */
#pragma once

#include "collector/journal/reader.h"
#include "sinks/sink.h"

/*
 * Open a journal before from_seq, for a sink that stood at *at and has all before from_seq.
 * ERR_INVALID: it is an older copy; the error says what to do. Others: as journal_reader_open().
 */
bool rejoin_open(const struct journal_info *journal, const struct sink_position *at,
                 uint64_t from_seq, struct journal_reader **ret, struct err *err) MUST_CHECK;
