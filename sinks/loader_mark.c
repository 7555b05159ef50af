#include "sinks/loader_mark.h"

#include <stdlib.h>

#include "collector/base/mem.h"
#include "sinks/sql_result.h"

void loader_marks_done(struct loader_marks *marks)
{
    for (size_t i = 0; i < marks->n_journals; i++) {
        loader_known_done(&marks->journals[i].known);
    }
    free(marks->journals);
    free(marks->list);
}

static struct loader_mark *find(const struct loader_marks *marks, struct slice journal,
                                const struct loader_place *place)
{
    for (size_t i = marks->n; i > 0; i--) {
        struct loader_mark *m = &marks->list[i - 1];

        if (m->place == place && slice_equal(marks->journals[m->journal].id, journal)) {
            return m;
        }
    }
    return NULL;
}

/* The index of a journal, which is added where it is not there. */
static size_t journal_at(struct loader_marks *marks, struct slice id)
{
    for (size_t i = 0; i < marks->n_journals; i++) {
        if (slice_equal(marks->journals[i].id, id)) {
            return i;
        }
    }
    if (marks->n_journals == marks->cap_journals) {
        marks->cap_journals = marks->cap_journals > 0 ? marks->cap_journals * 2 : 16;
        marks->journals = xrealloc(marks->journals, marks->cap_journals * sizeof(*marks->journals));
    }
    marks->journals[marks->n_journals] = (struct loader_journal){ .id = id };
    return marks->n_journals++;
}

static struct loader_mark *add(struct loader_marks *marks, const struct loader_mark *m)
{
    if (marks->n == marks->cap) {
        marks->cap = marks->cap > 0 ? marks->cap * 2 : 16;
        marks->list = xrealloc(marks->list, marks->cap * sizeof(*marks->list));
    }
    marks->list[marks->n] = *m;
    return &marks->list[marks->n++];
}

enum sink_result loader_mark_of(struct loader_marks *marks, struct slice journal,
                                const struct loader_place *place, struct loader_mark **ret,
                                struct err *err)
{
    const struct postgres_value values[] = { postgres_of_text(journal),
                                             postgres_of_text(slice_from_cstr(place->topic)),
                                             postgres_of_integer(place->partition) };
    struct loader_mark *m = find(marks, journal, place);
    int64_t last = 0;
    enum sql_class class = SQL_DONE;

    if (!m) {
        class = postgres_query(marks->db,
                               "SELECT last_seq FROM kafka_position WHERE journal = $1 "
                               "AND topic = $2 AND partition = $3",
                               values, 3, postgres_keep_integer, &last, NULL, err);
    }
    if (!m && class == SQL_DONE) {
        m = add(marks, &(const struct loader_mark){ .journal = journal_at(marks, journal),
                                                    .place = place,
                                                    .last_seq = (uint64_t)last,
                                                    .stored_seq = (uint64_t)last });
    }
    *ret = m;
    return class == SQL_DATA ? SINK_REJECT : sql_result(class);
}

void loader_mark_move(struct loader_mark *m, uint64_t seq)
{
    if (seq > m->last_seq) {
        m->last_seq = seq;
        m->moved = true;
    }
}

enum sink_result loader_marks_write(const struct loader_marks *marks, struct err *err)
{
    enum sql_class class = SQL_DONE;

    for (size_t i = 0; class == SQL_DONE && i < marks->n; i++) {
        const struct loader_mark *m = &marks->list[i];
        const struct postgres_value values[] = {
            postgres_of_text(marks->journals[m->journal].id),
            postgres_of_text(slice_from_cstr(m->place->topic)),
            postgres_of_integer(m->place->partition),
            postgres_of_integer((int64_t)m->last_seq),
        };

        if (m->moved) {
            class = postgres_query(marks->db,
                                   "INSERT INTO kafka_position (journal, topic, partition, "
                                   "last_seq) VALUES ($1, $2, $3, $4) ON CONFLICT (journal, topic, "
                                   "partition) DO UPDATE SET last_seq = excluded.last_seq",
                                   values, 4, NULL, NULL, NULL, err);
        }
    }
    return class == SQL_DATA ? SINK_BROKEN : sql_result(class);
}
