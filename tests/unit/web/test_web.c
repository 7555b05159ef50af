/* A real server in this process, and clients on raw sockets. */
#include "collector/web/web.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/web/token.h"
#include "tests/unit/unit.h"
#include "tests/unit/web/fake_client.h"

enum { BODY_MAX = 64 * 1024, CONNECTIONS = 4, IDLE_MS = 1000 };

static const char CHUNKED[] = "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n";
static const char LATER[] = "POST /later HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Length: 1\r\n\r\nx";

static char dir[64];
static char socket_path[96];
static char tokens_path[96];
static char listen_unix[128];
static struct web *web;
static struct client client;
static struct web_request *_Atomic kept; /* by /later */
static _Atomic pthread_t echoed_by;

static void echo(void *ctx, struct web_request *r)
{
    (void)ctx;
    atomic_store(&echoed_by, pthread_self());
    web_header(r, "Hooktrail-Test", web_actor(r));
    web_reply(r, 200, "text/plain", web_body(r));
}

static void say_item(void *ctx, struct web_request *r)
{
    char text[256];
    struct slice id = web_param(r, "id");
    struct slice n = web_query(r, "n");

    (void)ctx;
    (void)snprintf(text, sizeof(text), "%" SLICE_FMT "|%" SLICE_FMT, SLICE_ARG(id), SLICE_ARG(n));
    web_reply(r, 200, NULL, slice_from_cstr(text));
}

static void keep(void *ctx, struct web_request *r)
{
    (void)ctx;
    atomic_store(&kept, r);
}

static void *answer_from_another_thread(void *r)
{
    web_reply(r, 200, NULL, web_body(r));
    return NULL;
}

static void hand_on(void *ctx, struct web_request *r)
{
    pthread_t t;

    (void)ctx;
    assert_int_equal(pthread_create(&t, NULL, answer_from_another_thread, r), 0);
    (void)pthread_detach(t);
}

static const struct web_route routes[] = {
    { .method = "GET", .path = "/open", .handle = echo },
    { .method = "POST",
      .path = "/echo",
      .scope = WEB_SCOPE_DISPATCH,
      .max_body_bytes = BODY_MAX,
      .handle = echo },
    { .method = "GET",
      .path = "/item/:id",
      .scope = WEB_SCOPE_QUERY,
      .args = "x n",
      .handle = say_item },
    { .method = "POST", .path = "/later", .max_body_bytes = 16, .handle = keep },
    { .method = "POST", .path = "/thread", .max_body_bytes = BODY_MAX, .handle = hand_on },
};

static int start(void **state)
{
    static const char *listen[] = { NULL, "tcp:127.0.0.1:0", NULL };
    static const char *const hosts[] = { "hooks.example", NULL };
    struct err err;

    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/test_web.XXXXXX");
    if (!mkdtemp(dir)) {
        return -1;
    }
    (void)snprintf(socket_path, sizeof(socket_path), "%s/sock", dir);
    (void)snprintf(tokens_path, sizeof(tokens_path), "%s/tokens.json", dir);
    (void)snprintf(listen_unix, sizeof(listen_unix), "unix:%s", socket_path);
    listen[0] = listen_unix;
    atomic_store(&kept, NULL);

    const struct web_options o = {
        .listen = listen,
        .routes = routes,
        .n_routes = COUNT_OF(routes),
        .tokens_path = tokens_path,
        .hosts = hosts,
        .max_connections = CONNECTIONS,
        .idle_ms = IDLE_MS,
    };

    if (!web_start(&o, &web, &err)) {
        print_error("%s\n", err.text);
        return -1;
    }
    client_unix(&client, socket_path);
    return 0;
}

static int stop(void **state)
{
    char lock[128];

    (void)state;
    client_close(&client);
    web_stop(web, 1000);
    (void)snprintf(lock, sizeof(lock), "%s.lock", tokens_path);
    (void)unlink(tokens_path);
    (void)unlink(lock);
    return rmdir(dir);
}

static struct web_request *wait_for_kept(void)
{
    for (int i = 0; i < 2000 && !atomic_load(&kept); i++) {
        (void)poll(NULL, 0, 1);
    }
    assert_non_null(atomic_load(&kept));
    return atomic_load(&kept);
}

static bool says(const char *text)
{
    return strstr(client.reply, text) != NULL;
}

