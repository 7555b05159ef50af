#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"
#include "collector/web/server.h"

enum { PROBLEM_MAX_BYTES = 4096, DETAIL_BYTES = 1024 };

struct web_request *request_new(struct listener *l, struct conn *c, struct MHD_Connection *mhd)
{
    struct web_request *r = xcalloc(1, sizeof(*r));

    r->listener = l;
    r->conn = c;
    r->mhd = mhd;
    r->fd = c->fd;
    arena_init(&r->arena, WEB_ARENA_BYTES);
    buf_init(&r->body, 0);
    atomic_init(&r->refs, 1);
    atomic_init(&r->state, REQUEST_READING);
    return r;
}

void request_unref(struct web_request *r)
{
    if (atomic_fetch_sub(&r->refs, 1) > 1) {
        return;
    }
    if (r->refusal) {
        MHD_destroy_response(r->refusal);
    }
    if (r->response) {
        MHD_destroy_response(r->response);
    }
    for (size_t i = 0; i < r->n_headers; i++) {
        free(r->headers[i].name);
    }
    buf_done(&r->body);
    arena_clear(&r->arena);
    free(r);
}

/* ---- Answers ---------------------------------------------------------------- */

static struct MHD_Response *response_of(struct web_request *r, const char *type, struct slice body)
{
    struct MHD_Response *response;

    /* MHD copies; its parameter is not const for the other modes of memory. */
    union {
        const char *borrowed;
        void *given;
    } bytes = { .borrowed = body.len > 0 ? body.ptr : "" };

    response = MHD_create_response_from_buffer(body.len, bytes.given, MHD_RESPMEM_MUST_COPY);
    if (!response) {
        abort(); /* no memory for some hundred bytes */
    }
    (void)MHD_add_response_header(response, "Content-Type", type ? type : "application/json");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < r->n_headers; i++) {
        (void)MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
    }
    return response;
}

static const char *title_of(int status)
{
    const char *phrase = MHD_get_reason_phrase_for((unsigned)status);

    return phrase ? phrase : "Unknown";
}

static struct MHD_Response *problem_of(struct web_request *r, int status, const char *detail)
{
    CLEANUP(buf_done) struct buf b;

    buf_init(&b, PROBLEM_MAX_BYTES);
    buf_add(&b, SLICE("{\"type\":\"about:blank\",\"title\":"));
    buf_add_json_string(&b, slice_from_cstr(title_of(status)));
    buf_addf(&b, ",\"status\":%d,\"detail\":", status);
    buf_add_json_string(&b, slice_from_cstr(detail));
    buf_add(&b, SLICE("}\n"));
    return response_of(r, "application/problem+json", buf_slice(&b));
}

bool request_refuse(struct web_request *r, int status, const char *fmt, ...)
{
    char detail[DETAIL_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    if (status == MHD_HTTP_UNAUTHORIZED) {
        web_header(r, "WWW-Authenticate", "Bearer");
    }
    r->refusal = problem_of(r, status, detail);
    r->refusal_status = status;
    atomic_fetch_add_explicit(&r->listener->web->refused, 1, memory_order_relaxed);
    return false;
}

/* Hand the answer over, and the handler's reference back. */
static void answer(struct web_request *r, int status, struct MHD_Response *response)
{
    int was = REQUEST_HANDLING;
    struct MHD_Connection *mhd = r->mhd;

    r->response = response;
    r->status = status;
    /* Once REPLIED is seen, r and the connection belong to the listener thread. */
    if (!atomic_compare_exchange_strong(&r->state, &was, REQUEST_REPLIED)) {
        was = REQUEST_SUSPENDED;
        if (atomic_compare_exchange_strong(&r->state, &was, REQUEST_REPLIED)) {
            MHD_resume_connection(mhd);
        }
    }
    request_unref(r);
}

void web_header(struct web_request *r, const char *name, const char *value)
{
    size_t name_size = strlen(name) + 1;
    size_t value_size = strlen(value) + 1;

    if (r->n_headers == WEB_REPLY_HEADERS) {
        return;
    }

    struct web_header *h = &r->headers[r->n_headers++];

    h->name = xcalloc(1, name_size + value_size);
    h->value = h->name + name_size;
    memcpy(h->name, name, name_size);
    memcpy(h->value, value, value_size);
}

void web_reply(struct web_request *r, int status, const char *content_type, struct slice body)
{
    answer(r, status, response_of(r, content_type, body));
}

void web_problem(struct web_request *r, int status, const char *fmt, ...)
{
    char detail[DETAIL_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    answer(r, status, problem_of(r, status, detail));
}

/* ---- Questions -------------------------------------------------------------- */

struct slice web_body(const struct web_request *r)
{
    return buf_slice(&r->body);
}

static struct slice find(const struct route_param *params, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_equal(params[i].name, slice_from_cstr(name))) {
            return params[i].value;
        }
    }
    return (struct slice){ 0 };
}

struct slice web_param(const struct web_request *r, const char *name)
{
    return find(r->match.params, r->match.n_params, name);
}

struct slice web_query(const struct web_request *r, const char *name)
{
    return find(r->args, r->n_args, name);
}

const char *web_actor(const struct web_request *r)
{
    return r->actor;
}

int web_fd(const struct web_request *r)
{
    return r->fd;
}
