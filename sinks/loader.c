#include "sinks/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/backoff.h"
#include "sinks/kafka_message.h"
#include "sinks/kafka_trouble.h"
#include "sinks/loader_batch.h"
#include "sinks/positions.h"

enum {
    GATHER_MS = 500, /* how long a batch is gathered before it is committed as it is */
    POLL_MS = 100,
    FIRST_PAUSE_MS = 100,
    LIMIT_PAUSE_MS = 10 * 1000,
    KAFKA_PATIENCE_MS = 60 * 1000,        /* a group may wait for a dead member for 45 s */
    LOADER_ARENA_BYTES = 4 * 1024 * 1024, /* of one record's head */
};

struct loader {
    const struct loader_options *o;
    struct kafka_settings set;
    rd_kafka_t *rk;
    struct loader_batch batch;
    struct backoff backoff;
    bool placed;         /* the consumer stands where the database says */
    bool asked;          /* the group has given us partitions (perhaps none) */
    int64_t progress_ms; /* monotonic: something was loaded, or nothing was to load */
    char told[ERR_TEXT_SIZE];
    struct kafka_trouble kafka;
    struct positions state; /* what `status` shows of us */
};

/* ---- The group ---------------------------------------------------------------------- */

/* What was read of the old partitions is dropped; the new ones are placed by the main loop. */
static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                         rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct loader *l = CONTAINER_OF((struct kafka_trouble *)opaque, struct loader, kafka);

    loader_batch_clear(&l->batch);
    l->batch.n_places = 0;
    l->placed = false;
    if (code != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        l->asked = false;
        (void)rd_kafka_assign(rk, NULL);
        return;
    }
    l->asked = true;
    for (int i = 0; i < list->cnt && l->batch.n_places < LOADER_PARTITIONS; i++) {
        struct loader_place *place = &l->batch.places[l->batch.n_places++];

        *place = (struct loader_place){ .partition = list->elems[i].partition, .proof = -1 };
        (void)snprintf(place->topic, sizeof(place->topic), "%s", list->elems[i].topic);
    }
    log_info("partitions assigned", log_i64("partitions", list->cnt));
    if ((size_t)list->cnt > l->batch.n_places) {
        log_error("more partitions than one loader takes, the rest is not read: start another",
                  log_i64("taken", (int64_t)l->batch.n_places));
    }
}

static void tell_anew(const struct loader_place *place, int64_t ends_at)
{
    log_error("the topic was deleted and made anew: reading it from its beginning; what is "
              "there already is dropped",
              log_str("topic", place->topic), log_i64("partition", place->partition),
              log_i64("stood_at", place->next_offset), log_i64("ends_at", ends_at));
}

static void tell_lost(const struct loader_place *place, int64_t offsets)
{
    log_error("the topic's retention removed messages before they were loaded",
              log_str("topic", place->topic), log_i64("partition", place->partition),
              log_i64("offsets", offsets));
}

/*
 * The place is not there, or of another topic: on from where that begins. Told before it
 * is moved, and counted behind that.
 */
static enum sink_result begin_at(struct loader *l, struct loader_place *place, int64_t low,
                                 int64_t high, struct err *err)
{
    bool shorter = place->next_offset > high;
    int64_t from = shorter || place->anew || place->next_offset < 0 ? 0 : place->next_offset;

    if (shorter) {
        tell_anew(place, high);
    }
    if (from < low) {
        tell_lost(place, low - from);
    }

    enum sink_result result = loader_batch_move(&l->batch, place, low, err);

    if (result != SINK_OK) {
        return result;
    }
    place->anew = false;
    if (from < low) {
        l->batch.count.lost += (uint64_t)(low - from);
        positions_count_lost(&l->state, (uint64_t)(low - from));
    }
    return SINK_OK;
}

/*
 * Where to go on: at the last message that was committed, which is read again and must
 * be one that the database knows. A topic that was made anew may have grown beyond it.
 */
