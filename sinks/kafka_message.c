#include "sinks/kafka_message.h"

#include "collector/base/buf.h"
#include "collector/record/encode.h"
#include "collector/record/outline.h"
#include "sinks/rows.h"

enum { HEADERS = 9 };

const char *kafka_topic_name(enum kafka_topic t)
{
    static const char *const names[KAFKA_TOPICS] = { "hook_evaluation", "hook_execution",
                                                     "tool_execution", "audit" };

    return names[t];
}

void kafka_space_init(struct kafka_space *s, size_t limit_bytes, size_t keep_bytes)
{
    arena_init(&s->arena, limit_bytes);
    s->arena.keep_bytes = keep_bytes;
    buf_init(&s->identity, RECORD_MAX_BYTES);
    buf_init(&s->row, RECORD_MAX_BYTES);
}

void kafka_space_done(struct kafka_space *s)
{
    arena_clear(&s->arena);
    buf_done(&s->identity);
    buf_done(&s->row);
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

static bool full(struct err *err)
{
    return err_set(err, ERR_TOO_BIG, "a batch for Kafka passes its memory limit");
}

/* The next `len` bytes of *text, which moves past them. */
static struct slice cut(struct slice *text, size_t len)
{
    struct slice s = { .ptr = text->ptr, .len = len };

    text->ptr += len;
    text->len -= len;
    return s;
}

/* The texts of headers that have to be made, one after another. */
static bool add_texts(const struct sink_record *r, const struct outline *o, struct kafka_space *s,
                      struct kafka_message *m)
{
    struct slice text;
    size_t source_len;
    size_t seq_len;

    buf_clear(&s->row);
    buf_add(&s->row, SLICE("/hooktrail/"));
    buf_add(&s->row, o->collector);
    source_len = s->row.len_bytes;
    buf_add_u64(&s->row, r->seq);
    seq_len = s->row.len_bytes - source_len;
    buf_add(&s->row, SLICE("hooktrail."));
    buf_add(&s->row, o->type);
    if (!buf_ok(&s->row) || !arena_dup(&s->arena, buf_slice(&s->row), &text)) {
        return false;
    }
    m->source = cut(&text, source_len);
    m->seq = cut(&text, seq_len);
    m->type = text;
    return true;
}

static enum kafka_topic topic_of(enum record_type type)
{
    switch (type) {
    case RECORD_HOOK_EVALUATION:
        return KAFKA_HOOK_EVALUATION;
    case RECORD_TOOL_EXECUTION:
        return KAFKA_TOOL_EXECUTION;
    case RECORD_NONE:
    case RECORD_HOOK_REGISTRY:
    case RECORD_GAP:
    case RECORD_CHECKPOINT:
    case RECORD_ADMIN:
    case RECORD_TYPE_COUNT:
        break;
    }
    return KAFKA_AUDIT;
}

/* The record itself. Without a subject the collector is the key. */
static bool record_message(const struct sink_record *r, const struct outline *o,
                           struct kafka_space *s, struct kafka_message *m)
{
    const struct slice subjects[] = { o->thread_id, o->task_run_id, o->user_id };

    m->topic = topic_of(r->type);
    m->subject = first_of(subjects, sizeof(subjects) / sizeof(subjects[0]));
    m->key = m->subject.len > 0 ? m->subject : o->collector;
    m->value = r->json;
    m->id = o->id;
    m->time = o->time;
    return add_texts(r, o, s, m);
}

/* The derived row of a hook that ran: its id, and its JSON behind it. */
static bool execution_message(const struct outline *o, const struct outline_hook *hook,
                              struct kafka_space *s, struct kafka_message *m)
{
    struct slice copy;
    size_t id_len;

    buf_clear(&s->row);
    encode_execution_id(o->id, hook->ordinal, &s->row);
    id_len = s->row.len_bytes;
    encode_execution_row(o->id, hook->ordinal, buf_slice(&s->identity), hook->json, &s->row);
    if (!buf_ok(&s->row) || !arena_dup(&s->arena, buf_slice(&s->row), &copy)) {
        return false;
    }
    m->topic = KAFKA_HOOK_EXECUTION;
    m->type = SLICE("hooktrail.hook_execution");
    m->id = (struct slice){ .ptr = copy.ptr, .len = id_len };
    m->value = (struct slice){ .ptr = copy.ptr + id_len, .len = copy.len - id_len };
    return true;
}

static bool messages(const struct sink_record *r, struct kafka_space *s, struct kafka_message **ret,
                     size_t *ret_n, struct err *err)
{
    struct outline o;

    if (!outline_read(r->json, r->type, &s->arena, &s->identity, &o, err)) {
        return false;
    }

    struct kafka_message *list = arena_alloc(&s->arena, 1 + o.n_ran, sizeof(*list));

    if (!list || !record_message(r, &o, s, list)) {
        return full(err);
    }
    for (size_t i = 0; i < o.n_ran; i++) {
        list[1 + i] = list[0];
        if (!execution_message(&o, &o.ran[i], s, &list[1 + i])) {
            return full(err);
        }
    }
    *ret = list;
    *ret_n = 1 + o.n_ran;
    return true;
}

enum sink_result kafka_messages(const struct sink_record *r, struct kafka_space *s,
                                struct kafka_message **ret, size_t *ret_n, struct err *err)
{
    if (messages(r, s, ret, ret_n, err)) {
        return SINK_OK;
    }
    return err->code == ERR_TOO_BIG ? SINK_REJECT : rows_not_decoded(r, err);
}

static void add(rd_kafka_headers_t *h, struct slice name, struct slice value)
{
    (void)rd_kafka_header_add(h, name.ptr, (ssize_t)name.len, value.ptr ? value.ptr : "",
                              (ssize_t)value.len);
}

rd_kafka_headers_t *kafka_headers(const struct kafka_message *m, struct slice journal)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(HEADERS);

    add(h, SLICE("ce_specversion"), SLICE("1.0"));
    add(h, SLICE("ce_id"), m->id);
    add(h, SLICE("ce_source"), m->source);
    add(h, SLICE("ce_type"), m->type);
    add(h, SLICE("ce_time"), m->time);
    if (m->subject.len > 0) {
        add(h, SLICE("ce_subject"), m->subject);
    }
    add(h, SLICE("content-type"), SLICE("application/json"));
    add(h, SLICE("journal"), journal);
    add(h, SLICE("seq"), m->seq);
    return h;
}
