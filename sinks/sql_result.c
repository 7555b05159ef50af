#include "sinks/sql_result.h"

#include <assert.h>
#include <string.h>

enum sink_result sql_result(enum sql_class class)
{
    switch (class) {
    case SQL_DONE:
        return SINK_OK;
    case SQL_AGAIN:
        return SINK_RETRY;
    case SQL_LOST:
        return SINK_DOWN;
    case SQL_DATA:
        return SINK_REJECT;
    case SQL_REFUSED:
        return SINK_BROKEN;
    }
    assert(false && "no sql_class");
    return SINK_BROKEN;
}

enum sink_result sql_result_elsewhere(const struct span *span, uint64_t next, struct err *err)
{
    (void)err_set(err, ERR_AGAIN,
                  "the store stands at %llu of journal %" SLICE_FMT ", not at %llu: another ship "
                  "writes to it, or the database was restored; going on from there",
                  (unsigned long long)next, SLICE_ARG(span->journal),
                  (unsigned long long)span->from);
    return SINK_DOWN;
}

struct sink_position sql_position(int64_t next_seq, int64_t last_seq, struct slice last_leaf)
{
    struct sink_position at = { .next = (uint64_t)next_seq };

    if (last_seq > 0 && last_leaf.len == sizeof(at.leaf.bytes)) {
        at.last = (uint64_t)last_seq;
        memcpy(at.leaf.bytes, last_leaf.ptr, last_leaf.len);
    }
    return at;
}
