/*
 * Everything that is decided about a request before its handler sees it, from
 * its head alone: who asks, through which name, for what, and how much.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "collector/web/server.h"

static const unsigned all_scopes =
    WEB_SCOPE_DISPATCH | WEB_SCOPE_INGEST | WEB_SCOPE_QUERY | WEB_SCOPE_EXPORT | WEB_SCOPE_ADMIN;

/* The headers that decide something, and how often each stood there. */
enum known { HOST, ORIGIN, AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT, KNOWN_COUNT };

struct head {
    struct slice value[KNOWN_COUNT];
    unsigned times[KNOWN_COUNT];
    unsigned n;
    bool bad_name;  /* one is no token: "Content-Length : 5" */
    bool bad_value; /* one has a control character in it */
};

static struct slice slice_of(const char *ptr, size_t len)
{
    return (struct slice){ .ptr = ptr, .len = ptr ? len : 0 };
}

/* RFC 9110, 5.6.2. MHD takes a blank before the colon, and the start of a line, as part of a name.
 */
static bool is_token(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (c <= ' ' || c > '~' || strchr("()<>@,;:\\\"/[]?={}", c)) {
            return false;
        }
    }
    return name.len > 0;
}

static bool has_control(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    static const char *const names[KNOWN_COUNT] = {
        "host", "origin", "authorization", "content-length", "transfer-encoding", "expect"
    };
    struct head *h = cls;

    (void)kind;
    h->n++;
    h->bad_name = h->bad_name || !is_token(slice_of(key, key_size));
    h->bad_value = h->bad_value || has_control(slice_of(value, value_size));
    for (unsigned i = 0; i < KNOWN_COUNT; i++) {
        if (strlen(names[i]) == key_size && strcasecmp(names[i], key) == 0) {
            h->value[i] = slice_of(value, value_size);
            h->times[i]++;
        }
    }
    return MHD_YES;
}

static struct head read_head(struct MHD_Connection *mhd)
{
    struct head h = { 0 };

    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, see_header, &h);
    return h;
}

static bool check_peer(struct web_request *r)
{
    struct web *w = r->listener->web;

    if (r->conn->over_limit) {
        return request_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "connections: the limit is %u a listener", w->max_connections);
    }
    if (!r->conn->let_in) {
        return request_refuse(r, MHD_HTTP_FORBIDDEN,
                              "uid %u is not let in: neither ours nor root, nor in socket_group",
                              (unsigned)r->conn->uid);
    }
    return true;
}

static bool check_size(struct web_request *r, const struct head *h, size_t path_bytes)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    if (path_bytes > WEB_PATH_MAX_BYTES) {
        return request_refuse(r, MHD_HTTP_URI_TOO_LONG, "path: %zu bytes, the limit is %d",
                              path_bytes, WEB_PATH_MAX_BYTES);
    }
    if (info && info->header_size > WEB_HEADERS_MAX_BYTES) {
        return request_refuse(r, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
                              "headers: %zu bytes, the limit is %d", info->header_size,
                              WEB_HEADERS_MAX_BYTES);
    }
    if (h->n > WEB_HEADERS_MAX) {
        return request_refuse(r, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
                              "headers: %u of them, the limit is %d", h->n, WEB_HEADERS_MAX);
    }
    return true;
}

/* What is wrong with the framing, which then cannot be trusted; NULL: nothing. */
static const char *framing_fault(const struct head *h)
{
    if (h->bad_name) {
        return "a header's name has a character that no name has";
    }
    if (h->bad_value) {
        return "a header's value has a control character in it";
    }
    for (unsigned i = 0; i < KNOWN_COUNT; i++) {
        if (h->times[i] > 1) {
            return "a header that decides something stands there twice";
        }
    }
    if (h->times[CONTENT_LENGTH] > 0 && h->times[TRANSFER_ENCODING] > 0) {
        return "Content-Length and Transfer-Encoding exclude each other";
    }
    return NULL;
}

