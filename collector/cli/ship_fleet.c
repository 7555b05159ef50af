#include "collector/cli/ship_fleet.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "sinks/registry.h"

enum {
    BATCH_RECORDS = 4096, /* unless the driver wants more */
    RECORD_BYTES = 1024,  /* a usual one: bounds the bytes of a batch */
    LINGER_MS = 100,      /* ten commits a second at the most, when little comes */
    PATIENCE_MS = 10 * 1000,
};

/* One sink and its thread. */
struct ship {
    struct fleet *fleet;
    struct sink_config cfg;
    struct feed_options feed;
    struct runner_options runner;
    pthread_t thread;
    bool started;
    _Atomic bool done;
    enum runner_end end;
};

struct fleet {
    struct stop stop;
    struct audit *audit;
    struct ship ships[CONFIG_LIST_MAX];
    size_t n;
};

static void on_loss(void *ctx, const struct feed_loss *loss)
{
    struct ship *s = ctx;
    struct err err;

    if (!audit_loss(s->fleet->audit, loss, &err)) {
        log_error("gap not recorded, it stands in this log alone", log_str("sink", s->cfg.name),
                  log_str("journal", loss->journal), log_str("err", err.text));
    }
}

static void *run_ship(void *ctx)
{
    struct ship *s = ctx;
    struct err err = { 0 };

    s->end = runner_run(&s->runner, &err);
    if (s->end == RUNNER_GAVE_UP) {
        log_error("sink did not take everything", log_str("sink", s->cfg.name),
                  log_str("err", err.text));
    }
    s->done = true;
    return NULL;
}

static bool start_ship(struct ship *s, struct err *err)
{
    int code = pthread_create(&s->thread, NULL, run_ship, s);

    s->started = code == 0;
    return s->started || err_errno(err, code, "thread of sink %s", s->cfg.name);
}

/* What the configuration says, or the driver, or what is usual. */
static size_t batch_of(const struct config_sink *sink, const struct sink_ops *ops)
{
    json_int_t n = json_integer_value(json_object_get(sink->settings, "batch_records"));

    if (n > 0) {
        return (size_t)n;
    }
    return ops->batch_records > 0 ? ops->batch_records : BATCH_RECORDS;
}

static bool set_up(struct fleet *f, const struct config *c, size_t i, bool once, struct err *err)
{
    struct ship *s = &f->ships[i];
    const struct config_sink *sink = &c->sinks[i];
    const struct sink_ops *ops = sink_find(sink->name, sink->settings);

    if (!ops) {
        return err_set(err, ERR_INVALID, "there is no sink called %s", sink->name);
    }
    size_t batch = batch_of(sink, ops);
    int64_t linger_ms = ops->linger_ms > 0 ? ops->linger_ms : LINGER_MS;

    s->fleet = f;
    s->cfg = (struct sink_config){
        .settings = sink->settings,
        .name = sink->name,
        .state_dir = c->state,
        .timeout_ms = sink_timeout_ms(sink->settings),
    };
    s->feed = (struct feed_options){
        .state_dir = c->state,
        .sink = sink->name,
        .batch_records = batch,
        .batch_bytes = batch * RECORD_BYTES,
        .ahead = ops->begin != NULL,
        .on_loss = on_loss,
        .ctx = s,
    };
    s->runner = (struct runner_options){
        .cfg = &s->cfg,
        .ops = ops,
        .source = feed_open(&s->feed),
        .stop = &f->stop,
        .batch_records = batch,
        .linger_ms = once ? 0 : linger_ms,
        .once = once,
        .patience_ms = PATIENCE_MS,
        .on_cut = audit_on_cut,
        .ctx = f->audit,
    };
    return true;
}

bool fleet_start(const struct config *c, bool once, struct audit *audit, struct fleet **ret,
                 struct err *err)
{
    struct fleet *f = xcalloc(1, sizeof(*f));
    bool started;

    f->audit = audit;
    started = stop_init(&f->stop, err);
    for (size_t i = 0; started && i < c->n_sinks; i++) {
        started = set_up(f, c, i, once, err);
        f->n += started ? 1 : 0;
    }
    for (size_t i = 0; started && i < f->n; i++) {
        started = start_ship(&f->ships[i], err);
    }
    if (!started) {
        (void)fleet_stop(f);
        return false;
    }
    *ret = f;
    return true;
}

bool fleet_is_done(struct fleet *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (!f->ships[i].done) {
            return false;
        }
    }
    return true;
}

void fleet_finish(struct fleet *f)
{
    stop_when_done(&f->stop);
}

enum runner_end fleet_stop(struct fleet *f)
{
    enum runner_end worst = RUNNER_STOPPED;

    if (!f) {
        return worst;
    }
    stop_ask(&f->stop);
    for (size_t i = 0; i < f->n; i++) {
        struct ship *s = &f->ships[i];

        if (s->started) {
            (void)pthread_join(s->thread, NULL);
            worst = s->end > worst ? s->end : worst;
        }
        s->runner.source->ops->close(s->runner.source);
    }
    stop_done(&f->stop);
    free(f);
    return worst;
}
