/*
 * serve: the role that answers questions over HTTP.
 *
 * It opens the store and the journals to read, and writes nothing but its pid file,
 * where it may. SIGTERM and SIGINT end it once what was asked is answered.
 */
#include "collector/cli/commands.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/config_diff.h"
#include "collector/base/log.h"
#include "collector/cli/cli_pid.h"
#include "collector/cli/serve_desk.h"

enum {
    STOP_WAIT_MS = 5000,
    IDLE_MS = 60000,
    CONNECTIONS = 256, /* a listener */
    KEYS_BYTES = 4096,
    METRICS_BYTES = 16 * 1024,
    PLACE_BYTES = 64 * 1024, /* where the store is: a path or a dsn */
};

enum { ROUTES = 6 };

struct server {
    struct desk *desk;
    _Atomic(struct web *) web; /* set when web_start() is back, which requests need not wait for */
    struct web_route routes[ROUTES]; /* borrowed by web, as is tokens */
    char tokens[4096];
};

static void on_health(void *ctx, struct web_request *r)
{
    (void)ctx;
    web_reply(r, 200, NULL, SLICE("{\"status\":\"ok\"}\n"));
}

static void on_ready(void *ctx, struct web_request *r)
{
    desk_put(((struct server *)ctx)->desk, DESK_READY, r);
}

static void on_evaluation(void *ctx, struct web_request *r)
{
    desk_put(((struct server *)ctx)->desk, DESK_EVALUATION, r);
}

static void on_trace(void *ctx, struct web_request *r)
{
    desk_put(((struct server *)ctx)->desk, DESK_TRACE, r);
}

static void on_why(void *ctx, struct web_request *r)
{
    desk_put(((struct server *)ctx)->desk, DESK_WHY, r);
}

static void add_metric(struct buf *b, const char *name, const char *kind, const char *help,
                       uint64_t value)
{
    buf_addf(b, "# HELP hooktrail_serve_%s %s\n# TYPE hooktrail_serve_%s %s\n", name, help, name,
             kind);
    buf_addf(b, "hooktrail_serve_%s %" PRIu64 "\n", name, value);
}

static void add_answers(struct buf *b, const struct desk_stats *d)
{
    static const char *const names[] = { [DESK_READY] = "ready",
                                         [DESK_EVALUATION] = "evaluation",
                                         [DESK_TRACE] = "trace",
                                         [DESK_WHY] = "why" };

    buf_add(b, SLICE("# HELP hooktrail_serve_answers_total Questions answered.\n"
                     "# TYPE hooktrail_serve_answers_total counter\n"));
    for (int i = 0; i < DESK_QUESTIONS; i++) {
        buf_addf(b, "hooktrail_serve_answers_total{question=\"%s\"} %" PRIu64 "\n", names[i],
                 d->answered[i]);
    }
}

static void on_metrics(void *ctx, struct web_request *r)
{
    struct server *s = ctx;
    CLEANUP(buf_done) struct buf b;
    struct web *server = s->web;
    struct web_stats web = { 0 };
    struct desk_stats desk;

    buf_init(&b, METRICS_BYTES);
    if (server) {
        web_stats(server, &web);
    }
    desk_stats(s->desk, &desk);
    add_metric(&b, "requests_total", "counter", "HTTP requests.", web.requests);
    add_metric(&b, "requests_refused_total", "counter", "Requests refused for access or limits.",
               web.refused);
    add_metric(&b, "connections", "gauge", "Open connections.", web.open);
    add_metric(&b, "questions_waiting", "gauge", "Questions that wait.", desk.waiting);
    add_metric(&b, "questions_refused_total", "counter", "Questions refused: too many waited.",
               desk.refused);
    add_metric(&b, "errors_total", "counter", "Questions that the store could not answer.",
               desk.failed);
    add_answers(&b, &desk);
    web_reply(r, 200, "text/plain; version=0.0.4", buf_slice(&b));
}

static void set_routes(struct server *s)
{
    const struct web_route routes[ROUTES] = {
        { "GET", "/healthz", WEB_SCOPE_NONE, 0, NULL, on_health, s },
        { "GET", "/readyz", WEB_SCOPE_NONE, 0, NULL, on_ready, s },
        { "GET", "/metrics", WEB_SCOPE_QUERY, 0, NULL, on_metrics, s },
        { "GET", "/v1/evaluations/:id", WEB_SCOPE_QUERY, 0, NULL, on_evaluation, s },
        { "GET", "/v1/threads/:thread/trace", WEB_SCOPE_QUERY, 0, "from to limit", on_trace, s },
        { "GET", "/v1/why", WEB_SCOPE_QUERY, 0, "hook call thread tool event at", on_why, s },
    };

    memcpy(s->routes, routes, sizeof(routes));
}