static enum sink_result start_of(struct loader *l, struct loader_place *place, int64_t *ret,
                                 struct err *err)
{
    char what[sizeof(place->topic) + 32];
    int64_t low = 0;
    int64_t high = 0;
    rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        l->rk, place->topic, place->partition, &low, &high, (int)l->o->timeout_ms);

    place->proof = -1;
    if (code) {
        (void)snprintf(what, sizeof(what), "kafka: %s/%d", place->topic, place->partition);
        (void)kafka_trouble_fail(&l->kafka, code, what, err);
        return SINK_RETRY;
    }
    *ret = low;
    if (place->next_offset < low ? low > 0 : place->anew || place->next_offset > high) {
        return begin_at(l, place, low, high, err);
    }
    if (place->next_offset > low) {
        place->proof = place->next_offset - 1;
        *ret = place->proof;
    }
    return SINK_OK;
}

/* Take the partitions, each where the database says. */
static enum sink_result place_all(struct loader *l, struct err *err)
{
    enum sink_result result = loader_batch_ask(&l->batch, err);

    if (result != SINK_OK) {
        return result;
    }

    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)l->batch.n_places + 1);

    for (size_t i = 0; result == SINK_OK && i < l->batch.n_places; i++) {
        struct loader_place *place = &l->batch.places[i];
        int64_t offset = 0;

        place->at_end = false;
        result = start_of(l, place, &offset, err);
        rd_kafka_topic_partition_list_add(list, place->topic, place->partition)->offset = offset;
    }
    if (result != SINK_OK) {
        rd_kafka_topic_partition_list_destroy(list);
        return result;
    }
    kafka_trouble_clear(&l->kafka); /* the brokers have answered */

    rd_kafka_resp_err_t code = rd_kafka_assign(l->rk, list);

    rd_kafka_topic_partition_list_destroy(list);
    l->placed = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (code) {
        (void)err_set(err, ERR_IO, "kafka: assign: %s", rd_kafka_err2str(code));
        return SINK_RETRY;
    }
    return SINK_OK;
}

/* ---- Reading ------------------------------------------------------------------------- */

/*
 * The first that comes from a place, a message or its end, must be what was read there
 * last. Where it is not, all places are taken anew, this one from its beginning.
 */
static void prove(struct loader *l, struct loader_place *place, const rd_kafka_message_t *m)
{
    if (!m->err && m->offset == place->proof && loader_batch_knows(&l->batch, place, m)) {
        place->proof = -1;
        return;
    }
    tell_anew(place, m->offset);
    place->anew = true;
    l->placed = false;
}

static void take(struct loader *l, rd_kafka_message_t *m)
{
    struct loader_batch *b = &l->batch;
    struct loader_place *place =
        m->rkt ? loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition) : NULL;
    bool is_end = m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;

    if (!m->err || is_end) {
        kafka_trouble_clear(&l->kafka);
    } else if (m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
        l->placed = false; /* its offset is not there any more: who places it tells why */
    } else {
        log_warn("Kafka cannot be read, will retry", log_str("err", rd_kafka_message_errstr(m)));
    }
    if (place && place->proof >= 0 && (!m->err || is_end)) {
        prove(l, place, m);
        rd_kafka_message_destroy(m);
        return;
    }
    if (place && is_end) {
        place->at_end = true;
    }
    if (m->err || !place) {
        rd_kafka_message_destroy(m);
        return;
    }
    place->at_end = false;
    b->bytes += m->len;
    b->messages[b->n++] = m;
}

static bool all_read(const struct loader *l)
{
    if (!l->placed) {
        return false;
    }
    for (size_t i = 0; i < l->batch.n_places; i++) {
        if (!l->batch.places[i].at_end) {
            return false;
        }
    }
    return true;
}

/* Read until the batch is full, the time is over, or there is nothing more now. */
static void gather(struct loader *l)
{
    struct loader_batch *b = &l->batch;
    int64_t deadline_ms = clock_mono_ms() + GATHER_MS;

    while (b->n < LOADER_BATCH && b->bytes < LOADER_BATCH_BYTES && !stop_asked(l->o->stop)) {
        int left_ms = clock_left_ms(deadline_ms);
        rd_kafka_message_t *m =
            left_ms > 0 ? rd_kafka_consumer_poll(l->rk, left_ms < POLL_MS ? left_ms : POLL_MS)
                        : NULL;

        if (m) {
            take(l, m);
        }
        if (left_ms == 0 || !l->placed || (!m && b->n > 0)) {
            return;
        }
    }
}

