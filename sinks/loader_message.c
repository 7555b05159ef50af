#include "sinks/loader_message.h"

#include <stdio.h>

#include "collector/base/clock.h"
#include "collector/base/id.h"
#include "collector/journal/format.h"
#include "collector/record/record.h"
#include "sinks/deadletter.h"
#include "sinks/rows.h"

static struct slice header(const rd_kafka_message_t *m, const char *name)
{
    rd_kafka_headers_t *headers;
    const void *value;
    size_t len;

    if (rd_kafka_message_headers(m, &headers) ||
        rd_kafka_header_get_last(headers, name, &value, &len)) {
        return (struct slice){ 0 };
    }
    return (struct slice){ .ptr = value, .len = len };
}

bool loader_message_place(const rd_kafka_message_t *m, struct slice *ret_journal, uint64_t *ret_seq)
{
    *ret_journal = header(m, "journal");
    return id_valid(*ret_journal) && slice_to_u64(header(m, "seq"), ret_seq) && *ret_seq > 0 &&
           *ret_seq <= INT64_MAX;
}

enum sink_result loader_message_read(const rd_kafka_message_t *m, struct arena *a,
                                     struct loader_message *ret, struct err *err)
{
    struct record_head head;
    struct slice type;

    *ret = (struct loader_message){ 0 };
    ret->record.json = (struct slice){ .ptr = m->payload, .len = m->len };
    ret->record.leaf = format_leaf(ret->record.json);
    if (!loader_message_place(m, &ret->journal, &ret->record.seq)) {
        (void)err_set(err, ERR_INVALID, "the message has no journal and seq in its headers");
        return SINK_REJECT;
    }
    arena_clear(a);
    if (!rows_head(&ret->record, a, &head, &type, err)) {
        return rows_not_decoded(&ret->record, err);
    }
    ret->record.type = record_type_from(type);
    ret->time_us = head.time_us;
    return SINK_OK;
}

bool loader_message_letter(const rd_kafka_message_t *m, struct arena *a, const char *state_dir,
                           const char *why, struct err *err)
{
    struct loader_message l;
    struct err ignored; /* it is told by `why` */
    bool readable = loader_message_read(m, a, &l, &ignored) == SINK_OK;
    char place[300];

    (void)snprintf(place, sizeof(place), "%s/%d@%lld", rd_kafka_topic_name(m->rkt), m->partition,
                   (long long)m->offset);

    const struct deadletter d = {
        .journal = id_valid(l.journal) ? l.journal : (struct slice){ 0 },
        .seq = readable ? l.record.seq : 0,
        .place = readable ? (struct slice){ 0 } : slice_from_cstr(place),
        .type = readable ? l.record.type : RECORD_NONE,
        .error = slice_from_cstr(why),
        .time_us = clock_now_us(),
        .attempts = 1,
        .record = { m->payload, m->len < RECORD_MAX_BYTES ? m->len : RECORD_MAX_BYTES },
    };

    return deadletter_append(state_dir, "postgres", &d, err);
}