static bool start_web(struct server *s, const struct config *c, struct err *err)
{
    const struct web_options o = { .listen = c->serve.listen,
                                   .routes = s->routes,
                                   .n_routes = ROUTES,
                                   .tokens_path = s->tokens,
                                   .socket_group = c->serve.socket_group,
                                   .tls_cert = c->serve.tls_cert,
                                   .tls_key = c->serve.tls_key,
                                   .hosts = c->serve.hosts,
                                   .hosts_key = "serve.hosts",
                                   .max_connections = CONNECTIONS,
                                   .idle_ms = IDLE_MS };
    struct web *web = NULL;

    set_routes(s);
    (void)snprintf(s->tokens, sizeof(s->tokens), "%s/tokens.json", c->state);
    if (!web_start(&o, &web, err)) {
        return false;
    }
    s->web = web;
    return true;
}

/* A state folder that we may only read is no reason not to serve. */
static void write_pid(const struct config *c)
{
    struct err err;

    if (!pid_write(c->state, "serve", &err)) {
        log_warn("no pid file, `status` will not show this role", log_str("err", err.text));
    }
}

/* What serve lives from; it takes none of it while it runs. A sink that is no store is none of it.
 */
static bool is_ours(const char *key)
{
    return strncmp(key, "serve.", 6) == 0 || strcmp(key, "sinks.sqlite") == 0 ||
           strcmp(key, "sinks.postgres") == 0 || strcmp(key, "state") == 0;
}

static void reload(const struct cli *cli, const struct config *c)
{
    CLEANUP(buf_done) struct buf keys;
    struct config *next = cli_config(cli);

    buf_init(&keys, KEYS_BYTES);
    if (!next) {
        log_error("configuration not taken, the old one stays in force");
    } else if (config_diff(c, next, is_ours, &keys) > 0) {
        log_warn("changed keys that need a restart of serve", log_slice("keys", buf_slice(&keys)));
    } else {
        log_info("configuration reloaded, nothing of it concerns serve");
    }
    config_free(next);
}

static void wait_for_the_end(const struct cli *cli, const struct config *c, const sigset_t *signals)
{
    int signal_number = SIGHUP;

    while (signal_number == SIGHUP) {
        if (sigwait(signals, &signal_number) != 0) {
            return;
        }
        if (signal_number == SIGHUP) {
            reload(cli, c);
        }
    }
}

static int serve(const struct cli *cli, const struct config *c, const struct serve_store *place)
{
    struct server s = { 0 };
    sigset_t signals;
    struct err err;

    cli_block_signals(&signals);
    if (!desk_open(place, c, &s.desk, &err)) {
        return cli_fail(cli, &err);
    }
    if (!start_web(&s, c, &err)) {
        desk_close(s.desk);
        return cli_fail(cli, &err);
    }
    write_pid(c);
    for (size_t i = 0; c->serve.listen[i]; i++) {
        log_info("serving", log_str("listen", c->serve.listen[i]),
                 log_i64("port", web_port(s.web, i)), log_str("store", place->ops->name));
    }
    wait_for_the_end(cli, c, &signals);
    log_info("stopping");
    web_stop(s.web, STOP_WAIT_MS);
    desk_close(s.desk);
    pid_remove(c->state, "serve");
    return CLI_DONE;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const struct cli_option options[] = { { 0 } };
    CLEANUP(arena_clear) struct arena a;
    struct serve_store place;
    struct err err;
    int code;

    arena_init(&a, PLACE_BYTES);
    if (!cli_options_only(cli, argc, argv, options)) {
        return CLI_USAGE;
    }

    log_set_role("serve");

    struct config *c = cli_config(cli);

    if (!c) {
        return CLI_USAGE;
    }
    code = serve_store_find(c, &a, &place, &err) ? serve(cli, c, &place) : cli_fail(cli, &err);
    config_free(c);
    return code;
}

const struct cli_command serve_command = {
    .name = "serve",
    .run = run,
    .usage = "",
    .help = "Answer questions over HTTP, from the store that the configuration names:\n\n"
            "  GET /v1/evaluations/ID        one record, and the other chains of its dispatch\n"
            "  GET /v1/threads/THREAD/trace  ?from=&to=&limit=\n"
            "  GET /v1/why                   ?hook=&call= or ?hook=&thread=&tool=&event=&at=\n"
            "  GET /healthz /readyz /metrics\n\n"
            "The answers are those of `trace --json` and `why --json`. A token with the scope\n"
            "`query` is needed over TCP (see `hooktrail token`). SIGTERM ends it; at\n"
            "SIGHUP it says which changed keys need a restart.",
};