/* What two servers could read in two ways is refused. */
static bool check_framing(struct web_request *r, const struct head *h)
{
    const char *fault = framing_fault(h);
    struct slice coding = h->value[TRANSFER_ENCODING];

    if (fault) {
        return request_refuse(r, MHD_HTTP_BAD_REQUEST, "%s", fault);
    }
    if (h->times[TRANSFER_ENCODING] > 0 &&
        (coding.len != 7 || strncasecmp(coding.ptr, "chunked", 7) != 0)) {
        return request_refuse(r, MHD_HTTP_NOT_IMPLEMENTED,
                              "Transfer-Encoding '%" SLICE_FMT "' is not known here, only chunked",
                              SLICE_ARG(coding));
    }
    return true;
}

static bool check_names(struct web_request *r, const struct head *h)
{
    const struct listener *l = r->listener;
    const char *own = l->spec.is_unix ? "" : l->spec.host;

    if (h->times[HOST] == 0) {
        return request_refuse(r, MHD_HTTP_BAD_REQUEST, "Host is missing");
    }
    if (!access_host(h->value[HOST], own, l->web->hosts)) {
        return request_refuse(r, MHD_HTTP_FORBIDDEN,
                              "Host '%" SLICE_FMT "' is not ours (%s names more)",
                              SLICE_ARG(h->value[HOST]), l->web->hosts_key);
    }
    if (h->times[ORIGIN] > 0 && !access_origin(h->value[ORIGIN], h->value[HOST])) {
        return request_refuse(r, MHD_HTTP_FORBIDDEN, "Origin '%" SLICE_FMT "' is not ours",
                              SLICE_ARG(h->value[ORIGIN]));
    }
    return true;
}

static bool check_route(struct web_request *r, const char *path, const char *method)
{
    const struct web *w = r->listener->web;
    const char *means = strcmp(method, "HEAD") == 0 ? "GET" : method; /* MHD sends no body then */
    char allowed[64];

    r->match = route_find(w->routes, w->n_routes, means, slice_from_cstr(path));
    if (!r->match.route) {
        return request_refuse(r, MHD_HTTP_NOT_FOUND, "there is nothing at this path");
    }
    if (!r->match.method_fits) {
        route_allowed(w->routes, w->n_routes, slice_from_cstr(path), allowed, sizeof(allowed));
        web_header(r, "Allow", allowed);
        return request_refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "this path takes %s", allowed);
    }
    for (size_t i = 0; i < r->match.n_params; i++) {
        if (!route_decode(r->match.params[i].value, &r->arena, &r->match.params[i].value)) {
            return request_refuse(r, MHD_HTTP_BAD_REQUEST, "the path has a broken %%-escape");
        }
    }
    return true;
}

/* Who asks: fills scopes and actor. */
static bool identify(struct web_request *r, struct slice authorization)
{
    const struct slice prefix = SLICE("Bearer ");
    char name[TOKEN_NAME_MAX + 1];

    if (r->listener->spec.is_unix) {
        r->scopes = all_scopes;
        (void)snprintf(r->actor, sizeof(r->actor), "uid %u", (unsigned)r->conn->uid);
        return true;
    }
    (void)snprintf(r->actor, sizeof(r->actor), "nobody");
    if (authorization.len <= prefix.len ||
        strncasecmp(authorization.ptr, prefix.ptr, prefix.len) != 0 || !r->listener->web->tokens) {
        return false;
    }
    authorization.ptr += prefix.len;
    authorization.len -= prefix.len;
    if (!token_cache_find(r->listener->web->tokens, authorization, &r->scopes, name)) {
        return false;
    }
    (void)snprintf(r->actor, sizeof(r->actor), "token %s", name);
    return true;
}

static bool check_scope(struct web_request *r, const struct head *h)
{
    unsigned need = r->match.route->scope;
    bool known = identify(r, h->value[AUTHORIZATION]);
    char words[64];

    if ((r->scopes & need) == need) {
        return true;
    }
    token_scopes_format(need, words, sizeof(words));
    if (!known) {
        return request_refuse(
            r, MHD_HTTP_UNAUTHORIZED, "%s: a bearer token with the scope '%s' is needed",
            h->times[AUTHORIZATION] > 0 ? "this token is not known or has expired" : "no token",
            words);
    }
    return request_refuse(r, MHD_HTTP_FORBIDDEN, "%s has not the scope '%s'", r->actor, words);
}

