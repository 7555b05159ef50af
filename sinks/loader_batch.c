#include "sinks/loader_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/loader_look.h"
#include "sinks/loader_mark.h"
#include "sinks/loader_message.h"
#include "sinks/sql_result.h"

static const char unique_violation[] = "23505"; /* SQLSTATE */

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
    return postgres_batch_open(dsn, sink_timeout_ms(b->o->postgres), days, &b->db, err);
}

enum sink_result loader_batch_ask(struct loader_batch *b, struct err *err)
{
    postgres_arm(b->db->db);
    for (size_t i = 0; i < b->n_places; i++) {
        struct loader_place *place = &b->places[i];
        const struct postgres_value values[] = { postgres_of_text(slice_from_cstr(place->topic)),
                                                 postgres_of_integer(place->partition) };
        enum sql_class class;

        place->next_offset = -1;
        class = postgres_query(b->db->db,
                               "SELECT next_offset FROM kafka_offset WHERE topic = $1 "
                               "AND partition = $2",
                               values, 2, postgres_keep_integer, &place->next_offset, NULL, err);
        if (class != SQL_DONE) {
            return sql_result(class);
        }
    }
    return SINK_OK;
}

/* ---- The last sequences --------------------------------------------------------------- */

bool loader_batch_knows(struct loader_batch *b, const struct loader_place *place,
                        const rd_kafka_message_t *m)
{
    CLEANUP(loader_marks_done) struct loader_marks marks = { .db = b->db->db };
    struct err ignored; /* a lost connection is noticed, and told, by the commit */
    struct loader_mark *mark;
    struct slice journal;
    uint64_t seq;

    if (!loader_message_place(m, &journal, &seq)) {
        return true;
    }
    postgres_arm(b->db->db);
    return loader_mark_of(&marks, journal, place, &mark, &ignored) != SINK_OK ||
           seq <= mark->last_seq;
}

/* A message that nobody takes counts as read, too: it may be the last one before we come back. */
static enum sink_result pass_over(struct loader_batch *b, const rd_kafka_message_t *m,
                                  struct loader_marks *marks, struct err *err)
{
    const struct loader_place *place =
        loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition);
    struct loader_mark *mark;
    struct slice journal;
    uint64_t seq;

    if (!loader_message_place(m, &journal, &seq)) {
        return SINK_OK;
    }

    enum sink_result result = loader_mark_of(marks, journal, place, &mark, err);

    if (result == SINK_OK) {
        loader_mark_move(mark, seq);
    }
    return result;
}

/* ---- What was seen before --------------------------------------------------------------- */

/* What is to be asked about one journal. */
struct asking {
    size_t journal; /* index into loader_marks.journals */
    struct loader_asked *list;
    size_t n;
};

static bool needs_look(const struct loader_batch *b, const struct loader_mark *mark, uint64_t seq,
                       enum loader_number_is is)
{
    return b->looks_at_all || seq <= mark->stored_seq || is == LOADER_NUMBER_ANOTHER;
}

/* Add a message, where it is one of the journal's that needs a look. */
static enum sink_result ask(struct loader_batch *b, const rd_kafka_message_t *m,
                            struct loader_marks *marks, struct asking *asking, struct err *err)
{
    const struct loader_place *place =
        loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition);
    struct err ignored; /* a message that cannot be read is refused when its turn comes */
    struct loader_message l;
    struct loader_mark *mark;
    struct slice journal;
    uint64_t seq;

    if (!place || !loader_message_place(m, &journal, &seq) ||
        !slice_equal(journal, marks->journals[asking->journal].id) ||
        loader_message_read(m, &b->arena, &l, &ignored) != SINK_OK) {
        return SINK_OK;
    }

    enum sink_result result = loader_mark_of(marks, journal, place, &mark, err);

    if (result == SINK_OK &&
        needs_look(b, mark, seq,
                   loader_known_as(&marks->journals[asking->journal].known, seq, &l.record.leaf))) {
        asking->list[asking->n++] = (struct loader_asked){
            .seq = seq, .time_us = l.time_us, .leaf = l.record.leaf, .seen = seq <= mark->stored_seq
        };
    }
    return result;
}

/* One question for all messages of the batch that need it: a producer resends many. */
static enum sink_result look(struct loader_batch *b, struct loader_marks *marks, size_t journal,
                             struct err *err)
{
    struct asking asking = { .journal = journal, .list = xcalloc(b->n, sizeof(*asking.list)) };
    enum sink_result result = SINK_OK;

