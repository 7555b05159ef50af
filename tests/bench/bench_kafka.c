/*
 * bench_kafka: a Kafka driver beside a bare librdkafka producer of the same messages.
 *
 *     bench_kafka STATE BOOTSTRAP at-least-once|exactly-once [COMPRESSION [RUNS]]
 *
 * The bare side has its messages made before the clock runs: the same topics, keys,
 * values, headers, acks, compression; and for exactly-once, transactions of as many
 * records. It decodes nothing, derives nothing, keeps no position. Prints the medians of
 * alternating runs, and exits with 1 when the driver is below 0.8 of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "sinks/kafka.h"
#include "sinks/kafka_client.h"
#include "sinks/kafka_message.h"
#include "tests/bench/events.h"

enum { RUNS = 5, WARM = 100, TIMEOUT_MS = 60000, US_PER_SECOND = 1000000 };

static const double TARGET = 0.8;

/* One message with its headers, ready to be sent; they are copied for each run. */
struct ready {
    struct kafka_message m;
    rd_kafka_headers_t *headers;
    size_t record; /* index of its record */
};

struct bench {
    const char *bootstrap;
    const char *compression;
    bool exactly_once;
    size_t batch; /* records a write */
    json_t *settings;
    const struct events *events;
    struct kafka_space space;
    struct ready *ready;
    size_t n_ready;
    double seconds[2][RUNS]; /* driver, bare */
    double cpu[2][RUNS];
};

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(3);
}

struct timing {
    int64_t wall_us;
    int64_t cpu_us;
};

static struct timing start_timing(void)
{
    return (struct timing){ .wall_us = clock_mono_us(), .cpu_us = cpu_us() };
}

static struct timing stop_timing(struct timing t)
{
    return (struct timing){ .wall_us = clock_mono_us() - t.wall_us, .cpu_us = cpu_us() - t.cpu_us };
}

/* ---- Messages made ready -------------------------------------------------------------- */

static void add_ready(struct bench *b, const struct kafka_message *m, size_t record)
{
    b->ready[b->n_ready++] = (struct ready){
        .m = *m,
        .headers = kafka_headers(m, b->events->journal),
        .record = record,
    };
}

static void make_ready(struct bench *b)
{
    enum { MESSAGES_PER_RECORD = 8 };
    struct err err;

    kafka_space_init(&b->space, (size_t)4 << 30, 0);
    b->ready = xcalloc(b->events->n * MESSAGES_PER_RECORD, sizeof(*b->ready));
    for (size_t i = 0; i < b->events->n; i++) {
        struct kafka_message *list;
        size_t n;

        if (kafka_messages(&b->events->list[i], &b->space, &list, &n, &err) != SINK_OK) {
            die(&err);
        }
        for (size_t m = 0; m < n && m < MESSAGES_PER_RECORD; m++) {
            add_ready(b, &list[m], i);
        }
    }
}

/* ---- The bare producer ------------------------------------------------------------------ */

struct bare {
    rd_kafka_t *rk;
    rd_kafka_topic_t *topics[KAFKA_TOPICS];
    size_t delivered;
};

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    struct bare *bare = opaque;

    (void)rk;
    if (m->err) {
        fail("delivery", rd_kafka_err2str(m->err));
    }
    bare->delivered++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[200];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK) {
        fail(name, text);
    }
}

static void must(rd_kafka_error_t *error, const char *what)
{
    if (error) {
        fail(what, rd_kafka_error_string(error));
    }
}

/* Settings as the driver has them, or the ratio would compare settings. */
static void open_bare(const struct bench *b, struct bare *bare, const char *prefix)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    json_t *properties = json_object_get(b->settings, "properties");
    const char *name;
    json_t *value;
    char text[200];

    json_object_foreach(properties, name, value)
    {
        set(conf, name, json_string_value(value));
    }
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    if (b->exactly_once) {
        set(conf, "transactional.id", prefix);
    }
    rd_kafka_conf_set_opaque(conf, bare);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    bare->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!bare->rk) {
        fail("producer", text);
    }
    for (int i = 0; i < KAFKA_TOPICS; i++) {
        (void)snprintf(text, sizeof(text), "%s.%s", prefix, kafka_topic_name((enum kafka_topic)i));
        bare->topics[i] = rd_kafka_topic_new(bare->rk, text, NULL);
    }
    if (b->exactly_once) {
        must(rd_kafka_init_transactions(bare->rk, TIMEOUT_MS), "init");
    }
}

