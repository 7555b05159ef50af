#include "sinks/kafka_message.h"

#include "collector/base/buf.h"
#include "collector/base/clock.h"
#include "collector/record/decode.h"
#include "collector/record/encode.h"
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

/* The texts of the headers that all messages of a record share, made once and one after another. */
static bool add_texts(const struct sink_record *r, const struct record_head *head,
                      struct kafka_space *s, struct kafka_message *m)
{
    char time[CLOCK_TEXT_SIZE];
    struct slice text;
    size_t source_len;

    clock_format(head->time_us, time);
    buf_clear(&s->row);
    buf_add(&s->row, SLICE("/hooktrail/"));
    buf_add(&s->row, head->collector);
    source_len = s->row.len_bytes;
    buf_add(&s->row, (struct slice){ .ptr = time, .len = CLOCK_TEXT_SIZE - 1 });
    buf_add_u64(&s->row, r->seq);
    if (!buf_ok(&s->row) || !arena_dup(&s->arena, buf_slice(&s->row), &text)) {
        return false;
    }
    m->source = cut(&text, source_len);
    m->time = cut(&text, CLOCK_TEXT_SIZE - 1);
    m->seq = text;
    return true;
}

/*
 * Room for n messages of a record, the first of them made. `subject` empty: the collector
 * is the key. NULL: the space is full.
 */
static struct kafka_message *new_messages(const struct sink_record *r,
                                          const struct record_head *head, struct slice subject,
                                          size_t n, struct kafka_space *s)
{
    struct kafka_message *list = arena_alloc(&s->arena, n, sizeof(*list));

    if (!list || !add_texts(r, head, s, list)) {
        return NULL;
    }
    list->key = subject.len > 0 ? subject : head->collector;
    list->value = r->json;
    list->id = head->id;
    list->subject = subject;
    return list;
}

/* The derived row of hook i, as a message: its id, and its JSON behind it. */
static bool execution_message(const struct evaluation *e, size_t i, struct kafka_space *s,
                              struct kafka_message *m)
{
    struct slice copy;
    size_t id_len;

    buf_clear(&s->row);
    encode_execution_id(e, i, &s->row);
    id_len = s->row.len_bytes;
    encode_hook_execution(e, i, buf_slice(&s->identity), &s->row);
    if (!buf_ok(&s->row) || !arena_dup(&s->arena, buf_slice(&s->row), &copy)) {
        return false;
    }
    m->topic = KAFKA_HOOK_EXECUTION;
    m->type = "hooktrail.hook_execution";
    m->id = (struct slice){ .ptr = copy.ptr, .len = id_len };
    m->value = (struct slice){ .ptr = copy.ptr + id_len, .len = copy.len - id_len };
    return true;
}

static bool evaluation_messages(const struct sink_record *r, struct kafka_space *s,
                                struct kafka_message **ret, size_t *ret_n, struct err *err)
{
    struct evaluation e;

    if (!decode_evaluation_outline(r->json, &s->arena, &e, err)) {
        return false;
    }

    const struct slice subjects[] = { e.thread_id, e.task_run_id, e.user_id };
    struct kafka_message *list = new_messages(r, &e.head, first_of(subjects, 3), 1 + e.n_hooks, s);
    size_t n = 1;

    buf_clear(&s->identity);
    encode_identity(&e, &s->identity);
    if (!list || !buf_ok(&s->identity)) {
        return full(err);
    }
    list[0].topic = KAFKA_HOOK_EVALUATION;
    list[0].type = "hooktrail.hook_evaluation";
    for (size_t i = 0; i < e.n_hooks; i++) {
        if (e.hooks[i].decision == DECISION_SKIPPED) {
            continue;
        }
        list[n] = list[0];
        if (!execution_message(&e, i, s, &list[n])) {
            return full(err);
        }
        n++;
    }
    *ret = list;
    *ret_n = n;
    return true;
}

static bool tool_message(const struct sink_record *r, struct kafka_space *s,
                         struct kafka_message **ret, size_t *ret_n, struct err *err)
{
    struct tool_execution t;

    if (!decode_tool_outline(r->json, &s->arena, &t, err)) {
        return false;
    }

    struct kafka_message *m = new_messages(r, &t.head, t.thread_id, 1, s);

    if (!m) {
        return full(err);
    }
    m->topic = KAFKA_TOOL_EXECUTION;
    m->type = "hooktrail.tool_execution";
    *ret = m;
    *ret_n = 1;
    return true;
}

/* "hooktrail." and the record's own word, which may be one that only a newer program knows. */
static bool type_of(struct slice word, struct arena *a, const char **ret)
{
    CLEANUP(buf_done) struct buf b;
    struct slice copy;

    buf_init(&b, 256);
    buf_addf(&b, "hooktrail.%" SLICE_FMT, SLICE_ARG(word));
    if (!buf_ok(&b) || !arena_dup(a, buf_slice(&b), &copy)) {
        return false;
    }
    *ret = copy.ptr;
    return true;
}

static bool audit_message(const struct sink_record *r, struct kafka_space *s,
                          struct kafka_message **ret, size_t *ret_n, struct err *err)
{
    struct record_head head;
    struct slice word;

    if (!rows_head(r, &s->arena, &head, &word, err)) {
        return false;
    }

    struct kafka_message *m = new_messages(r, &head, (struct slice){ 0 }, 1, s);

    if (!m || !type_of(word, &s->arena, &m->type)) {
        return full(err);
    }
    m->topic = KAFKA_AUDIT;
    *ret = m;
    *ret_n = 1;
    return true;
}

static bool messages(const struct sink_record *r, struct kafka_space *s, struct kafka_message **ret,
                     size_t *ret_n, struct err *err)
{
    switch (r->type) {
    case RECORD_HOOK_EVALUATION:
        return evaluation_messages(r, s, ret, ret_n, err);
    case RECORD_TOOL_EXECUTION:
        return tool_message(r, s, ret, ret_n, err);
    case RECORD_NONE:
    case RECORD_HOOK_REGISTRY:
    case RECORD_GAP:
    case RECORD_CHECKPOINT:
    case RECORD_ADMIN:
    case RECORD_TYPE_COUNT:
        break;
    }
    return audit_message(r, s, ret, ret_n, err);
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
    add(h, SLICE("ce_type"), slice_from_cstr(m->type));
    add(h, SLICE("ce_time"), m->time);
    if (m->subject.len > 0) {
        add(h, SLICE("ce_subject"), m->subject);
    }
    add(h, SLICE("content-type"), SLICE("application/json"));
    add(h, SLICE("journal"), journal);
    add(h, SLICE("seq"), m->seq);
    return h;
}
