#include "sinks/loader_read.h"

#include "collector/base/buf.h"
#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/plural.h"
#include "sinks/loader_start.h"

enum {
    GATHER_MS = 500, /* how long a batch is gathered before it is committed as it is */
    POLL_MS = 100,
};

/* The end that we are shown was met; where the partition truly ends is asked the first time. */
static void reach_end(const struct loader *l, struct loader_place *place, int64_t offset)
{
    int64_t low = 0;
    int64_t high = 0;

    place->at_end = true;
    place->shown_to = offset;
    if (place->ends_at < 0) {
        bool known = rd_kafka_get_watermark_offsets(l->rk, place->topic, place->partition, &low,
                                                    &high) == RD_KAFKA_RESP_ERR_NO_ERROR;

        place->ends_at = known && high > offset ? high : offset;
    }
}

bool loader_may_not_read(const char *topic, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "kafka: topic %s; the broker's rules must allow us to Describe and Read it",
                   topic);
}

static const char *group_of(const struct loader *l)
{
    return l->o->group ? l->o->group : "hooktrail-loader";
}

/* An error in place of a message. Who keeps something from us is asked for it in is_refused(). */
static void note_error(struct loader *l, struct loader_place *place, const rd_kafka_message_t *m)
{
    switch ((int)m->err) { /* librdkafka has some hundred and fifty codes */
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
        l->placed = false; /* its offset is not there any more: who places it tells why */
        return;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        if (place) {
            place->refused = true;
            return;
        }
        break;
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
        (void)err_set(&l->refused, ERR_INVALID,
                      "kafka: group %s; the broker's rules must allow us to Read it", group_of(l));
        return;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        (void)err_set(&l->refused, ERR_IO,
                      "kafka: the topics of sinks.kafka.topic_prefix %s are not all there: no "
                      "ship has sent to them",
                      l->set.topic_prefix);
        return;
    default:
        break;
    }
    log_warn("Kafka cannot be read, will retry", log_str("err", rd_kafka_message_errstr(m)));
}

static void take(struct loader *l, rd_kafka_message_t *m)
{
    struct loader_batch *b = &l->batch;
    struct loader_place *place =
        m->rkt ? loader_place_of(b, rd_kafka_topic_name(m->rkt), m->partition) : NULL;
    bool is_end = m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;

    if (m->err && !is_end) {
        note_error(l, place, m);
    } else {
        kafka_trouble_clear(&l->kafka);
    }
    if (place && (!m->err || is_end)) {
        place->refused = false;
    }
    if (place && place->proof >= 0 && (!m->err || is_end)) {
        loader_start_prove(l, place, m);
        rd_kafka_message_destroy(m);
        return;
    }
    if (place && is_end) {
        reach_end(l, place, m->offset);
    }
    if (m->err || !place) {
        rd_kafka_message_destroy(m);
        return;
    }
    place->at_end = false;
    b->bytes += m->len;
    b->messages[b->n++] = m;
}

void loader_gather(struct loader *l)
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

void loader_pause(struct loader *l, int64_t pause_ms)
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

bool loader_is_refused(const struct loader *l, struct err *ret)
{
    for (size_t i = 0; i < l->batch.n_places; i++) {
        if (l->batch.places[i].refused) {
            (void)loader_may_not_read(l->batch.places[i].topic, ret);
            return true;
        }
    }
    *ret = l->refused;
    return l->batch.n_places == 0 && l->refused.code != ERR_NONE;
}

bool loader_all_read(const struct loader *l)
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

bool loader_all_shown(const struct loader *l, struct err *err)
{
    CLEANUP(buf_done) struct buf where;
    int64_t hidden = 0;

    buf_init(&where, ERR_TEXT_SIZE);
    for (size_t i = 0; i < l->batch.n_places; i++) {
        const struct loader_place *place = &l->batch.places[i];
        int64_t here = place->ends_at - place->shown_to;

        if (here > 0) {
            buf_addf(&where, "%s%lld of %s/%d", hidden > 0 ? ", " : "", (long long)here,
                     place->topic, place->partition);
            hidden += here;
        }
    }
    return hidden == 0 ||
           err_set(err, ERR_AGAIN, "an open transaction holds back up to %lld message%s: %.*s",
                   (long long)hidden, plural((uint64_t)hidden), (int)where.len_bytes, where.ptr);
}
