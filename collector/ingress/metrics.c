#include "collector/ingress/ingress.h"

enum { METRICS_MAX_BYTES = 1024 * 1024 };

struct metric {
    const char *name;
    const char *type;
    const char *help;
    uint64_t value;
};

static void print_all(struct buf *out, const struct metric *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        counts_plain(out, list[i].name, list[i].type, list[i].help, list[i].value);
    }
}

static void print_pool(struct pool *pool, struct buf *out)
{
    struct pool_stats s;

    pool_stats(pool, &s);

    const struct metric list[] = {
        { "hooktrail_queue", "gauge", "Dispatches that wait for a worker.", s.queued },
        { "hooktrail_queue_limit", "gauge", "How many may wait.", s.queue_max },
        { "hooktrail_running", "gauge", "Dispatches that a worker runs.", s.running },
        { "hooktrail_workers", "gauge", "Worker threads that were started.", s.workers },
        { "hooktrail_workers_limit", "gauge", "How many may be started.", s.workers_max },
        { "hooktrail_queue_refused_total", "counter", "Requests refused by a full queue.",
          s.refused },
    };

    print_all(out, list, sizeof(list) / sizeof(list[0]));
}

static void print_journal(struct journal *j, struct buf *out)
{
    struct journal_stats s;

    journal_stats(j, &s);

    const struct metric list[] = {
        { "hooktrail_journal_accepted_total", "counter", "Records accepted.", s.accepted_records },
        { "hooktrail_journal_stored_total", "counter", "Records stored.", s.stored_records },
        { "hooktrail_journal_lost_total", "counter", "Records lost, and told by a gap record.",
          s.lost_records },
        { "hooktrail_journal_durable_seq", "gauge", "Highest sequence that is durable.",
          s.durable_seq },
        { "hooktrail_journal_bytes", "gauge", "Bytes of all segments.", s.bytes_on_disk },
        { "hooktrail_journal_queue_bytes", "gauge", "Bytes not written yet.", s.queue_bytes },
        { "hooktrail_journal_syncs_total", "counter", "Calls of fdatasync.", s.syncs },
        { "hooktrail_journal_sync_failures_total", "counter", "Calls of fdatasync that failed.",
          s.sync_failures },
        { "hooktrail_journal_full", "gauge", "1 while the quota is used up.", s.full },
        { "hooktrail_journal_refusing", "gauge",
          "1 while nothing can be stored: quota, full disk, failing disk.", s.refuses != NULL },
    };

    print_all(out, list, sizeof(list) / sizeof(list[0]));
}

static void print_recorder(struct recorder *r, struct buf *out)
{
    struct recorder_stats s;

    recorder_stats(r, &s);

    const struct metric list[] = {
        { "hooktrail_dispatches_total", "counter", "Dispatches that were run and recorded.",
          s.dispatches },
        { "hooktrail_records_late_total", "counter", "Records not safe within record_wait_ms.",
          s.late },
        { "hooktrail_records_lost_total", "counter", "Records that could not be stored.", s.lost },
        { "hooktrail_redaction_failures_total", "counter",
          "Contents of which only the skeleton was kept.", s.redaction_failures },
    };

    print_all(out, list, sizeof(list) / sizeof(list[0]));
}

static void print_web(const struct web *w, struct buf *out)
{
    struct web_stats s;

    web_stats(w, &s);

    const struct metric list[] = {
        { "hooktrail_http_requests_total", "counter", "HTTP requests.", s.requests },
        { "hooktrail_http_refused_total", "counter",
          "HTTP requests refused: token, scope, Host, Origin, limits.", s.refused },
        { "hooktrail_http_connections_total", "counter", "HTTP connections.", s.connections },
    };

    print_all(out, list, sizeof(list) / sizeof(list[0]));
}

void metrics_handle(void *ctx, struct web_request *r)
{
    CLEANUP(buf_done) struct buf out;
    struct ingress *in = ctx;
    const struct web *web = atomic_load(&in->web);

    buf_init(&out, METRICS_MAX_BYTES);
    counts_print(&in->counts, &out);
    print_pool(in->pool, &out);
    print_journal(in->o.journal, &out);
    print_recorder(in->o.recorder, &out);
    if (web) {
        print_web(web, &out);
    }
    web_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_slice(&out));
}
