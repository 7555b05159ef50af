#include "collector/cli/ship_load.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "collector/base/log.h"
#include "sinks/loader.h"

enum {
    LOOK_EVERY_MS = 50, /* whether a single run is done */
    PATIENCE_MS = 10 * 1000,
};

/* A loader in a thread of its own, so that the signals stay here. */
struct loading {
    struct loader_options options;
    struct loader_count count;
    struct err err;
    bool ran;
    _Atomic bool done;
};

static void *run_loader(void *ctx)
{
    struct loading *l = ctx;

    l->ran = loader_run(&l->options, &l->count, &l->err);
    l->done = true;
    return NULL;
}

/* Until a signal, which is told, or (once) the end. */
static bool run_until(struct loading *l, const sigset_t *set, int *ret_signal, struct err *err)
{
    const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
    struct stop stop;
    pthread_t thread;
    int signal = -1;
    int code;

    if (!stop_init(&stop, err)) {
        return false;
    }
    l->options.stop = &stop;
    code = pthread_create(&thread, NULL, run_loader, l);
    if (code != 0) {
        stop_done(&stop);
        return err_errno(err, code, "thread of the loader");
    }
    while (!l->done && signal < 0) {
        signal = sigtimedwait(set, NULL, &pause);
    }
    *ret_signal = signal < 0 ? 0 : signal;
    stop_ask(&stop);
    (void)pthread_join(thread, NULL);
    stop_done(&stop);
    *err = l->err;
    return l->ran;
}

static struct loader_options options_of(const struct config *c)
{
    const struct config_sink *kafka = config_find_sink(c, "kafka");
    const struct config_sink *postgres = config_find_sink(c, "postgres");

    return (struct loader_options){
        .kafka = kafka ? kafka->settings : NULL,
        .postgres = postgres ? postgres->settings : NULL,
        .group = kafka ? json_string_value(json_object_get(kafka->settings, "group")) : NULL,
        .collector = c->collector,
        .state_dir = c->state,
        .patience_ms = PATIENCE_MS,
        .on_cut = audit_on_cut,
    };
}

bool load_configured(const struct config *c, struct err *err)
{
    const struct loader_options options = options_of(c);

    if (!options.kafka || !options.postgres) {
        return err_set(
            err, ERR_INVALID,
            "--source kafka loads sinks.postgres from sinks.kafka: both must be configured");
    }
    return loader_check(&options, err);
}

bool load(const struct load *what, int *ret_signal, struct err *err)
{
    struct loading l = { .options = options_of(what->config) };

    l.options.once = what->once;
    l.options.ctx = what->audit;
    log_info("loading from Kafka into PostgreSQL", log_str("group", l.options.group));

    bool ran = run_until(&l, what->set, ret_signal, err);

    log_info("loaded", log_i64("records", (int64_t)l.count.loaded),
             log_i64("resends_dropped", (int64_t)l.count.dropped),
             log_i64("dead", (int64_t)l.count.dead), log_i64("lost", (int64_t)l.count.lost));
    return ran;
}
