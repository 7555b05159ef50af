#include "sinks/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/kafka_message.h"
#include "sinks/loader_read.h"
#include "sinks/loader_start.h"
#include "sinks/loader_state.h"

enum {
    FIRST_PAUSE_MS = 100,
    LIMIT_PAUSE_MS = 10 * 1000,
    KAFKA_PATIENCE_MS = 60 * 1000,        /* a group may wait for a dead member for 45 s */
    LOADER_ARENA_BYTES = 4 * 1024 * 1024, /* of one record's head */
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
    if (list->cnt > 0 || l->refused.code == ERR_INVALID) { /* missing topics give an empty list */
        l->refused.code = ERR_NONE;
    }
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

/* ---- Rounds ------------------------------------------------------------------------------ */

/* For `status`, at most once a second unless `now`. A failure costs only what that shows. */
static void show(struct loader *l, bool now)
{
    struct err err;

    if (!positions_flush(&l->state, now, &err)) {
        log_debug("state not written", log_str("err", err.text));
    }
}

/* Told once an incident. */
static void tell(struct loader *l, const struct err *err)
{
    positions_set_state(&l->state, sink_state_of(err), err->text);
    show(l, false);
    if (strcmp(l->told, err->text) != 0) {
        (void)snprintf(l->told, sizeof(l->told), "%s", err->text);
        if (err->code == ERR_INVALID) {
            log_error("the load is refused until somebody acts, nothing is lost meanwhile",
                      log_str("err", err->text));
        } else {
            log_warn("loading stands still, will retry", log_str("err", err->text));
        }
    }
}

static void trouble(struct loader *l, const struct err *err)
{
    int64_t pause_ms = backoff_fail(&l->backoff);

    tell(l, err);
    loader_batch_clear(&l->batch);
    l->placed = false;
    loader_pause(l, pause_ms);
}

/* Retention that fails is trouble, too, though all is loaded. */
static void well_again(struct loader *l)
{
    const struct err *cut_err = &l->cut.cutting.err;

    l->progress_ms = clock_mono_ms();
    backoff_reset(&l->backoff);
    positions_set_state(&l->state, sink_state_of(cut_err), cut_err->text);
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

/* One round: connect, cut, take places, read, commit. */
static enum sink_result round_of(struct loader *l, struct err *err)
{
    if (!loader_batch_connect(&l->batch, err)) {
        return err->code == ERR_INVALID || err->code == ERR_CORRUPT ? SINK_BROKEN : SINK_DOWN;
    }
    loader_cut_some(&l->cut, l->batch.db->db);
    if (l->asked && !l->placed) {
        enum sink_result result = loader_start_all(l, err);

        if (result != SINK_OK) {
            return result;
        }
    }
    loader_gather(l);
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

static bool make_consumer(struct loader *l, struct err *err)
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
    kafka_trouble_listen(&l->kafka, conf, l->set.timeout_ms);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    l->rk = kafka_new(RD_KAFKA_CONSUMER, conf, err);
    return l->rk != NULL;
}

static void close_loader(struct loader *l)
{
    if (l->rk) {
        loader_batch_clear(&l->batch);
        (void)rd_kafka_consumer_close(l->rk);
        rd_kafka_destroy(l->rk);
    }
    loader_batch_done(&l->batch);
    loader_cut_done(&l->cut);
    positions_done(&l->state);
    free(l);
}

/* The settings make a consumer, and say where to load. */
static bool is_usable(struct loader *l, struct err *err)
{
    if (!json_string_value(json_object_get(l->o->postgres, "dsn"))) {
        return err_set(err, ERR_INVALID, "sinks.postgres.dsn: --source kafka needs it");
    }
    return make_consumer(l, err);
}

/* Everything is configured, and there to be used. */
static bool set_up(struct loader *l, struct err *err)
{
    if (!is_usable(l, err) || !positions_load(l->o->state_dir, "postgres", &l->state, err)) {
        return false;
    }
    l->state.source = "kafka";
    (void)rd_kafka_poll_set_consumer(l->rk);
    if (!subscribe(l, err)) {
        return false;
    }
    show(l, true); /* what an earlier run said holds no more */
    return true;
}

static uint64_t settled(const struct loader_count *c)
{
    return c->loaded + c->dropped + c->dead;
}

/*
 * After a round that went well. True: a single run is done, for all that was there is loaded,
 * and what was due is cut. It waits a while for what an open transaction hides.
 */
static bool is_done(struct loader *l, bool settled_some)
{
    struct err why;
    bool read = loader_all_read(l);
    bool waits = l->o->once && read && !loader_all_shown(l, &why);

    if (settled_some || (read && !waits)) { /* that places were taken again proves nothing */
        well_again(l);
    }
    if (waits) {
        tell(l, &why);
    }
    return l->o->once && read && !waits && !cutting_goes_on(&l->cut.cutting);
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

        bool settled_some = settled(&l->batch.count) > before;

        if (settled_some) {
            positions_touch(&l->state);
            l->progress_ms = clock_mono_ms();
        }
        if (loader_is_refused(l, &round_err)) { /* the rest is loaded all the same */
            tell(l, &round_err);
        } else if (is_done(l, settled_some)) {
            return true;
        }
        show(l, false);
    }
    return true;
}

static struct loader *loader_new(const struct loader_options *o)
{
    struct loader *l = xcalloc(1, sizeof(*l));

    l->o = o;
    l->batch.o = o;
    l->backoff = (struct backoff){ .first_ms = FIRST_PAUSE_MS, .limit_ms = LIMIT_PAUSE_MS };
    arena_init(&l->batch.arena, LOADER_ARENA_BYTES);
    loader_cut_init(&l->cut, o);
    return l;
}

bool loader_check(const struct loader_options *o, struct err *err)
{
    struct loader *l = loader_new(o);
    bool usable = is_usable(l, err);

    close_loader(l);
    return usable;
}

bool loader_run(const struct loader_options *o, struct loader_count *ret, struct err *err)
{
    struct loader *l = loader_new(o);
    bool ran = set_up(l, err) && run_rounds(l, err);

    if (l->state.sink) { /* it was read */
        show(l, true);
    }
    *ret = l->batch.count;
    close_loader(l);
    return ran;
}
