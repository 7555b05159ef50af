/*
 * answer: a question as text, from a command line or a URL, and its answer.
 *
 * Commands and endpoints ask through here alone, so both say the same, within
 * the same limits, with the same errors.
 */
#pragma once

#include "queries/evaluation.h"
#include "queries/trace.h"
#include "queries/why.h"

enum {
    ANSWER_RANGE_DAYS = 366,                /* from one end of a question's time to the other */
    ANSWER_ARENA_BYTES = 256 * 1024 * 1024, /* the records of an answer */
    ANSWER_MAX_BYTES = 512 * 1024 * 1024,   /* its text */
};

struct answer_source {
    struct store *store;
    const char *state_dir; /* whose journals tell what is not in the store yet */
    int64_t max_rows;      /* serve.max_rows */
};

/* NULL slices: not given; what is given must not be empty. Times are RFC 3339. */
struct trace_question {
    struct slice thread;
    struct slice from;
    struct slice to;
    struct slice limit;
};

struct why_question {
    struct slice hook;
    struct slice call;
    struct slice thread;
    struct slice tool;
    struct slice event;
    struct slice at;
};

/* Is what is given not empty? For who would not open a store for a bad question. */
bool answer_check_trace(const struct trace_question *q, struct err *err) MUST_CHECK;
bool answer_check_why(const struct why_question *q, struct err *err) MUST_CHECK;

/*
 * Errors: ERR_INVALID: a value that is none, or over a limit, which is named;
 * else those of trace_query() and why_query().
 */
bool answer_trace(const struct answer_source *from, const struct trace_question *q, struct arena *a,
                  struct trace *ret, struct err *err) MUST_CHECK;
bool answer_why(const struct answer_source *from, const struct why_question *q, struct arena *a,
                struct why *ret, struct err *err) MUST_CHECK;