static void close_bare(struct bare *bare)
{
    for (int i = 0; i < KAFKA_TOPICS; i++) {
        rd_kafka_topic_destroy(bare->topics[i]);
    }
    rd_kafka_destroy(bare->rk);
}

static void produce(struct bare *bare, const struct ready *r)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_copy(r->headers);

    for (;;) {
        rd_kafka_resp_err_t code =
            rd_kafka_producev(bare->rk, RD_KAFKA_V_RKT(bare->topics[r->m.topic]),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_KEY(kafka_bytes(r->m.key), r->m.key.len),
                              RD_KAFKA_V_VALUE(kafka_bytes(r->m.value), r->m.value.len),
                              RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);

        if (!code) {
            return;
        }
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            fail("produce", rd_kafka_err2str(code));
        }
        (void)rd_kafka_poll(bare->rk, 10);
    }
}

/* Messages of the records from `at` to `end` - 1. */
static void bare_write(const struct bench *b, struct bare *bare, size_t *at, size_t end)
{
    if (b->exactly_once) {
        must(rd_kafka_begin_transaction(bare->rk), "begin");
    }
    for (; *at < b->n_ready && b->ready[*at].record < end; (*at)++) {
        produce(bare, &b->ready[*at]);
        (void)rd_kafka_poll(bare->rk, 0);
    }
    if (b->exactly_once) {
        must(rd_kafka_commit_transaction(bare->rk, TIMEOUT_MS), "commit");
    }
}

static void flush_bare(struct bare *bare, size_t sent)
{
    (void)rd_kafka_flush(bare->rk, TIMEOUT_MS);
    if (bare->delivered != sent) {
        fail("flush", "not everything was delivered");
    }
}

static struct timing run_bare(const struct bench *b, struct bare *bare)
{
    size_t at = 0;

    bare_write(b, bare, &at, WARM);
    flush_bare(bare, at);

    struct timing t = start_timing();

    for (size_t end = WARM + b->batch; at < b->n_ready; end += b->batch) {
        bare_write(b, bare, &at, end);
    }
    flush_bare(bare, at);
    return stop_timing(t);
}

/* ---- The driver -------------------------------------------------------------------------- */

/* A batch from record `at` on, or what there is left. */
static struct span span_at(const struct bench *b, size_t at, size_t n)
{
    const struct sink_record *list = b->events->list;
    size_t left = b->events->n - at;

    n = left < n ? left : n;
    return (struct span){
        .journal = b->events->journal,
        .from = at > 0 ? list[at - 1].seq + 1 : 1,
        .to = n > 0 ? list[at + n - 1].seq : 0,
        .records = list + at,
        .n = n,
    };
}

static void driver_begin(struct sink *s, const struct span *span)
{
    if (s->ops->begin && span->n > 0 && !s->ops->begin(s, span)) {
        fail("begin", "not all of it could be sent");
    }
}

static void driver_write(struct sink *s, const struct span *span)
{
    struct err err;

    if (s->ops->write(s, span, &err) != SINK_OK) {
        die(&err);
    }
}

/* As the runner does: the next span is on its way while this one's answers are waited for. */
static struct timing run_driver(const struct bench *b, struct sink *s)
{
    struct span span = span_at(b, 0, WARM);

    driver_write(s, &span);

    struct timing t = start_timing();

    span = span_at(b, WARM, b->batch);
    driver_begin(s, &span);
    for (size_t at = WARM; span.n > 0; at += b->batch) {
        size_t behind = at + b->batch < b->events->n ? at + b->batch : b->events->n;
        struct span ahead = span_at(b, behind, b->batch);

        driver_begin(s, &ahead);
        driver_write(s, &span);
        span = ahead;
    }
    return stop_timing(t);
}

