#include "sinks/loader_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "collector/record/decode.h"
#include "sinks/deadletter.h"
#include "sinks/loader_seen.h"
#include "sinks/sql_result.h"

struct loader_place *loader_place_of(struct loader_batch *b, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < b->n_places; i++) {
        if (b->places[i].partition == partition && strcmp(b->places[i].topic, topic) == 0) {
            return &b->places[i];
        }
    }
    return NULL;
}

void loader_batch_clear(struct loader_batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        rd_kafka_message_destroy(b->messages[i]);
    }
    b->n = 0;
    b->bytes = 0;
}

void loader_batch_done(struct loader_batch *b)
{
    loader_batch_clear(b);
    postgres_batch_close(b->db);
    b->db = NULL;
    arena_clear(&b->arena);
}

bool loader_batch_connect(struct loader_batch *b, struct err *err)
{
    const char *dsn = json_string_value(json_object_get(b->o->postgres, "dsn"));
    int64_t days = json_integer_value(json_object_get(b->o->postgres, "retention_days"));

    if (b->db && !b->db->db->lost) {
        return true;
    }
    postgres_batch_close(b->db);
    b->db = NULL;
    return postgres_batch_open(dsn, b->o->timeout_ms, days, &b->db, err);
}

static struct postgres_value text(struct slice s)
{
    return (struct postgres_value){ .kind = POSTGRES_TEXT, .text = s };
}

static struct postgres_value number(int64_t n)
{
    return (struct postgres_value){ .kind = POSTGRES_INTEGER, .number = n };
}

static bool keep_number(void *ctx, const PGresult *row)
{
    *(int64_t *)ctx = postgres_integer(row, 0);
    return false;
}

enum sink_result loader_batch_ask(struct loader_batch *b, struct err *err)
{
    postgres_arm(b->db->db);
    for (size_t i = 0; i < b->n_places; i++) {
        struct loader_place *place = &b->places[i];
        const struct postgres_value values[] = { text(slice_from_cstr(place->topic)),
                                                 number(place->partition) };
        enum sql_class class;

        place->next_offset = -1;
        class = postgres_query(b->db->db,
                               "SELECT next_offset FROM kafka_offset WHERE topic = $1 "
                               "AND partition = $2",
                               values, 2, keep_number, &place->next_offset, NULL, err);
        if (class != SQL_DONE) {
            return sql_result(class);
        }
    }
    return SINK_OK;
}

/* ---- One message ------------------------------------------------------------------ */

/* What the headers and the value say. */
struct letter {
    struct sink_record record;
    struct slice journal;
    int64_t time_us;
};

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

static bool read_message(struct loader_batch *b, const rd_kafka_message_t *m, struct letter *ret,
                         struct err *err)
{
    const struct slice parts[] = { { .ptr = "\0", .len = 1 },
                                   { .ptr = m->payload, .len = m->len } };
    struct record_head head;

    *ret = (struct letter){ .journal = header(m, "journal") };
    ret->record.json = parts[1];
    ret->record.leaf = digest_of_parts(parts, 2);
    if (ret->journal.len == 0 || !slice_to_u64(header(m, "seq"), &ret->record.seq)) {
        return err_set(err, ERR_INVALID, "the message has no journal and seq in its headers");
    }
    arena_clear(&b->arena);
    if (!decode_head(ret->record.json, &b->arena, &ret->record.type, &head, err)) {
        return false;
    }
    ret->time_us = head.time_us;
    return true;
}

/* ---- The last sequences --------------------------------------------------------------- */

/*
 * One journal in one partition. A topic's partition holds a journal's records in
 * order, so what is above the last sequence is new, without a look. What is not is a
 * resend, or a dead letter that was sent at last: then the table knows. The
 * partition's offset is ours while the transaction lasts, and so are these.
 */
struct mark {
    struct slice journal; /* into a message of the batch */
    const struct loader_place *place;
    uint64_t last_seq;
    uint64_t stored_seq;     /* last_seq as it was before this transaction */
    struct loader_seen seen; /* there already, of what this batch has, or added by it */
    bool looked;             /* `seen` holds what was there before */
    bool moved;
};

struct marks {
    struct mark *list; /* owned */
    size_t n;
    size_t cap;
};

static void marks_done(struct marks *m)
{
    for (size_t i = 0; i < m->n; i++) {
        loader_seen_done(&m->list[i].seen);
    }
    free(m->list);
}

static struct mark *find_mark(struct marks *marks, struct slice journal,
                              const struct loader_place *place)
{
    for (size_t i = marks->n; i > 0; i--) {
        if (marks->list[i - 1].place == place && slice_equal(marks->list[i - 1].journal, journal)) {
            return &marks->list[i - 1];
        }
    }
    if (marks->n == marks->cap) {
        marks->cap = marks->cap > 0 ? marks->cap * 2 : 16;
        marks->list = xrealloc(marks->list, marks->cap * sizeof(*marks->list));
    }
    marks->list[marks->n] = (struct mark){ .journal = journal };
    return &marks->list[marks->n++];
}

