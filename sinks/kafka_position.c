#include "sinks/kafka_position.h"

#include <inttypes.h>
#include <stdio.h>

#include "collector/base/clock.h"
#include "sinks/kafka_trouble.h"

/*
 * The topic is shared by every ship that has its prefix. A transaction that one of them
 * has left open hides all that was committed behind its first message, ours too; that
 * stands between the end of what can be read as committed and the end of the topic. What
 * is hidden matters only where it has our key: then it is waited for.
 */

/* One reading of the topic, from an offset on. */
struct reading {
    rd_kafka_t *rk;          /* owned */
    rd_kafka_topic_t *topic; /* owned */
    char name[256];          /* its name */
    struct slice journal;    /* whose values are wanted */
    int64_t deadline_ms;     /* monotonic */
    struct sink_position at; /* the last value; all 0: none */
    struct kafka_trouble trouble;
    int64_t end; /* what could be read ends there */
};

enum { PARTITION = 0 };

void kafka_position_topic(const struct kafka_settings *set, char *ret_name, size_t size)
{
    (void)snprintf(ret_name, size, "%s.positions", set->topic_prefix);
}

size_t kafka_position_format(const struct sink_position *at, char ret[KAFKA_POSITION_SIZE])
{
    char leaf[DIGEST_HEX_SIZE];
    int n;

    if (at->last == 0) {
        return (size_t)snprintf(ret, KAFKA_POSITION_SIZE, "%" PRIu64, at->next);
    }
    digest_hex(&at->leaf, leaf);
    n = snprintf(ret, KAFKA_POSITION_SIZE, "%" PRIu64 " %" PRIu64 " %s", at->next, at->last, leaf);
    return (size_t)n;
}

bool kafka_position_parse(struct slice value, struct sink_position *ret)
{
    struct slice next;
    struct slice last;
    struct slice rest;

    *ret = (struct sink_position){ 0 };
    if (!slice_cut(value, ' ', &next, &rest)) {
        return slice_to_u64(value, &ret->next);
    }
    return slice_to_u64(next, &ret->next) && slice_cut(rest, ' ', &last, &rest) &&
           slice_to_u64(last, &ret->last) && digest_from_hex(rest, &ret->leaf);
}

static void end_reading(struct reading *r)
{
    if (r->topic) {
        (void)rd_kafka_consume_stop(r->topic, PARTITION);
        rd_kafka_topic_destroy(r->topic);
    }
    if (r->rk) {
        rd_kafka_destroy(r->rk);
    }
}

static bool failed(rd_kafka_resp_err_t code, struct err *err)
{
    return err_set(err, ERR_IO, "kafka: positions: %s", rd_kafka_err2str(code));
}

/*
 * Who leads the partition is asked first, and the beginning is 0, which a compacted topic keeps:
 * librdkafka would look for either only after half a second. So long it would also wait after an
 * answer that the partition is not led yet.
 */
static bool begin_reading(struct reading *r, const struct kafka_settings *set,
                          const char *isolation, int64_t offset, struct err *err)
{
    const char *const extra[] = { "isolation.level",
                                  isolation,
                                  "enable.partition.eof",
                                  "true",
                                  "auto.offset.reset",
                                  "earliest",
                                  "fetch.error.backoff.ms",
                                  "10",
                                  "fetch.wait.max.ms", /* at the end nothing comes */
                                  "10",
                                  NULL };
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code;
    rd_kafka_conf_t *conf;

    kafka_position_topic(set, r->name, sizeof(r->name));
    if (!kafka_conf_new(set, extra, &conf, err)) {
        return false;
    }
    kafka_trouble_listen(&r->trouble, conf, set->timeout_ms);
    r->rk = kafka_new(RD_KAFKA_CONSUMER, conf, err);
    if (!r->rk) {
        return false;
    }
    r->topic = rd_kafka_topic_new(r->rk, r->name, NULL);
    if (!r->topic) {
        return failed(rd_kafka_last_error(), err);
    }
    code = rd_kafka_metadata(r->rk, 0, r->topic, &metadata, clock_left_ms(r->deadline_ms));
    if (code) {
        return failed(code, err);
    }
    rd_kafka_metadata_destroy(metadata);
    return rd_kafka_consume_start(r->topic, PARTITION, offset) == 0 ||
           failed(rd_kafka_last_error(), err);
}

