#include "collector/cli/serve_desk.h"

#include <pthread.h>
#include <stdlib.h>

#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "queries/answer.h"

struct waiting {
    enum desk_question question;
    struct web_request *request;
};

struct desk {
    const struct serve_store *place;
    const struct config *config;
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t more;
    struct waiting queue[DESK_QUEUE]; /* a ring */
    size_t first;
    size_t n;
    bool closing;
    bool troubled; /* the last question did not get its answer from the store */
    struct desk_stats stats;
    pthread_t threads[DESK_THREADS];
    size_t n_threads;
};

/* What a thread works with. */
struct clerk {
    struct desk *desk;
    struct store *store; /* NULL: not open */
    struct arena arena;  /* of one answer */
    struct buf out;
};

static int status_of(enum err_code code)
{
    switch (code) {
    case ERR_INVALID:
    case ERR_TOO_BIG:
        return 400;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_AGAIN:
    case ERR_IO:
        return 503;
    case ERR_NONE:
    case ERR_CORRUPT:
        break;
    }
    return 500;
}

static bool answer_trace_to(struct clerk *c, const struct answer_source *from,
                            const struct web_request *r, struct err *err)
{
    const struct trace_question q = { .thread = web_param(r, "thread"),
                                      .from = web_query(r, "from"),
                                      .to = web_query(r, "to"),
                                      .limit = web_query(r, "limit") };
    struct trace t;

    if (!answer_trace(from, &q, &c->arena, &t, err)) {
        return false;
    }
    trace_json(&t, &c->out);
    return true;
}

static bool answer_why_to(struct clerk *c, const struct answer_source *from,
                          const struct web_request *r, struct err *err)
{
    const struct why_question q = { .hook = web_query(r, "hook"),
                                    .call = web_query(r, "call"),
                                    .thread = web_query(r, "thread"),
                                    .tool = web_query(r, "tool"),
                                    .event = web_query(r, "event"),
                                    .at = web_query(r, "at") };
    struct why w;

    if (!answer_why(from, &q, &c->arena, &w, err)) {
        return false;
    }
    why_json(&w, &c->out);
    return true;
}

static bool on_position(void *ctx, const struct store_position *p)
{
    (void)ctx;
    (void)p;
    return false; /* that the store answers is all that we want to know */
}

static bool answer_ready_to(struct clerk *c, struct err *err)
{
    if (!c->store->ops->positions(c->store, on_position, NULL, err)) {
        return false;
    }
    buf_add(&c->out, SLICE("{\"status\":\"ready\"}\n"));
    return true;
}

static bool answer_to(struct clerk *c, const struct waiting *w, struct err *err)
{
    const struct answer_source from = { .store = c->store,
                                        .state_dir = c->desk->config->state,
                                        .max_rows = c->desk->config->serve.max_rows };

    switch (w->question) {
    case DESK_READY:
        return answer_ready_to(c, err);
    case DESK_EVALUATION:
        return evaluation_json(c->store, web_param(w->request, "id"), &c->arena, &c->out, err);
    case DESK_TRACE:
        return answer_trace_to(c, &from, w->request, err);
    case DESK_WHY:
        return answer_why_to(c, &from, w->request, err);
    case DESK_QUESTIONS:
        break;
    }
    return err_set(err, ERR_INVALID, "no such question");
}

/* A store in doubt is opened anew; a refused question does not touch it. */
static bool is_store_lost(enum err_code code)
{
    return code == ERR_IO || code == ERR_CORRUPT;
}

static bool ask_once(struct clerk *c, const struct waiting *w, struct err *err)
{
    buf_clear(&c->out);
    arena_clear(&c->arena);
    if (!c->store && !serve_store_open(c->desk->place, &c->store, err)) {
        return false;
    }
    if (answer_to(c, w, err)) {
        return buf_ok(&c->out) ||
               err_set(err, ERR_TOO_BIG, "the answer is over %d MiB; ask for fewer events",
                       ANSWER_MAX_BYTES >> 20);
    }
    if (is_store_lost(err->code)) {
        serve_store_closep(&c->store);
    }
    return false;
}

/*
 * A store that was open may have gone while nobody asked: its restart shows with the next
 * question only. So what fails there is asked once more of a store that was opened for it.
 */