/* ---- What goes well --------------------------------------------------------- */

static void a_connection_carries_one_request_after_another(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(client_ask(&client, "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                                             "Content-Length: 5\r\n\r\nhello"),
                         200);
        assert_true(says("\r\n\r\nhello"));
        assert_true(says("Content-Type: text/plain"));
        assert_true(says("Hooktrail-Test: uid "));
    }
}

static void connections_are_shared_out_among_threads(void **state)
{
    static const char ask[] = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client other;

    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) == 1) {
        skip();
    }
    client_unix(&other, socket_path);
    assert_int_equal(client_ask(&client, ask), 200);

    pthread_t first = atomic_load(&echoed_by);

    assert_int_equal(client_ask(&other, ask), 200);
    assert_false(pthread_equal(first, atomic_load(&echoed_by)));
    client_close(&other);
}

static void a_chunked_body_is_put_together(void **state)
{
    (void)state;
    assert_int_equal(client_ask(&client, "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                                         "Transfer-Encoding: chunked\r\n\r\n"
                                         "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"),
                     200);
    assert_true(says("\r\n\r\nabcdefg"));
}

static void parameters_and_arguments_are_decoded(void **state)
{
    (void)state;
    assert_int_equal(
        client_ask(&client, "GET /item/a%2Fb%20c?x=1&n=%31+2 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        200);
    assert_true(says("\r\n\r\na/b c|1 2"));
    assert_true(says("Content-Type: application/json"));
    assert_int_equal(client_ask(&client, "GET /item/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
    assert_int_equal(client_ask(&client, "GET /item/x?n=%0 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                     400);
}

static void an_answer_may_come_later_from_another_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(client_ask(&client, "POST /thread HTTP/1.1\r\nHost: localhost\r\n"
                                             "Content-Length: 2\r\n\r\nhi"),
                         200);
        assert_true(says("\r\n\r\nhi"));
    }
}

static void expect_100_continue_is_answered(void **state)
{
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
                               "Expect: 100-continue\r\n\r\n";

    (void)state;
    assert_int_equal(client_ask(&client, head), 100);
    assert_int_equal(client_ask(&client, "abc"), 200);
    assert_true(says("\r\n\r\nabc"));
}

/* ---- Refusals --------------------------------------------------------------- */

static void what_is_wrong_with_a_request_is_told(void **state)
{
    static const struct {
        const char *request;
        int status;
        const char *says;
    } cases[] = {
        { "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this path" },
        { "PUT /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405,
          "Allow: POST" },
        { "HEAD /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405,
          "Allow: POST" },
        { "BREW /open HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "this path takes GET, HEAD" },
        { "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403,
          "Origin 'http://evil.example' is not ours" },
        { "GET /open HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403,
          "Host 'evil.example' is not ours" },
        { "GET /open HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, "twice" },
        { "GET /open HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403, "Origin 'null'" },
        { "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n", 413,
          "body: 65537 bytes, the limit of POST /echo is 65536" },
        { "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n"
          "Expect: 100-continue\r\n\r\n",
          413, "problem+json" },
        { "GET /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", 413,
          "the limit of GET /open is 0" },
        { "GET /open HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n", 200, "" },
        { "GET /open HTTP/1.1\r\nHost: hooks.example:80\r\n\r\n", 200, "" },
        { "GET /open?bogus=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
          "argument 'bogus' is not known here (known: none)" },
        { "GET /item/1?n=1&N=2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
          "argument 'N' is not known here (known: x n)" },
        { "GET /item/1?n=1&%6e=2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
          "argument 'n' stands there twice" },
        { "GET /item/1?=2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "argument ''" },
        { "POST /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 411, "Content-Length is missing" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct client one;

        client_unix(&one, socket_path);
        if (client_ask(&one, cases[i].request) != cases[i].status ||
            !strstr(one.reply, cases[i].says)) {
            fail_msg("%s\nis answered\n%s", cases[i].request, one.reply);
        }
        client_close(&one);
    }
}

/* Whose end nobody can be sure of: it is answered once, and the connection ends. */
static void a_request_that_can_be_read_in_two_ways_ends_its_connection(void **state)
{
    static const struct {
        const char *lines; /* between the request line and the end of the head */
        int status;
        const char *says;
    } cases[] = {
        { "Content-Length: 1\r\n", 400, "Host is missing" },
        { "Content-Length : 1\r\n", 400, "a header's name" },
        { "Content-Length\t: 1\r\n", 400, "a header's name" },
        { "Transfer-Encoding : chunked\r\nContent-Length: 1\r\n", 400, "a header's name" },
        { "Transfer-Encoding\x0b: chunked\r\nContent-Length: 1\r\n", 400, "a header's name" },
        { "X\xff: chunked\r\nContent-Length: 1\r\n", 400, "a header's name" },
        { "X: a\x01\r\nContent-Length: 1\r\n", 400, "control character" },
        { "X: a\x7f\r\nContent-Length: 1\r\n", 400, "control character" },
        { "Content-Length: 1\r\nContent-Length: 1\r\n", 400, "twice" },
        { "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400, "exclude each other" },
        { "Transfer-Encoding: xchunked\r\n", 501, "'xchunked' is not known here" },
        { "Transfer-Encoding: chunked, identity\r\n", 501, "'chunked, identity' is not known" },
        { "Transfer-Encoding: gzip, chunked\r\n", 501, "'gzip, chunked' is not known" },
        { "Transfer-Encoding: identity\r\n", 501, "'identity' is not known here" },
        { "", 411, "Content-Length is missing" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char request[512];
        struct client one;

        (void)snprintf(request, sizeof(request), "POST /echo HTTP/1.1\r\n%s%s\r\nx",
                       cases[i].status == 400 && i == 0 ? "" : "Host: localhost\r\n",
                       cases[i].lines);
        client_unix(&one, socket_path);
        if (client_ask(&one, request) != cases[i].status || !strstr(one.reply, cases[i].says) ||
            !strstr(one.reply, "problem+json")) {
            fail_msg("%s\nis answered\n%s", request, one.reply);
        }
        if (i > 0 && !client_sees_close(&one, 2000)) {
            fail_msg("%s\nleaves the connection open", request);
        }
        client_close(&one);
    }
}

static void head_is_get_without_a_body(void **state)
{
    static const char request[] = "HEAD /item/1?n=22 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                  "GET /open HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n";
    char reply[4096];
    size_t len = 0;
    ssize_t n;

    (void)state;
    assert_true(client_send(&client, request, strlen(request)));
    while ((n = recv(client.fd, reply + len, sizeof(reply) - 1 - len, 0)) > 0) {
        len += (size_t)n;
    }
    reply[len] = '\0';
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_non_null(strstr(reply, "Content-Length: 4\r\n"));
    assert_null(strstr(reply, "1|22"));
    assert_non_null(strstr(reply + 12, "HTTP/1.1 200")); /* the GET behind it */
}

static void a_refusal_is_problem_json_and_the_connection_goes_on(void **state)
{
    (void)state;
    assert_int_equal(client_ask(&client, "POST /nothing HTTP/1.1\r\nHost: localhost\r\n"
                                         "Content-Length: 4\r\n\r\nbody"),
                     404);
    assert_true(says("Content-Type: application/problem+json"));
    assert_true(
        says("{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":"));
    assert_int_equal(client_ask(&client, "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
}

static void a_chunked_body_over_the_limit_is_refused(void **state)
{
    static char chunk[8 + BODY_MAX];
    const int n = snprintf(chunk, sizeof(chunk), "8000\r\n%032768d\r\n", 0);

    (void)state;
    assert_true(client_send(&client, CHUNKED, strlen(CHUNKED)));
    for (int i = 0; i < 3; i++) {
        assert_true(client_send(&client, chunk, (size_t)n));
    }
    assert_int_equal(client_ask(&client, "0\r\n\r\n"), 413);
    assert_true(says("body: the limit of POST /echo is 65536 bytes"));
    assert_true(client_sees_close(&client, 2000));
}

static void a_chunked_body_without_end_is_cut_off(void **state)
{
    static char chunk[8 + BODY_MAX];
    const int n = snprintf(chunk, sizeof(chunk), "8000\r\n%032768d\r\n", 0);
    int sent = 0;

    (void)state;
    assert_true(client_send(&client, CHUNKED, strlen(CHUNKED)));
    while (sent < 1000 && client_send(&client, chunk, (size_t)n)) {
        sent++;
    }
    assert_true(sent < 1000);
}

static void long_heads_are_refused_by_name(void **state)
{
    static char request[64 * 1024];
    static const struct {
        int path;
        int header;
        int status;
    } cases[] = { { 9000, 1, 414 }, { 1, 17000, 431 }, { 1, 15000, 404 }, { 1, 60000, 431 } };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct client one;

        client_unix(&one, socket_path);
        (void)snprintf(request, sizeof(request),
                       "GET /%0*d HTTP/1.1\r\nHost: localhost\r\nX: %0*d\r\n\r\n", cases[i].path, 0,
                       cases[i].header, 0);
        assert_int_equal(client_ask(&one, request), cases[i].status);
        client_close(&one);
    }
}

static void too_many_headers_or_arguments_are_refused(void **state)
{
    char request[4096] = "GET /open HTTP/1.1\r\nHost: localhost\r\n";
    size_t len = strlen(request);

    (void)state;
    for (int i = 0; i < 101; i++) {
        len += (size_t)snprintf(request + len, sizeof(request) - len, "X%d: 1\r\n", i);
    }
    (void)snprintf(request + len, sizeof(request) - len, "\r\n");
    assert_int_equal(client_ask(&client, request), 431);
    len = (size_t)snprintf(request, sizeof(request), "GET /open?");
    for (int i = 0; i < 33; i++) {
        len += (size_t)snprintf(request + len, sizeof(request) - len, "a%d=1&", i);
    }
    (void)snprintf(request + len, sizeof(request) - len, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(client_ask(&client, request), 400);
    assert_true(says("arguments: more than 32"));
}

static void as_many_arguments_as_fit_into_a_head_are_answered(void **state)
{
    static char request[40 * 1024];
    static const size_t counts[] = { 700, 1500, 4000, 7000, 9000, 15500, 16000 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        size_t len = (size_t)snprintf(request, sizeof(request), "GET /item/1?");

        for (size_t k = 0; k < counts[i]; k++) {
            request[len++] = 'a';
            request[len++] = '&';
        }
        (void)snprintf(request + len, sizeof(request) - len,
                       " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_int_equal(client_ask(&client, request), counts[i] > 8000 ? 431 : 400);
        assert_true(says(counts[i] > 8000 ? "headers: " : "arguments: more than 32"));
    }
}

static void connections_over_the_limit_are_told_so(void **state)
{
    static const char request[] = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client more[CONNECTIONS];

    (void)state;
    /* A listener's threads accept in their own time: an answer says that one was. */
    assert_int_equal(client_ask(&client, request), 200);
    for (size_t i = 0; i + 1 < CONNECTIONS; i++) {
        client_unix(&more[i], socket_path);
        assert_int_equal(client_ask(&more[i], request), 200);
    }
    client_unix(&more[CONNECTIONS - 1], socket_path);
    assert_int_equal(client_ask(&more[CONNECTIONS - 1], request), 503);
    assert_non_null(strstr(more[CONNECTIONS - 1].reply, "connections: the limit is 4"));
    assert_int_equal(client_ask(&more[0], request), 200);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        client_close(&more[i]);
    }
}

static void a_stranger_on_the_unix_socket_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(chmod(socket_path, 0666), 0);
    assert_int_equal(chmod(dir, 0711), 0);

    pid_t pid = fork();

    if (pid == 0) {
        struct client one;

        _exit(setgid(65534) == 0 && setuid(65534) == 0 &&
                      (client_unix(&one, socket_path),
                       client_ask(&one, "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n") == 403) &&
                      strstr(one.reply, "uid 65534 is not let in")
                  ? 0
                  : 1);
    }

    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- Tokens ----------------------------------------------------------------- */

static int ask_with(int port, const char *authorization, const char *line)
{
    struct client one;
    char request[512];

    (void)snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", line,
                   authorization);
    client_tcp(&one, port);
    (void)client_ask(&one, request);
    client_close(&one);
    memcpy(client.reply, one.reply, sizeof(one.reply));
    return one.status;
}

static void a_token_opens_what_its_scopes_name(void **state)
{
    int port = web_port(web, 1);
    char token[TOKEN_TEXT_SIZE];
    char header[128];
    struct err err;

    (void)state;
    assert_int_equal(web_port(web, 0), 0);
    assert_int_equal(ask_with(port, "", "GET /open"), 200);
    assert_int_equal(ask_with(port, "", "GET /item/1"), 401);
    assert_true(says("WWW-Authenticate: Bearer"));
    assert_true(says("no token: a bearer token with the scope 'query' is needed"));
    assert_int_equal(ask_with(port, "Authorization: Bearer hkt_wrong\r\n", "GET /item/1"), 401);
    assert_int_equal(ask_with(port, "Authorization: Basic cm9vdDo=\r\n", "GET /item/1"), 401);

    assert_true(token_create(tokens_path, SLICE("ui"), WEB_SCOPE_QUERY, 0, token, &err));
    (void)snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n", token);
    assert_int_equal(ask_with(port, header, "GET /item/1"), 200);
    assert_true(says("1|"));
    assert_int_equal(ask_with(port, header, "POST /echo"), 403);
    assert_true(says("token ui has not the scope 'dispatch'"));

    assert_true(token_revoke(tokens_path, SLICE("ui"), &err));
    assert_int_equal(ask_with(port, header, "GET /item/1"), 401);
}

/* ---- Clients that misbehave ------------------------------------------------- */

static void a_silent_connection_is_closed(void **state)
{
    (void)state;
    assert_true(client_send(&client, "GET /open HTTP/1.1\r\nHo", 22));
    assert_true(client_sees_close(&client, 5 * IDLE_MS));
}

static void a_dripping_connection_is_closed_when_others_come(void **state)
{
    int64_t until_ms = clock_mono_ms() + 10 * IDLE_MS;
    bool open = true;

    (void)state;
    assert_true(client_send(&client, "GET /", 5));
    while (open && clock_mono_ms() < until_ms) {
        struct client other;

        (void)poll(NULL, 0, IDLE_MS / 4);
        open = client_send(&client, "x", 1);
        client_unix(&other, socket_path);
        client_close(&other);
    }
    assert_false(open);
}

static void a_client_that_goes_away_is_seen_and_its_request_ends(void **state)
{
    struct client one;

    (void)state;
    client_unix(&one, socket_path);
    assert_true(client_send(&one, LATER, strlen(LATER)));

    struct web_request *r = wait_for_kept();
    struct pollfd p = { .fd = web_fd(r), .events = POLLRDHUP };

    assert_int_equal(poll(&p, 1, 0), 0);
    client_close(&one);
    assert_int_equal(poll(&p, 1, 5000), 1);
    web_reply(r, 200, NULL, SLICE("nobody reads this"));
    assert_int_equal(client_ask(&client, "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
}

static void garbage_is_answered_or_closed_and_hurts_nobody(void **state)
{
    static const char *const seeds[] = {
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "GET /item/a?n=1 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n",
    };
    unsigned rnd = 12345;

    (void)state;
    for (int i = 0; i < 600; i++) {
        char bytes[256];
        struct client one;
        size_t n = strlen(seeds[i % 3]);

        memcpy(bytes, seeds[i % 3], n);
        for (int k = 0; k < 1 + i % 4; k++) {
            rnd = rnd * 1103515245 + 12345;
            bytes[rnd / 65536 % n] = (char)(rnd >> 8);
        }
        client_unix(&one, socket_path);
        (void)client_send(&one, bytes, n);
        (void)shutdown(one.fd, SHUT_WR);
        (void)client_sees_close(&one, 20); /* or not: a body may still be owed */
        client_close(&one);
    }
    client_close(&client);
    client_unix(&client, socket_path);
    assert_int_equal(client_ask(&client, "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
}

/* ---- Start and stop --------------------------------------------------------- */

static void *stop_now(void *ctx)
{
    (void)ctx;
    web_stop(web, 100);
    return NULL;
}

static void a_stop_answers_for_a_handler_that_does_not(void **state)
{
    pthread_t t;
    struct web_request *r;

    (void)state;
    assert_true(client_send(&client, LATER, strlen(LATER)));
    r = wait_for_kept();

    struct pollfd p = { .fd = web_fd(r), .events = POLLRDHUP };

    assert_int_equal(pthread_create(&t, NULL, stop_now, NULL), 0);
    assert_int_equal(poll(&p, 1, 5000), 1); /* told that the client is gone, and deaf to it */
    assert_int_equal(client_receive(&client), 503);
    assert_true(says("the server stops"));
    assert_int_equal(pthread_join(t, NULL), 0);
    web_reply(r, 200, NULL, SLICE("too late"));
    web = NULL;
}

static void a_stop_waits_for_an_answer_that_is_due(void **state)
{
    pthread_t t;
    struct web_request *r;

    (void)state;
    assert_true(client_send(&client, LATER, strlen(LATER)));
    r = wait_for_kept();
    assert_int_equal(pthread_create(&t, NULL, stop_now, NULL), 0);
    (void)poll(NULL, 0, 20);
    web_reply(r, 200, NULL, SLICE("in time"));
    assert_int_equal(client_receive(&client), 200);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(access(socket_path, F_OK), -1);
    web = NULL;
}

static bool starts(const char *listen, struct err *err)
{
    const char *const list[] = { listen, NULL };
    const struct web_options o = { .listen = list, .routes = routes, .n_routes = COUNT_OF(routes) };
    struct web *w;

    if (!web_start(&o, &w, err)) {
        return false;
    }
    web_stop(w, 0);
    return true;
}

static void a_listener_that_cannot_be_is_told(void **state)
{
    static const struct {
        const char *listen;
        const char *text;
    } cases[] = {
        { "tcp:0.0.0.0:0", "an address that is not loopback needs tls_cert and tls_key" },
        { "tcp:127.0.0.1", "must be tcp:HOST:PORT" },
        { "tcp:127.0.0.1:x", "the port must be 0 to 65535" },
        { "udp:1", "must be unix:PATH or tcp:HOST:PORT" },
        { "unix:/no/such/folder/sock", "No such file or directory" },
        { "unix:/tmp", "exists and is no socket" },
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(starts(cases[i].listen, &err));
        assert_non_null(strstr(err.text, cases[i].text));
    }
    assert_false(starts(listen_unix, &err));
    assert_non_null(strstr(err.text, "another server listens there"));
}

static void a_stale_socket_is_replaced(void **state)
{
    char path[96];
    char listen[128];
    struct err err;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/stale", dir);
    (void)snprintf(listen, sizeof(listen), "unix:%s", path);

    /* A second name, which the server's own stop does not remove. */
    assert_int_equal(link(socket_path, path), 0);
    client_close(&client);
    web_stop(web, 0);
    web = NULL;
    assert_int_equal(access(path, F_OK), 0);
    assert_true(starts(listen, &err));
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(a_connection_carries_one_request_after_another),
        WITH_SERVER(connections_are_shared_out_among_threads),
        WITH_SERVER(a_chunked_body_is_put_together),
        WITH_SERVER(parameters_and_arguments_are_decoded),
        WITH_SERVER(an_answer_may_come_later_from_another_thread),
        WITH_SERVER(expect_100_continue_is_answered),
        WITH_SERVER(what_is_wrong_with_a_request_is_told),
        WITH_SERVER(a_request_that_can_be_read_in_two_ways_ends_its_connection),
        WITH_SERVER(head_is_get_without_a_body),
        WITH_SERVER(a_refusal_is_problem_json_and_the_connection_goes_on),
        WITH_SERVER(a_chunked_body_over_the_limit_is_refused),
        WITH_SERVER(a_chunked_body_without_end_is_cut_off),
        WITH_SERVER(long_heads_are_refused_by_name),
        WITH_SERVER(too_many_headers_or_arguments_are_refused),
        WITH_SERVER(as_many_arguments_as_fit_into_a_head_are_answered),
        WITH_SERVER(connections_over_the_limit_are_told_so),
        WITH_SERVER(a_stranger_on_the_unix_socket_is_refused),
        WITH_SERVER(a_token_opens_what_its_scopes_name),
        WITH_SERVER(a_silent_connection_is_closed),
        WITH_SERVER(a_dripping_connection_is_closed_when_others_come),
        WITH_SERVER(a_client_that_goes_away_is_seen_and_its_request_ends),
        WITH_SERVER(garbage_is_answered_or_closed_and_hurts_nobody),
        WITH_SERVER(a_stop_answers_for_a_handler_that_does_not),
        WITH_SERVER(a_stop_waits_for_an_answer_that_is_due),
        WITH_SERVER(a_listener_that_cannot_be_is_told),
        WITH_SERVER(a_stale_socket_is_replaced),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("web", tests, NULL, NULL);
}