/* A message of the topic: one with our key has the value. */
static bool take(struct reading *r, const rd_kafka_message_t *m, struct err *err)
{
    struct slice key = { .ptr = m->key, .len = m->key_len };
    struct slice value = { .ptr = m->payload, .len = m->len };

    if (slice_equal(key, r->journal) && !kafka_position_parse(value, &r->at)) {
        return err_set(err, ERR_CORRUPT,
                       "kafka: the position of journal %" SLICE_FMT
                       " is none that this program knows",
                       SLICE_ARG(r->journal));
    }
    return true;
}

/* To where the topic ends at the moment; on to `least` when that is further. */
static bool read_on(struct reading *r, int64_t least, struct err *err)
{
    int left_ms;

    while ((left_ms = clock_left_ms(r->deadline_ms)) > 0) {
        rd_kafka_message_t *m = rd_kafka_consume(r->topic, PARTITION, left_ms);
        rd_kafka_resp_err_t code = m ? m->err : RD_KAFKA_RESP_ERR__TIMED_OUT;
        bool ok = true;

        if (code == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            r->end = m->offset;
        } else if (code && code != RD_KAFKA_RESP_ERR__TIMED_OUT) {
            ok = err_set(err, ERR_IO, "kafka: positions: %s", rd_kafka_message_errstr(m));
        } else if (m) {
            ok = take(r, m, err);
        }
        if (m) {
            rd_kafka_message_destroy(m);
        }
        if (!ok || (code == RD_KAFKA_RESP_ERR__PARTITION_EOF && r->end >= least)) {
            return ok;
        }
    }
    return err_set(err, ERR_IO,
                   least > 0 ? "kafka: positions: hidden by another's transaction"
                             : "kafka: positions: not read to the end in time");
}

/* Where the topic itself ends, as the last answer told. */
static int64_t high_end(const struct reading *r)
{
    int64_t low = 0;
    int64_t high = 0;

    (void)rd_kafka_get_watermark_offsets(r->rk, r->name, PARTITION, &low, &high);
    return high;
}

/* Is there a value of ours, committed or not, from that offset on? */
static bool find_hidden(const struct kafka_settings *set, struct slice journal, int64_t offset,
                        int64_t deadline_ms, bool *ret, struct err *err)
{
    struct reading r = { .journal = journal, .deadline_ms = deadline_ms };
    bool done = begin_reading(&r, set, "read_uncommitted", offset, err) && read_on(&r, 0, err);

    end_reading(&r);
    *ret = r.at.next > 0;
    return done;
}

/* From the beginning to the end, and behind it where that is needed. */
static bool read_all(struct reading *r, const struct kafka_settings *set, struct err *err)
{
    bool hidden = false;
    int64_t high;

    if (!begin_reading(r, set, "read_committed", 0, err) || !read_on(r, 0, err)) {
        return false;
    }
    high = high_end(r);
    if (r->end < high && !find_hidden(set, r->journal, r->end, r->deadline_ms, &hidden, err)) {
        return false;
    }
    return !hidden || read_on(r, high, err);
}

bool kafka_position_read(const struct kafka_settings *set, struct slice journal, int64_t timeout_ms,
                         struct sink_position *ret, struct err *err)
{
    struct reading r = { .journal = journal, .deadline_ms = clock_mono_ms() + timeout_ms };
    bool ok = read_all(&r, set, err);

    end_reading(&r);
    if (ok) {
        *ret = r.at;
        ret->next = r.at.next > 0 ? r.at.next : 1;
    }
    return ok;
}
