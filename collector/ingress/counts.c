#include "collector/ingress/counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Upper bounds of the buckets: a tenth of a millisecond to a minute. */
static const int64_t bounds_us[COUNTS_BUCKETS] = {
    100,   250,    500,    1000,   2500,    5000,    10000,    25000,
    50000, 100000, 250000, 500000, 1000000, 5000000, 15000000, 60000000,
};

void counts_init(struct counts *c)
{
    memset(c, 0, sizeof(*c));
    (void)pthread_mutex_init(&c->mutex, NULL);
}

void counts_done(struct counts *c)
{
    (void)pthread_mutex_destroy(&c->mutex);
}

static bool is_row(const struct counts_row *row, const char *contract, struct slice event,
                   enum decision decision)
{
    return row->decision == decision && row->contract == contract &&
           slice_equal(event, slice_from_cstr(row->event));
}

/* The row of a decision; the last one counts what finds no place. The mutex is held. */
static struct counts_row *row_of(struct counts *c, const char *contract, struct slice event,
                                 enum decision decision)
{
    if (event.len >= COUNTS_NAME) {
        event.len = COUNTS_NAME - 1;
    }
    for (size_t i = 0; i < c->n_rows; i++) {
        if (is_row(&c->rows[i], contract, event, decision)) {
            return &c->rows[i];
        }
    }
    if (c->n_rows == COUNTS_ROWS) {
        return &c->rows[COUNTS_ROWS - 1];
    }

    struct counts_row *row = &c->rows[c->n_rows++];
    bool last = c->n_rows == COUNTS_ROWS;

    row->contract = last ? "other" : contract;
    row->decision = last ? DECISION_NONE : decision;
    if (!last) {
        (void)snprintf(row->event, sizeof(row->event), "%" SLICE_FMT, SLICE_ARG(event));
    }
    return row;
}

void counts_decision(struct counts *c, const char *contract, struct slice event,
                     enum decision decision)
{
    (void)pthread_mutex_lock(&c->mutex);
    row_of(c, contract, event, decision)->n++;
    (void)pthread_mutex_unlock(&c->mutex);
}

void counts_duration(struct counts *c, int64_t duration_us, int64_t queue_us)
{
    size_t i = 0;

    while (i < COUNTS_BUCKETS && duration_us > bounds_us[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&c->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->duration_us, (uint64_t)(duration_us > 0 ? duration_us : 0),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&c->queue_us, (uint64_t)queue_us, memory_order_relaxed);
}

static void print_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void counts_plain(struct buf *out, const char *name, const char *type, const char *help,
                  uint64_t value)
{
    print_head(out, name, type, help);
    buf_addf(out, "%s %" PRIu64 "\n", name, value);
}

/* A label's value. What would need an escape is no character of our words. */
static void add_label(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s=\"", name);
    for (; *value; value++) {
        bool plain = *value > ' ' && *value < 0x7f && *value != '"' && *value != '\\';

        buf_add(out, plain ? (struct slice){ .ptr = value, .len = 1 } : SLICE("_"));
    }
    buf_add_char(out, '"');
}

static void print_decisions(struct counts *c, struct buf *out)
{
    print_head(out, "hooktrail_decisions_total", "counter",
               "Decisions of chains, by contract, event and decision.");
    (void)pthread_mutex_lock(&c->mutex);
    for (size_t i = 0; i < c->n_rows; i++) {
        buf_add(out, SLICE("hooktrail_decisions_total{"));
        add_label(out, "contract", c->rows[i].contract);
        buf_add_char(out, ',');
        add_label(out, "event", c->rows[i].event);
        buf_add_char(out, ',');
        add_label(out, "decision", decision_name(c->rows[i].decision));
        buf_addf(out, "} %" PRIu64 "\n", c->rows[i].n);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

static void print_durations(struct counts *c, struct buf *out)
{
    static const char name[] = "hooktrail_dispatch_duration_seconds";
    uint64_t sum = 0;

    print_head(out, name, "histogram", "From a request's arrival to its decision.");
    for (size_t i = 0; i < COUNTS_BUCKETS; i++) {
        sum += atomic_load_explicit(&c->buckets[i], memory_order_relaxed);
        buf_addf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, (double)bounds_us[i] / 1e6, sum);
    }
    sum += atomic_load_explicit(&c->buckets[COUNTS_BUCKETS], memory_order_relaxed);
    buf_addf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, sum);
    buf_addf(out, "%s_sum %.6f\n", name, (double)atomic_load(&c->duration_us) / 1e6);
    buf_addf(out, "%s_count %" PRIu64 "\n", name, sum);
}

static void print_recorded(struct counts *c, struct buf *out)
{
    static const char *const words[] = { "stored", "late", "lost" };

    print_head(out, "hooktrail_recorded_total", "counter",
               "Dispatches by what had become of their record when they were answered.");
    for (size_t i = 0; i < 3; i++) {
        buf_addf(out, "hooktrail_recorded_total{outcome=\"%s\"} %" PRIu64 "\n", words[i],
                 atomic_load(&c->recorded[i]));
    }
}

void counts_print(struct counts *c, struct buf *out)
{
    print_decisions(c, out);
    print_durations(c, out);
    print_recorded(c, out);
    print_head(out, "hooktrail_queue_seconds_total", "counter",
               "Time that dispatches waited for a worker.");
    buf_addf(out, "hooktrail_queue_seconds_total %.6f\n", (double)atomic_load(&c->queue_us) / 1e6);
    counts_plain(out, "hooktrail_dispatch_refused_total", "counter",
                 "Requests that were no dispatch.", atomic_load(&c->refused));
    counts_plain(out, "hooktrail_events_accepted_total", "counter",
                 "Lines of hosts that were recorded.", atomic_load(&c->events_accepted));
    counts_plain(out, "hooktrail_events_refused_total", "counter",
                 "Lines of hosts that were refused.", atomic_load(&c->events_refused));
}