/* While the database is away the group must hear of us, or it gives our partitions away. */
static void pause_and_poll(struct loader *l, int64_t pause_ms)
{
    int64_t deadline_ms = clock_mono_ms() + pause_ms;
    rd_kafka_topic_partition_list_t *list = NULL;

    (void)rd_kafka_assignment(l->rk, &list);
    if (list) {
        (void)rd_kafka_pause_partitions(l->rk, list);
    }
    do {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(l->rk, POLL_MS);

        if (m) { /* read before the pause took hold: it is read again after the rewind */
            rd_kafka_message_destroy(m);
            l->placed = false;
        }
    } while (clock_left_ms(deadline_ms) > 0 && !stop_asked(l->o->stop));
    if (list) {
        (void)rd_kafka_resume_partitions(l->rk, list);
        rd_kafka_topic_partition_list_destroy(list);
    }
}

/* For `status`, at most once a second unless `now`. A failure costs only what that shows. */
static void show(struct loader *l, bool now)
{
    struct err err;

    if (!positions_flush(&l->state, now, &err)) {
        log_debug("state not written", log_str("err", err.text));
    }
}

/* Told once an incident. */
static void trouble(struct loader *l, const struct err *err)
{
    int64_t pause_ms = backoff_fail(&l->backoff);

    positions_set_state(
        &l->state, err->code == ERR_INVALID ? SINK_STATE_BROKEN : SINK_STATE_RETRYING, err->text);
    show(l, false);
    if (strcmp(l->told, err->text) != 0) {
        (void)snprintf(l->told, sizeof(l->told), "%s", err->text);
        log_warn("loading stands still, will retry", log_str("err", err->text));
    }
    loader_batch_clear(&l->batch);
    l->placed = false;
    pause_and_poll(l, pause_ms);
}

static void well_again(struct loader *l)
{
    l->progress_ms = clock_mono_ms();
    backoff_reset(&l->backoff);
    positions_set_state(&l->state, SINK_STATE_OK, "");
    if (l->told[0]) {
        l->told[0] = '\0';
        log_info("loading goes on");
    }
}

/* Nothing can be read: we are not let in, or nobody is there. */
static bool kafka_is_away(const struct loader *l)
{
    const struct kafka_trouble *t = &l->kafka;

    return l->batch.n == 0 && t->text[0] && (t->down || t->lasting || !l->asked);
}

/* One round: connect, take places, read, commit. */
static enum sink_result round_of(struct loader *l, struct err *err)
{
    if (!loader_batch_connect(&l->batch, err)) {
        return err->code == ERR_INVALID || err->code == ERR_CORRUPT ? SINK_BROKEN : SINK_DOWN;
    }
    if (l->asked && !l->placed) {
        enum sink_result result = place_all(l, err);

        if (result != SINK_OK) {
            return result;
        }
    }
    gather(l);
    if (kafka_is_away(l)) {
        (void)kafka_trouble_fail(&l->kafka, RD_KAFKA_RESP_ERR__TRANSPORT, "kafka", err);
        return l->kafka.lasting ? SINK_BROKEN : SINK_DOWN;
    }
    if (!l->placed) { /* rebalanced meanwhile */
        loader_batch_clear(&l->batch);
        return SINK_OK;
    }
    return loader_batch_commit(&l->batch, err);
}

/* A single run waits a while for a server that is away, and not for a person. */
static bool gives_up(const struct loader *l, enum sink_result result, struct err *err)
{
    int64_t limit_ms = l->told[0] ? l->o->patience_ms : KAFKA_PATIENCE_MS;

    if (!l->o->once || (result != SINK_BROKEN && clock_mono_ms() - l->progress_ms < limit_ms)) {
        return false;
    }
    (void)err_set(err, ERR_IO, "%s", l->told[0] ? l->told : "kafka: no answer from the group");
    return true;
}

/* ---- Opening --------------------------------------------------------------------------- */

