#include "sinks/loader_start.h"

#include <stdio.h>

#include "collector/base/log.h"
#include "sinks/loader_read.h"

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
        l->rk, place->topic, place->partition, &low, &high, (int)sink_timeout_ms(l->o->kafka));

    place->proof = -1;
    if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
        (void)loader_may_not_read(place->topic, err);
        return SINK_BROKEN;
    }
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

enum sink_result loader_start_all(struct loader *l, struct err *err)
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
        place->ends_at = -1;
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

void loader_start_prove(struct loader *l, struct loader_place *place, const rd_kafka_message_t *m)
{
    if (!m->err && m->offset == place->proof && loader_batch_knows(&l->batch, place, m)) {
        place->proof = -1;
        return;
    }
    tell_anew(place, m->offset);
    place->anew = true;
    l->placed = false;
}