/* Read a mark that is new from the database. */
static enum sink_result read_mark(struct loader_batch *b, struct mark *m,
                                  const struct loader_place *place, struct err *err)
{
    const struct postgres_value values[] = { text(m->journal), text(slice_from_cstr(place->topic)),
                                             number(place->partition) };
    int64_t last = 0;
    enum sql_class class = SQL_DONE;

    if (m->place) {
        return SINK_OK;
    }
    class = postgres_query(b->db->db,
                           "SELECT last_seq FROM kafka_position WHERE journal = $1 AND topic = $2 "
                           "AND partition = $3",
                           values, 3, keep_number, &last, NULL, err);
    m->last_seq = (uint64_t)last;
    m->stored_seq = (uint64_t)last;
    m->place = place;
    return class == SQL_DATA ? SINK_REJECT : sql_result(class);
}

static enum sink_result write_marks(struct loader_batch *b, const struct marks *marks,
                                    struct err *err)
{
    enum sql_class class = SQL_DONE;

    for (size_t i = 0; class == SQL_DONE && i < marks->n; i++) {
        const struct mark *m = &marks->list[i];
        const struct postgres_value values[] = {
            text(m->journal),
            text(slice_from_cstr(m->place->topic)),
            number(m->place->partition),
            number((int64_t)m->last_seq),
        };

        if (m->moved) {
            class = postgres_query(b->db->db,
                                   "INSERT INTO kafka_position (journal, topic, partition, "
                                   "last_seq) VALUES ($1, $2, $3, $4) ON CONFLICT (journal, topic, "
                                   "partition) DO UPDATE SET last_seq = excluded.last_seq",
                                   values, 4, NULL, NULL, NULL, err);
        }
    }
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
}

static bool keep_seen(void *ctx, const PGresult *row)
{
    loader_seen_add(ctx, (uint64_t)postgres_integer(row, 0));
    return true;
}

/* Widen the range by a message, where it is one of the mark's that may be there. */
static void widen(struct loader_batch *b, const struct mark *mark, const rd_kafka_message_t *m,
                  struct postgres_range *range)
{
    struct err ignored; /* a message that cannot be read is refused when its turn comes */
    struct letter l;

    if (loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition) != mark->place ||
        !slice_equal(header(m, "journal"), mark->journal) || !read_message(b, m, &l, &ignored) ||
        l.record.seq > mark->stored_seq) {
        return;
    }
    range->type = l.record.type;
    range->from_us = l.time_us < range->from_us ? l.time_us : range->from_us;
    range->to_us = l.time_us > range->to_us ? l.time_us : range->to_us;
    range->from_seq = l.record.seq < range->from_seq ? l.record.seq : range->from_seq;
    range->to_seq = l.record.seq > range->to_seq ? l.record.seq : range->to_seq;
}

/* One question for all messages of the batch that look like resends: a producer resends many. */
static enum sink_result look(struct loader_batch *b, struct mark *mark, struct err *err)
{
    struct postgres_range range = { .journal = mark->journal,
                                    .from_us = INT64_MAX,
                                    .from_seq = UINT64_MAX };

    for (size_t i = 0; i < b->n; i++) {
        widen(b, mark, b->messages[i], &range);
    }
    mark->looked = true;
    return range.from_seq == UINT64_MAX
               ? SINK_OK
               : postgres_batch_list(b->db, &range, keep_seen, &mark->seen, err);
}

static enum sink_result add_message(struct loader_batch *b, const rd_kafka_message_t *m,
                                    struct marks *marks, struct loader_count *count,
                                    struct err *err)
{
    const struct loader_place *place =
        loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition);
    struct letter l;

    if (!read_message(b, m, &l, err)) {
        return SINK_REJECT;
    }

    struct mark *mark = find_mark(marks, l.journal, place);
    enum sink_result result = read_mark(b, mark, place, err);

    if (result == SINK_OK && l.record.seq <= mark->stored_seq && !mark->looked) {
        result = look(b, mark, err);
    }
    if (result != SINK_OK) {
        return result;
    }
    if (l.record.seq <= mark->last_seq && loader_seen_has(&mark->seen, l.record.seq)) {
        count->dropped++;
        return SINK_OK;
    }
    mark->moved = mark->moved || l.record.seq > mark->last_seq;
    mark->last_seq = l.record.seq > mark->last_seq ? l.record.seq : mark->last_seq;
    loader_seen_add(&mark->seen, l.record.seq);
    count->loaded++;
    return postgres_batch_add(b->db, l.journal, &l.record, err);
}

/* ---- One transaction ---------------------------------------------------------------- */