static bool check_body(struct web_request *r, const struct head *h)
{
    const struct web_route *route = r->match.route;
    uint64_t length = 0;

    buf_init(&r->body, route->max_body_bytes);
    if (h->times[TRANSFER_ENCODING] > 0 ||
        (h->times[CONTENT_LENGTH] == 0 && route->max_body_bytes == 0)) {
        return true;
    }
    if (h->times[CONTENT_LENGTH] == 0) {
        return request_refuse(r, MHD_HTTP_LENGTH_REQUIRED, "Content-Length is missing");
    }
    if (!slice_to_u64(h->value[CONTENT_LENGTH], &length)) {
        return request_refuse(r, MHD_HTTP_BAD_REQUEST, "Content-Length is no number");
    }
    if (length > route->max_body_bytes) {
        return request_refuse(
            r, MHD_HTTP_CONTENT_TOO_LARGE, "body: %llu bytes, the limit of %s %s is %zu",
            (unsigned long long)length, route->method, route->path, route->max_body_bytes);
    }
    return true;
}

static bool check_arg(struct web_request *r, const struct route_param *arg)
{
    const char *known = r->match.route->args ? r->match.route->args : "";

    if (!route_takes(known, arg->name)) {
        return request_refuse(r, MHD_HTTP_BAD_REQUEST,
                              "argument '%" SLICE_FMT "' is not known here (known: %s)",
                              SLICE_ARG(arg->name), *known != '\0' ? known : "none");
    }
    for (const struct route_param *other = r->args; other < arg; other++) {
        if (slice_equal(other->name, arg->name)) {
            return request_refuse(r, MHD_HTTP_BAD_REQUEST,
                                  "argument '%" SLICE_FMT "' stands there twice",
                                  SLICE_ARG(arg->name));
        }
    }
    return true;
}

/* An argument's name and value, resolved, in the request's arena. */
static enum MHD_Result see_arg(void *cls, enum MHD_ValueKind kind, const char *key, size_t key_size,
                               const char *value, size_t value_size)
{
    struct web_request *r = cls;

    (void)kind;
    if (!r->args) {
        r->args = arena_alloc(&r->arena, WEB_ARGS_MAX, sizeof(*r->args));
    }

    struct route_param *arg = &r->args[r->n_args++];

    if (!route_decode(slice_of(key, key_size), &r->arena, &arg->name) ||
        !route_decode(slice_of(value, value_size), &r->arena, &arg->value)) {
        (void)request_refuse(r, MHD_HTTP_BAD_REQUEST, "an argument has a broken %%-escape");
        return MHD_NO;
    }
    return check_arg(r, arg) ? MHD_YES : MHD_NO;
}

static bool read_args(struct web_request *r)
{
    if (MHD_get_connection_values_n(r->mhd, MHD_GET_ARGUMENT_KIND, NULL, NULL) > WEB_ARGS_MAX) {
        return request_refuse(r, MHD_HTTP_BAD_REQUEST, "arguments: more than %d", WEB_ARGS_MAX);
    }
    (void)MHD_get_connection_values_n(r->mhd, MHD_GET_ARGUMENT_KIND, see_arg, r);
    return r->refusal == NULL;
}

bool admit(struct web_request *r, const char *path, const char *method)
{
    struct head h = read_head(r->mhd);

    return check_peer(r) && check_size(r, &h, strlen(path)) && check_framing(r, &h) &&
           check_names(r, &h) && check_route(r, path, method) && check_scope(r, &h) &&
           check_body(r, &h) && read_args(r);
}

bool admit_refuses_at_once(struct web_request *r)
{
    struct head h = read_head(r->mhd);
    uint64_t length = 0;

    /* A connection that is one too many ends with its answer, and one that is out of step. */
    if (r->conn->over_limit || h.times[EXPECT] > 0 || h.times[TRANSFER_ENCODING] > 0 ||
        framing_fault(&h) || r->refusal_status == MHD_HTTP_LENGTH_REQUIRED) {
        return true;
    }
    return h.times[CONTENT_LENGTH] > 0 &&
           (!slice_to_u64(h.value[CONTENT_LENGTH], &length) || length > WEB_DRAIN_MAX_BYTES ||
            r->refusal_status == MHD_HTTP_CONTENT_TOO_LARGE);
}
