#include "sinks/kafka_message.h"

#include <inttypes.h>
#include <stdio.h>

#include "collector/base/buf.h"
#include "collector/base/clock.h"
#include "collector/record/decode.h"
#include "collector/record/encode.h"

enum { HEADERS = 9 };

const char *kafka_topic_name(enum kafka_topic t)
{
    static const char *const names[KAFKA_TOPICS] = { "hook_evaluation", "hook_execution",
                                                     "tool_execution", "audit" };

    return names[t];
}

static struct slice first_of(const struct slice *candidates, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (candidates[i].len > 0) {
            return candidates[i];
        }
    }
    return (struct slice){ 0 };
}

/* What all messages of a record share. `subject` empty: the collector is the key. */
static struct kafka_message message(enum kafka_topic topic, const struct record_head *head,
                                    struct slice subject, struct slice value)
{
    struct kafka_message m = {
        .topic = topic,
        .key = subject.len > 0 ? subject : head->collector,
        .value = value,
        .id = head->id,
        .collector = head->collector,
        .subject = subject,
    };

    clock_format(head->time_us, m.time);
    return m;
}

static bool full(struct err *err)
{
    return err_set(err, ERR_TOO_BIG, "a batch for Kafka passes its memory limit");
}

/* The derived row of hook i, as a message. */
static bool execution_message(const struct evaluation *e, size_t i, struct arena *a,
                              struct kafka_message *m, struct err *err)
{
    CLEANUP(buf_done) struct buf out;
    CLEANUP(buf_done) struct buf id;

    buf_init(&out, RECORD_MAX_BYTES);
    buf_init(&id, ID_TEXT_SIZE + 16);
    encode_hook_execution(e, i, &out);
    buf_add(&id, e->head.id);
    buf_addf(&id, ".%" PRIu32, e->hooks[i].ordinal);
    m->topic = KAFKA_HOOK_EXECUTION;
    m->type = "hooktrail.hook_execution";
    if (!arena_dup(a, buf_slice(&out), &m->value) || !arena_dup(a, buf_slice(&id), &m->id)) {
        return full(err);
    }
    return true;
}

static bool evaluation_messages(const struct sink_record *r, struct arena *a,
                                struct kafka_message **ret, size_t *ret_n, struct err *err)
{
    struct evaluation e;

    if (!decode_evaluation(r->json, a, &e, err)) {
        return false;
    }

    const struct slice subjects[] = { e.thread_id, e.task_run_id, e.user_id };
    struct kafka_message *list = arena_alloc(a, 1 + e.n_hooks, sizeof(*list));
    size_t n = 1;

    if (!list) {
        return full(err);
    }
    list[0] = message(KAFKA_HOOK_EVALUATION, &e.head, first_of(subjects, 3), r->json);
    list[0].type = "hooktrail.hook_evaluation";
    for (size_t i = 0; i < e.n_hooks; i++) {
        if (e.hooks[i].decision == DECISION_SKIPPED) {
            continue;
        }
        list[n] = list[0];
        if (!execution_message(&e, i, a, &list[n], err)) {
            return false;
        }
        n++;
    }
    *ret = list;
    *ret_n = n;
    return true;
}

/* What a tool call, and any other record, is filed under. */
static bool subject_of(const struct sink_record *r, struct arena *a, struct record_head *ret_head,
                       struct slice *ret_subject, struct err *err)
{
    struct tool_execution t;
    enum record_type type;

    if (r->type != RECORD_TOOL_EXECUTION) {
        *ret_subject = (struct slice){ 0 };
        return decode_head(r->json, a, &type, ret_head, err);
    }
    if (!decode_tool_execution(r->json, a, &t, err)) {
        return false;
    }
    *ret_head = t.head;
    *ret_subject = t.thread_id;
    return true;
}

static const char *type_of(enum record_type type)
{
    switch (type) {
    case RECORD_HOOK_EVALUATION:
        return "hooktrail.hook_evaluation";
    case RECORD_TOOL_EXECUTION:
        return "hooktrail.tool_execution";
    case RECORD_HOOK_REGISTRY:
        return "hooktrail.hook_registry";
    case RECORD_GAP:
        return "hooktrail.gap";
    case RECORD_CHECKPOINT:
        return "hooktrail.checkpoint";
    case RECORD_ADMIN:
        return "hooktrail.admin";
    case RECORD_NONE:
    case RECORD_TYPE_COUNT:
        break;
    }
    return "hooktrail.record";
}

bool kafka_messages(const struct sink_record *r, struct arena *a, struct kafka_message **ret,
                    size_t *ret_n, struct err *err)
{
    struct record_head head;
    struct slice subject;

    if (r->type == RECORD_HOOK_EVALUATION) {
        return evaluation_messages(r, a, ret, ret_n, err);
    }
    if (!subject_of(r, a, &head, &subject, err)) {
        return false;
    }

    struct kafka_message *m = ARENA_NEW(a, struct kafka_message);

    if (!m) {
        return full(err);
    }
    *m = message(r->type == RECORD_TOOL_EXECUTION ? KAFKA_TOOL_EXECUTION : KAFKA_AUDIT, &head,
                 subject, r->json);
    m->type = type_of(r->type);
    *ret = m;
    *ret_n = 1;
    return true;
}

static void add(rd_kafka_headers_t *h, const char *name, struct slice value)
{
    (void)rd_kafka_header_add(h, name, -1, value.ptr ? value.ptr : "", (ssize_t)value.len);
}

rd_kafka_headers_t *kafka_headers(const struct kafka_message *m, struct slice journal, uint64_t seq)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(HEADERS);
    char source[300];
    char number[24];
    int n = snprintf(source, sizeof(source), "/hooktrail/%" SLICE_FMT, SLICE_ARG(m->collector));

    add(h, "ce_specversion", SLICE("1.0"));
    add(h, "ce_id", m->id);
    add(h, "ce_source",
        (struct slice){ .ptr = source,
                        .len = (size_t)n < sizeof(source) ? (size_t)n : sizeof(source) - 1 });
    add(h, "ce_type", slice_from_cstr(m->type));
    add(h, "ce_time", slice_from_cstr(m->time));
    if (m->subject.len > 0) {
        add(h, "ce_subject", m->subject);
    }
    add(h, "content-type", SLICE("application/json"));
    add(h, "journal", journal);
    (void)snprintf(number, sizeof(number), "%" PRIu64, seq);
    add(h, "seq", slice_from_cstr(number));
    return h;
}