static bool subscribe(struct loader *l, struct err *err)
{
    static const enum kafka_topic topics[] = { KAFKA_HOOK_EVALUATION, KAFKA_TOOL_EXECUTION,
                                               KAFKA_AUDIT };
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(3);
    rd_kafka_resp_err_t code;

    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        char name[300];

        (void)snprintf(name, sizeof(name), "%s.%s", l->set.topic_prefix,
                       kafka_topic_name(topics[i]));
        rd_kafka_topic_partition_list_add(list, name, RD_KAFKA_PARTITION_UA);
    }
    code = rd_kafka_subscribe(l->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code) {
        return err_set(err, ERR_INVALID, "kafka: subscribe: %s", rd_kafka_err2str(code));
    }
    return true;
}

static bool open_consumer(struct loader *l, struct err *err)
{
    const char *const extra[] = { "group.id",
                                  l->o->group ? l->o->group : "hooktrail-loader",
                                  "isolation.level",
                                  "read_committed",
                                  "enable.partition.eof",
                                  "true",
                                  "enable.auto.commit",
                                  "false",
                                  "auto.offset.reset",
                                  "error", /* where to go on is ours to decide */
                                  "partition.assignment.strategy",
                                  "range,roundrobin",
                                  NULL };
    rd_kafka_conf_t *conf;

    if (!kafka_settings_read(l->o->kafka, &l->set, err) ||
        !kafka_conf_new(&l->set, extra, &conf, err)) {
        return false;
    }
    kafka_trouble_listen(&l->kafka, conf);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    l->rk = kafka_new(RD_KAFKA_CONSUMER, conf, err);
    if (!l->rk) {
        return false;
    }
    (void)rd_kafka_poll_set_consumer(l->rk);
    return subscribe(l, err);
}

static void close_loader(struct loader *l)
{
    if (l->rk) {
        loader_batch_clear(&l->batch);
        (void)rd_kafka_consumer_close(l->rk);
        rd_kafka_destroy(l->rk);
    }
    loader_batch_done(&l->batch);
    positions_done(&l->state);
    free(l);
}

/* Everything is configured, and there to be used. */
static bool set_up(struct loader *l, struct err *err)
{
    if (!json_string_value(json_object_get(l->o->postgres, "dsn"))) {
        return err_set(err, ERR_INVALID, "sinks.postgres.dsn: --source kafka needs it");
    }
    if (!positions_load(l->o->state_dir, "postgres", &l->state, err)) {
        return false;
    }
    l->state.source = "kafka";
    return open_consumer(l, err);
}

static uint64_t settled(const struct loader_count *c)
{
    return c->loaded + c->dropped + c->dead;
}

/* Rounds until it is time to end. False: a single run gave up. */
static bool run_rounds(struct loader *l, struct err *err)
{
    enum sink_result result = SINK_OK;

    l->progress_ms = clock_mono_ms();
    while (!stop_asked(l->o->stop)) {
        uint64_t before = settled(&l->batch.count);
        uint64_t dead = l->batch.count.dead;
        struct err round_err;

        if (gives_up(l, result, err)) {
            return false;
        }
        result = round_of(l, &round_err);
        positions_count_dead(&l->state, l->batch.count.dead - dead);
        if (result != SINK_OK) {
            trouble(l, &round_err);
            continue;
        }
        if (settled(&l->batch.count) > before) {
            positions_touch(&l->state);
            well_again(l);
        } else if (all_read(l)) { /* a round that only took its places again proves nothing */
            well_again(l);
        }
        show(l, false);
        if (l->o->once && all_read(l)) {
            return true;
        }
    }
    return true;
}

bool loader_run(const struct loader_options *o, struct loader_count *ret, struct err *err)
{
    struct loader *l = xcalloc(1, sizeof(*l));

    l->o = o;
    l->batch.o = o;
    l->backoff = (struct backoff){ .first_ms = FIRST_PAUSE_MS, .limit_ms = LIMIT_PAUSE_MS };
    arena_init(&l->batch.arena, LOADER_ARENA_BYTES);

    bool ran = set_up(l, err) && run_rounds(l, err);

    if (l->rk) {
        show(l, true);
    }
    *ret = l->batch.count;
    close_loader(l);
    return ran;
}