static bool ask(struct clerk *c, const struct waiting *w, struct err *err)
{
    bool was_open = c->store != NULL;

    return ask_once(c, w, err) || (was_open && !c->store && ask_once(c, w, err));
}

static void count(struct desk *d, enum desk_question question, int status)
{
    (void)pthread_mutex_lock(&d->lock);
    d->stats.answered[question]++;
    d->stats.failed += status >= 500;
    (void)pthread_mutex_unlock(&d->lock);
}

/* The first failure and the first answer after it are told, not each of those between. */
static void tell_store(struct desk *d, int status, const struct err *err)
{
    bool trouble = status >= 500;
    bool changed;

    (void)pthread_mutex_lock(&d->lock);
    changed = d->troubled != trouble;
    d->troubled = trouble;
    (void)pthread_mutex_unlock(&d->lock);
    if (changed && trouble) {
        log_error("the store does not answer", log_str("store", d->place->ops->name),
                  log_str("err", err->text));
    } else if (changed) {
        log_info("the store answers again", log_str("store", d->place->ops->name));
    }
}

static void serve_one(struct clerk *c, const struct waiting *w)
{
    struct err err;
    bool ok = ask(c, w, &err);
    int status = ok ? 200 : status_of(err.code);

    if (!ok && w->question == DESK_READY) {
        status = 503;
    }
    count(c->desk, w->question, status);
    tell_store(c->desk, status, &err);
    if (ok) {
        web_reply(w->request, status, NULL, buf_slice(&c->out));
    } else {
        web_problem(w->request, status, "%s", err.text);
    }
    arena_clear(&c->arena);
    buf_done(&c->out); /* one large answer must not stay for ever */
}

/* The next one that waits. False when the desk closes and none does. */
static bool take(struct desk *d, struct waiting *ret)
{
    bool there;

    (void)pthread_mutex_lock(&d->lock);
    while (d->n == 0 && !d->closing) {
        (void)pthread_cond_wait(&d->more, &d->lock);
    }
    there = d->n > 0;
    if (there) {
        *ret = d->queue[d->first];
        d->first = (d->first + 1) % DESK_QUEUE;
        d->n--;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return there;
}

static void *work(void *arg)
{
    struct clerk c = { .desk = arg };
    struct waiting w;

    arena_init(&c.arena, ANSWER_ARENA_BYTES);
    buf_init(&c.out, ANSWER_MAX_BYTES);
    while (take(c.desk, &w)) {
        serve_one(&c, &w);
    }
    serve_store_closep(&c.store);
    return NULL;
}

void desk_put(struct desk *d, enum desk_question question, struct web_request *r)
{
    bool taken;

    (void)pthread_mutex_lock(&d->lock);
    taken = !d->closing && d->n < DESK_QUEUE;
    if (taken) {
        d->queue[(d->first + d->n++) % DESK_QUEUE] = (struct waiting){ question, r };
        (void)pthread_cond_signal(&d->more);
    } else {
        d->stats.refused++;
    }
    (void)pthread_mutex_unlock(&d->lock);
    if (!taken) {
        web_problem(r, 503, "over %d questions wait already; ask again later", DESK_QUEUE);
    }
}

void desk_stats(struct desk *d, struct desk_stats *ret)
{
    (void)pthread_mutex_lock(&d->lock);
    *ret = d->stats;
    ret->waiting = d->n;
    (void)pthread_mutex_unlock(&d->lock);
}

bool desk_open(const struct serve_store *place, const struct config *config, struct desk **ret,
               struct err *err)
{
    struct desk *d = xcalloc(1, sizeof(*d));

    d->place = place;
    d->config = config;
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->more, NULL);
    while (d->n_threads < DESK_THREADS) {
        int code = pthread_create(&d->threads[d->n_threads], NULL, work, d);

        if (code != 0) {
            desk_close(d);
            return err_errno(err, code, "start a thread");
        }
        d->n_threads++;
    }
    *ret = d;
    return true;
}

void desk_close(struct desk *d)
{
    if (!d) {
        return;
    }
    (void)pthread_mutex_lock(&d->lock);
    d->closing = true;
    (void)pthread_cond_broadcast(&d->more);
    (void)pthread_mutex_unlock(&d->lock);
    for (size_t i = 0; i < d->n_threads; i++) {
        (void)pthread_join(d->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&d->more);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}
