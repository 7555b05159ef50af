#include "sinks/kafka_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/fs.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"

enum { WRITE_EVERY_MS = 1000, PATH_BYTES = 4096 };

static bool is_of(const struct kafka_end *end, const char *topic, int32_t partition)
{
    return end->partition == partition && strcmp(end->topic, topic) == 0;
}

/* Answers come in runs of one partition: the one before is looked at first. */
static struct kafka_end *find(struct kafka_ends *e, const char *topic, int32_t partition)
{
    if (e->latest < e->n && is_of(&e->list[e->latest], topic, partition)) {
        return &e->list[e->latest];
    }
    for (size_t i = 0; i < e->n; i++) {
        if (is_of(&e->list[i], topic, partition)) {
            e->latest = i;
            return &e->list[i];
        }
    }
    return NULL;
}

static struct kafka_end *add(struct kafka_ends *e, struct slice topic, int32_t partition)
{
    if (e->n == e->cap) {
        e->cap = e->cap > 0 ? e->cap * 2 : 16;
        e->list = xrealloc(e->list, e->cap * sizeof(*e->list));
    }

    struct kafka_end *end = &e->list[e->n++];

    *end = (struct kafka_end){ .partition = partition };
    (void)snprintf(end->topic, sizeof(end->topic), "%" SLICE_FMT, SLICE_ARG(topic));
    return end;
}

static void file_path(const struct kafka_ends *e, char ret[PATH_BYTES])
{
    (void)snprintf(ret, PATH_BYTES, "%s/sinks/%.64s.ends.json", e->state_dir, e->sink);
}

/* "TOPIC/PARTITION"; a topic's name has no slash. */
static void take(struct kafka_ends *e, const char *place, int64_t offset)
{
    struct slice topic, number;
    uint64_t partition;

    if (slice_cut(slice_from_cstr(place), '/', &topic, &number) &&
        slice_to_u64(number, &partition) && partition <= INT32_MAX) {
        add(e, topic, (int32_t)partition)->end = offset;
    }
}

bool kafka_ends_load(const char *state_dir, const char *sink, struct kafka_ends *ret,
                     struct err *err)
{
    char path[PATH_BYTES];
    json_error_t why;
    const char *place;
    json_t *offset;

    *ret = (struct kafka_ends){ .state_dir = state_dir, .sink = sink };
    if (!state_dir) {
        return true;
    }
    file_path(ret, path);

    json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, &why);

    if (!j && json_error_code(&why) == json_error_cannot_open_file) {
        return true;
    }
    if (!j) {
        return err_set(err, ERR_CORRUPT, "%s:%d: %s", path, why.line, why.text);
    }
    json_object_foreach(j, place, offset)
    {
        take(ret, place, json_integer_value(offset));
    }
    json_decref(j);
    return true;
}

void kafka_ends_done(struct kafka_ends *e)
{
    free(e->list);
    *e = (struct kafka_ends){ 0 };
}

/* Told once: from now on it is compared with what is there now. */
static void tell(struct kafka_ends *e, struct kafka_end *end, int64_t ends_now)
{
    log_error("Kafka topic was deleted and made anew, or lost what it had; that is not sent again",
              log_str("sink", e->sink), log_str("topic", end->topic),
              log_i64("partition", end->partition), log_i64("ended_at", end->end),
              log_i64("ends_at", ends_now));
    end->end = ends_now;
    e->changed = true;
}

void kafka_ends_saw(struct kafka_ends *e, const char *topic, int32_t partition, int64_t offset)
{
    struct kafka_end *end = find(e, topic, partition);

    if (offset < 0) {
        return;
    }
    if (!end) {
        end = add(e, slice_from_cstr(topic), partition);
    }
    if (offset < end->end) {
        tell(e, end, offset);
    }
    end->end = offset + 1;
    e->changed = true;
}

void kafka_ends_check(struct kafka_ends *e, rd_kafka_t *rk, int64_t timeout_ms)
{
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;

    for (size_t i = 0; i < e->n && clock_left_ms(deadline_ms) > 0; i++) {
        struct kafka_end *end = &e->list[i];
        int64_t low = 0;
        int64_t high = 0;
        rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
            rk, end->topic, end->partition, &low, &high, clock_left_ms(deadline_ms));

        if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
            code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
            code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
            high = 0; /* made anew with fewer partitions */
        } else if (code) {
            continue;
        }
        if (high < end->end) {
            tell(e, end, high);
        }
    }
    kafka_ends_flush(e, true);
}

static bool write_file(const struct kafka_ends *e, const char *text, struct err *err)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/sinks", e->state_dir);

    CLEANUP(fs_closep) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    file_path(e, path);
    return fs_replace(dir_fd, strrchr(path, '/') + 1, slice_from_cstr(text), err);
}

void kafka_ends_flush(struct kafka_ends *e, bool now)
{
    int64_t now_ms = clock_mono_ms();
    struct err err;

    if (!e->state_dir || !e->changed || (!now && now_ms - e->written_ms < WRITE_EVERY_MS)) {
        return;
    }

    json_t *j = json_object();

    for (size_t i = 0; i < e->n; i++) {
        char place[300];

        (void)snprintf(place, sizeof(place), "%s/%d", e->list[i].topic, e->list[i].partition);
        (void)json_object_set_new(j, place, json_integer(e->list[i].end));
    }

    char *text = json_dumps(j, JSON_INDENT(1) | JSON_SORT_KEYS);

    json_decref(j);
    if (text && !write_file(e, text, &err)) {
        log_warn("ends of topics not kept, a topic made anew may go unnoticed",
                 log_str("sink", e->sink), log_str("err", err.text));
    }
    free(text);
    e->changed = false;
    e->written_ms = now_ms;
}
