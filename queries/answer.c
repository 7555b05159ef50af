#include "queries/answer.h"

#include <inttypes.h>

#include "collector/base/clock.h"
#include "queries/lag.h"

/* 0 stays what it is, not given; a time before 1970 is one before every record. */
static bool read_time(const char *name, struct slice text, int64_t *ret, struct err *err)
{
    if (text.len == 0) {
        return true;
    }
    if (!clock_parse(text, ret)) {
        return err_set(err, ERR_INVALID,
                       "%s: '%" SLICE_FMT "' is no time; write 2026-11-30T14:00:00Z", name,
                       SLICE_ARG(text));
    }
    *ret = *ret > 0 ? *ret : 1;
    return true;
}

static bool read_limit(struct slice text, int64_t max, uint32_t *ret, struct err *err)
{
    uint64_t n = 0;

    if (text.len == 0) {
        *ret = max < TRACE_LIMIT ? (uint32_t)max : TRACE_LIMIT;
        return true;
    }
    if (!slice_to_u64(text, &n) || n == 0) {
        return err_set(err, ERR_INVALID, "limit: '%" SLICE_FMT "' is no number from 1 on",
                       SLICE_ARG(text));
    }
    if (n > (uint64_t)max) {
        return err_set(err, ERR_INVALID, "limit: %" PRIu64 " is over serve.max_rows (%" PRId64 ")",
                       n, max);
    }
    *ret = (uint32_t)n;
    return true;
}

static bool check_range(int64_t from_us, int64_t to_us, struct err *err)
{
    if (from_us <= 0 || to_us <= 0) {
        return true;
    }
    if (to_us <= from_us) {
        return err_set(err, ERR_INVALID, "to: is not after from");
    }
    if (to_us - from_us > ANSWER_RANGE_DAYS * CLOCK_DAY_US) {
        return err_set(err, ERR_INVALID,
                       "from and to are over %d days apart, the limit of a question",
                       ANSWER_RANGE_DAYS);
    }
    return true;
}

/* What is there and empty means something else than what is absent, and is refused. */
static bool check_given(const char *name, struct slice text, struct err *err)
{
    return !text.ptr || text.len > 0 ? true : err_set(err, ERR_INVALID, "%s: is empty", name);
}

bool answer_check_trace(const struct trace_question *q, struct err *err)
{
    if (q->thread.len == 0) {
        return err_set(err, ERR_INVALID, "thread: is empty");
    }
    return check_given("from", q->from, err) && check_given("to", q->to, err) &&
           check_given("limit", q->limit, err);
}

bool answer_check_why(const struct why_question *q, struct err *err)
{
    return check_given("hook", q->hook, err) && check_given("call", q->call, err) &&
           check_given("thread", q->thread, err) && check_given("tool", q->tool, err) &&
           check_given("event", q->event, err) && check_given("at", q->at, err);
}

bool answer_trace(const struct answer_source *from, const struct trace_question *q, struct arena *a,
                  struct trace *ret, struct err *err)
{
    struct trace_options o = { .thread = q->thread };
    uint64_t unshipped = 0;

    if (!answer_check_trace(q, err) || !read_time("from", q->from, &o.from_us, err) ||
        !read_time("to", q->to, &o.to_us, err) ||
        !read_limit(q->limit, from->max_rows, &o.limit, err) ||
        !check_range(o.from_us, o.to_us, err) ||
        !lag_measure(from->store, from->state_dir, &unshipped, err)) {
        return false;
    }
    if (!trace_query(from->store, &o, a, ret, err)) {
        if (err->code == ERR_NOT_FOUND && unshipped > 0) {
            struct err what = *err;

            return err_set(err, ERR_NOT_FOUND, "%s; %" PRIu64 " record%s not shipped yet",
                           what.text, unshipped, unshipped == 1 ? " is" : "s are");
        }
        return false;
    }
    ret->unshipped = unshipped;
    return true;
}

bool answer_why(const struct answer_source *from, const struct why_question *q, struct arena *a,
                struct why *ret, struct err *err)
{
    struct why_options o = {
        .hook = q->hook, .call = q->call, .thread = q->thread, .tool = q->tool, .event = q->event
    };

    return answer_check_why(q, err) && read_time("at", q->at, &o.at_us, err) &&
           lag_measure(from->store, from->state_dir, &o.unshipped, err) &&
           why_query(from->store, &o, a, ret, err);
}