static struct sink *open_driver(const struct bench *b)
{
    const struct sink_config cfg = { .settings = b->settings,
                                     .name = "kafka",
                                     .timeout_ms = TIMEOUT_MS };
    const struct sink_ops *ops = sink_kafka_driver(b->settings);
    struct sink *s = NULL;
    struct err err;
    struct sink_position at;

    if (!ops->open(&cfg, &s, &err) ||
        (ops->position && !ops->position(s, b->events->journal, &at, &err))) {
        die(&err);
    }
    return s;
}

/* ---- Measuring ------------------------------------------------------------------------------ */

static struct sink *open_anew(struct bench *b, char prefix[64])
{
    (void)snprintf(prefix, 64, "bench-%" PRId64, clock_now_us());
    (void)json_object_set_new(b->settings, "topic_prefix", json_string(prefix));
    return open_driver(b);
}

static void keep(struct bench *b, size_t way, size_t i, struct timing t)
{
    b->seconds[way][i] = (double)t.wall_us / US_PER_SECOND;
    b->cpu[way][i] = (double)t.cpu_us / US_PER_SECOND;
}

/*
 * Both send to new topics that the driver made, and a few records before the clock runs:
 * connecting and finding the leaders is not what is measured.
 */
static void run_both(struct bench *b, size_t i)
{
    struct bare bare = { 0 };
    char prefix[64];
    struct sink *s = open_anew(b, prefix);

    keep(b, 0, i, run_driver(b, s));
    s->ops->close(s);

    s = open_anew(b, prefix); /* for its topics alone */
    s->ops->close(s);
    open_bare(b, &bare, prefix);
    keep(b, 1, i, run_bare(b, &bare));
    close_bare(&bare);
}

static double report(struct bench *b, size_t runs)
{
    static const char *const names[2] = { "driver", "bare librdkafka" };
    const char *delivery = b->exactly_once ? "exactly-once" : "at-least-once";
    double seconds[2];

    for (size_t w = 0; w < 2; w++) {
        seconds[w] = median(b->seconds[w], runs);
        (void)printf("kafka, %s, %s: %s: %.0f messages/s, %.0f records/s, client's CPU %.1f s a "
                     "million records\n",
                     delivery, b->compression, names[w], (double)b->n_ready / seconds[w],
                     (double)b->events->n / seconds[w],
                     median(b->cpu[w], runs) * 1e6 / (double)b->events->n);
    }
    (void)printf("kafka, %s, %s: driver / bare librdkafka: %.2f x (target %.2f)\n", delivery,
                 b->compression, seconds[1] / seconds[0], TARGET);
    return seconds[1] / seconds[0];
}

int main(int argc, char **argv)
{
    size_t runs = argc > 5 ? (size_t)strtoul(argv[5], NULL, 10) : RUNS;

    if (argc < 4 || runs < 1 || runs > RUNS) {
        (void)fprintf(stderr, "usage: bench_kafka STATE BOOTSTRAP DELIVERY [COMPRESSION [RUNS]]\n");
        return 2;
    }

    CLEANUP(events_freep) struct events *events = events_read(argv[1]);
    struct bench b = { .bootstrap = argv[2],
                       .exactly_once = strcmp(argv[3], "exactly-once") == 0,
                       .compression = argc > 4 ? argv[4] : "none",
                       .events = events };

    b.settings = json_pack("{s:s, s:{s:s, s:s}}", "delivery", argv[3], "properties",
                           "bootstrap.servers", b.bootstrap, "compression.type", b.compression);
    b.batch = sink_kafka_driver(b.settings)->batch_records;
    make_ready(&b);
    for (size_t i = 0; i <= runs; i++) { /* the first round warms the broker, and is forgotten */
        run_both(&b, i > 0 ? i - 1 : 0);
    }

    double ratio = report(&b, runs);

    for (size_t i = 0; i < b.n_ready; i++) {
        rd_kafka_headers_destroy(b.ready[i].headers);
    }
    free(b.ready);
    kafka_space_done(&b.space);
    json_decref(b.settings);
    return ratio >= TARGET ? 0 : 1;
}