/* The offset moves from where we believe it to be; SINK_DOWN when another loader has moved it. */
static enum sink_result move_offset(struct loader_batch *b, const struct loader_place *place,
                                    int64_t to, struct err *err)
{
    const struct postgres_value values[] = {
        text(slice_from_cstr(place->topic)),
        number(place->partition),
        number(to),
        number(place->next_offset),
    };
    uint64_t moved = 0;
    enum sql_class class = postgres_query(
        b->db->db,
        place->next_offset < 0
            ? "INSERT INTO kafka_offset (topic, partition, next_offset) VALUES ($1, $2, $3) "
              "ON CONFLICT (topic, partition) DO NOTHING"
            : "UPDATE kafka_offset SET next_offset = $3 WHERE topic = $1 AND partition = $2 "
              "AND next_offset = $4",
        values, place->next_offset < 0 ? 3 : 4, NULL, NULL, &moved, err);

    if (class == SQL_DONE && moved == 0) {
        (void)err_set(err, ERR_AGAIN, "%s/%d: another loader has moved on from %lld; reading anew",
                      place->topic, place->partition, (long long)place->next_offset);
        return SINK_DOWN;
    }
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
}

/* Places in use by messages from..to, each with where it will stand. */
static enum sink_result move_offsets(struct loader_batch *b, size_t from, size_t to,
                                     struct err *err)
{
    for (size_t i = 0; i < b->n_places; i++) {
        b->places[i].read_to = -1;
    }
    for (size_t i = from; i < to; i++) {
        const rd_kafka_message_t *m = b->messages[i];
        struct loader_place *place = loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition);

        if (!place) {
            (void)err_set(err, ERR_AGAIN, "a partition was given to another loader");
            return SINK_DOWN;
        }
        place->read_to = m->offset + 1;
    }
    for (size_t i = 0; i < b->n_places; i++) {
        enum sink_result result = SINK_OK;

        if (b->places[i].read_to >= 0) {
            result = move_offset(b, &b->places[i], b->places[i].read_to, err);
        }
        if (result != SINK_OK) {
            return result;
        }
    }
    return SINK_OK;
}

static void remember_offsets(struct loader_batch *b)
{
    for (size_t i = 0; i < b->n_places; i++) {
        if (b->places[i].read_to >= 0) {
            b->places[i].next_offset = b->places[i].read_to;
        }
    }
}

/* Messages from..to in one transaction; `skip`: only their offsets and nothing else. */
static enum sink_result commit_range(struct loader_batch *b, size_t from, size_t to, bool skip,
                                     struct err *err)
{
    CLEANUP(marks_done) struct marks marks = { 0 };
    struct loader_count count = { 0 };
    char source[300];
    enum sink_result result = postgres_batch_begin(b->db, err);

    (void)snprintf(source, sizeof(source), "loader:%s", b->o->collector);
    if (result == SINK_OK) {
        result = move_offsets(b, from, to, err);
    }
    for (size_t i = from; result == SINK_OK && !skip && i < to; i++) {
        result = add_message(b, b->messages[i], &marks, &count, err);
    }
    if (result == SINK_OK) {
        result = write_marks(b, &marks, err);
    }
    if (result == SINK_OK) {
        result = postgres_batch_commit(b->db, slice_from_cstr(source), err);
    }
    if (result != SINK_OK) {
        postgres_batch_abandon(b->db);
        return b->db->db->lost && result == SINK_RETRY ? SINK_DOWN : result;
    }
    remember_offsets(b);
    b->count.loaded += count.loaded;
    b->count.dropped += count.dropped;
    return SINK_OK;
}

/* A single message that is refused: a person gets it, and the offset moves past it. */
static enum sink_result bury(struct loader_batch *b, size_t i, struct err *err)
{
    const rd_kafka_message_t *m = b->messages[i];
    struct slice journal = header(m, "journal");
    struct deadletter d = {
        .journal = journal,
        .error = slice_from_cstr(err->text),
        .time_us = clock_now_us(),
        .attempts = 1,
        .record = { .ptr = m->payload, .len = m->len },
    };
    struct letter l;
    struct err why = *err;
    struct err ignored; /* a message that cannot be read has no type, and that is why it is here */

    if (read_message(b, m, &l, &ignored)) {
        d.type = l.record.type;
        d.seq = l.record.seq;
    }
    if (!deadletter_append(b->o->state_dir, "postgres", &d, err)) {
        return SINK_RETRY;
    }
    log_error("record refused for good, kept as a dead letter", log_str("sink", "postgres"),
              log_str("topic", rd_kafka_topic_name(m->rkt)), log_i64("partition", m->partition),
              log_i64("offset", m->offset), log_str("err", why.text));
    b->count.dead++;
    return commit_range(b, i, i + 1, true, err);
}

static enum sink_result commit_some(struct loader_batch *b, size_t from, size_t to, struct err *err)
{
    enum sink_result result = commit_range(b, from, to, false, err);
    size_t middle = from + (to - from) / 2;

    if (result != SINK_REJECT) {
        return result;
    }
    if (to - from == 1) {
        return bury(b, from, err);
    }
    result = commit_some(b, from, middle, err);
    return result == SINK_OK ? commit_some(b, middle, to, err) : result;
}

enum sink_result loader_batch_commit(struct loader_batch *b, struct err *err)
{
    enum sink_result result = b->n > 0 ? commit_some(b, 0, b->n, err) : SINK_OK;

    if (result == SINK_OK) {
        loader_batch_clear(b);
    }
    return result;
}