    for (size_t i = 0; result == SINK_OK && i < b->n; i++) {
        result = ask(b, b->messages[i], marks, &asking, err);
    }

    struct loader_journal *j = &marks->journals[journal];
    const struct loader_question question = { b->db, b->o->state_dir, j->id, asking.list,
                                              asking.n };

    if (result == SINK_OK && asking.n > 0) {
        result = loader_look(&question, &j->known, err);
    }
    j->looked = true;
    free(asking.list);
    return result;
}

/* Told once a journal: there may be many. */
static void tell_twice(struct loader_batch *b, struct slice journal, const struct err *why)
{
    size_t n = b->n_told < LOADER_TOLD ? b->n_told : LOADER_TOLD;

    for (size_t i = 0; i < n; i++) {
        if (slice_equal(slice_from_cstr(b->told[i]), journal)) {
            return;
        }
    }
    (void)snprintf(b->told[b->n_told++ % LOADER_TOLD], ID_TEXT_SIZE, "%" SLICE_FMT,
                   SLICE_ARG(journal));
    log_error("a journal gives its numbers again, to other records: these are kept as dead letters",
              log_str("sink", "postgres"), log_str("err", why->text));
}

/* Another record has its number: a person gets it. */
static enum sink_result keep_twice(struct loader_batch *b, const rd_kafka_message_t *m,
                                   const struct loader_message *l, struct err *err)
{
    struct err why;

    (void)err_set(&why, ERR_INVALID,
                  "journal %" SLICE_FMT " had another record %llu before: the state folder of its "
                  "collector is an older copy (%s/%d at offset %lld)",
                  SLICE_ARG(l->journal), (unsigned long long)l->record.seq,
                  rd_kafka_topic_name(m->rkt), m->partition, (long long)m->offset);
    if (!loader_message_letter(m, &b->arena, b->o->state_dir, why.text, err)) {
        return SINK_RETRY;
    }
    postgres_arm(b->db->db); /* letters take their own time */
    tell_twice(b, l->journal, &why);
    b->count.dead++;
    return SINK_OK;
}

static enum sink_result add_message(struct loader_batch *b, size_t i, struct loader_marks *marks,
                                    struct loader_count *count, struct err *err)
{
    const rd_kafka_message_t *m = b->messages[i];
    const struct loader_place *place =
        loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition);
    struct loader_mark *mark;
    struct loader_message l;

    enum sink_result result = loader_message_read(m, &b->arena, &l, err);

    if (result != SINK_OK) {
        b->unreadable = result == SINK_REJECT ? i : b->unreadable;
        return result;
    }
    result = loader_mark_of(marks, l.journal, place, &mark, err);
    if (result != SINK_OK) {
        return result;
    }
    loader_mark_move(mark, l.record.seq);

    size_t at = mark->journal;
    enum loader_number_is is =
        loader_known_as(&marks->journals[at].known, l.record.seq, &l.record.leaf);

    if (!marks->journals[at].looked && needs_look(b, mark, l.record.seq, is)) {
        result = look(b, marks, at, err);
        is = loader_known_as(&marks->journals[at].known, l.record.seq, &l.record.leaf);
    }
    if (result != SINK_OK) {
        return result;
    }
    loader_known_add(&marks->journals[at].known, l.record.seq, &l.record.leaf);
    switch (is) {
    case LOADER_NUMBER_FREE:
        count->loaded++;
        return postgres_batch_add(b->db, l.journal, &l.record, err);
    case LOADER_NUMBER_ITS:
        count->dropped++;
        return SINK_OK;
    case LOADER_NUMBER_ANOTHER:
        b->unsure = !b->looks_at_all;
        return b->unsure ? SINK_RETRY : keep_twice(b, m, &l, err);
    }
    return SINK_OK;
}

/* ---- One transaction ---------------------------------------------------------------- */

/* The offset moves from where we believe it to be; SINK_DOWN when another loader has moved it. */
static enum sink_result move_offset(struct loader_batch *b, const struct loader_place *place,
                                    int64_t to, struct err *err)
{
    const struct postgres_value values[] = {
        postgres_of_text(slice_from_cstr(place->topic)),
        postgres_of_integer(place->partition),
        postgres_of_integer(to),
        postgres_of_integer(place->next_offset),
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

enum sink_result loader_batch_move(struct loader_batch *b, struct loader_place *place, int64_t to,
                                   struct err *err)
{
    enum sink_result result;

    postgres_arm(b->db->db);
    result = move_offset(b, place, to, err);
    if (result == SINK_OK) {
        place->next_offset = to;
    }
    return result;
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

/* Messages from..to in one transaction; `skip`: only that they were read. */
static enum sink_result commit_range(struct loader_batch *b, size_t from, size_t to, bool skip,
                                     struct err *err)
{
    CLEANUP(loader_marks_done) struct loader_marks marks = { .db = b->db->db };
    struct loader_count count = { 0 };
    char source[300];
    enum sink_result result = postgres_batch_begin(b->db, err);

    b->unsure = false;
    (void)snprintf(source, sizeof(source), "loader:%s", b->o->collector);
    if (result == SINK_OK) {
        result = move_offsets(b, from, to, err);
    }
    for (size_t i = from; result == SINK_OK && i < to; i++) {
        result = skip ? pass_over(b, b->messages[i], &marks, err)
                      : add_message(b, i, &marks, &count, err);
    }
    if (result == SINK_OK) {
        result = postgres_batch_send(b->db, err);
    }
    if (result == SINK_OK) {
        result = loader_marks_write(&marks, err);
    }
    if (result == SINK_OK) {
        result = postgres_batch_commit(b->db, slice_from_cstr(source), err);
    }
    if (result != SINK_OK) {
        b->unsure = b->unsure ||
                    (result == SINK_BROKEN && strcmp(b->db->db->sqlstate, unique_violation) == 0);
        return postgres_batch_abandon(b->db, result, err);
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
    struct err why;

    (void)err_set(&why, err->code, "%s/%d at offset %lld, %zu bytes: %s",
                  rd_kafka_topic_name(m->rkt), m->partition, (long long)m->offset, m->len,
                  err->text);
    if (!loader_message_letter(m, &b->arena, b->o->state_dir, why.text, err)) {
        return SINK_RETRY;
    }
    log_error("record refused for good, kept as a dead letter", log_str("sink", "postgres"),
              log_str("err", why.text));

    enum sink_result result = commit_range(b, i, i + 1, true, err);

    b->count.dead += result == SINK_OK;
    return result;
}

/* As it comes; and with a look at everything where a number is taken that we took for free. */
static enum sink_result commit_once(struct loader_batch *b, size_t from, size_t to, struct err *err)
{
    enum sink_result result = commit_range(b, from, to, false, err);

    if (b->unsure && (result == SINK_RETRY || result == SINK_BROKEN)) {
        b->looks_at_all = true;
        result = commit_range(b, from, to, false, err);
        b->looks_at_all = false;
    }
    return result;
}

static enum sink_result commit_some(struct loader_batch *b, size_t from, size_t to,
                                    struct err *err);

/* What is before the message that cannot be read, and that one into the dead letters. */
static enum sink_result commit_and_bury(struct loader_batch *b, size_t from, size_t at,
                                        struct err *err)
{
    struct err why = *err;
    enum sink_result result = commit_some(b, from, at, err);

    if (result != SINK_OK) {
        return result;
    }
    *err = why;
    return bury(b, at, err);
}

static enum sink_result commit_some(struct loader_batch *b, size_t from, size_t to, struct err *err)
{
    enum sink_result result = SINK_OK;

    while (result == SINK_OK && from < to) {
        size_t middle = from + (to - from) / 2;

        b->unreadable = LOADER_BATCH;
        result = commit_once(b, from, to, err);

        bool has_both = result == SINK_BROKEN && b->unsure; /* what another loader added, too */

        if (result != SINK_REJECT && !has_both) {
            return result;
        }
        if (b->unreadable < LOADER_BATCH) {
            middle = b->unreadable + 1;
            result = commit_and_bury(b, from, b->unreadable, err);
        } else if (to - from == 1) {
            return has_both ? SINK_BROKEN : bury(b, from, err); /* somebody's own index */
        } else {
            result = commit_some(b, from, middle, err);
        }
        from = middle;
    }
    return result;
}

enum sink_result loader_batch_commit(struct loader_batch *b, struct err *err)
{
    enum sink_result result = b->n > 0 ? commit_some(b, 0, b->n, err) : SINK_OK;

    if (result == SINK_OK) {
        loader_batch_clear(b);
    }
    return result;
}
