/* The end of an ingress whose journal is full: over a real server and a real journal. */
#include "collector/ingress/ingress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/dispatcher/hookset.h"
#include "tests/unit/base/fake_folder.h"
#include "tests/unit/unit.h"
#include "tests/unit/web/fake_client.h"

enum { WAIT_MS = 300 };

static char hooks[128];
static char socket_path[128];
static char listen_on[160];

static int set_up(void **state)
{
    int failed = fake_folder_begin(state);

    (void)snprintf(hooks, sizeof(hooks), "%s/hooks.yaml", fake_folder_path());
    (void)snprintf(socket_path, sizeof(socket_path), "%s/socket", fake_folder_path());
    (void)snprintf(listen_on, sizeof(listen_on), "unix:%s", socket_path);
    return failed;
}

static struct journal *full_journal(void)
{
    const struct journal_options o = {
        .state_dir = fake_folder_path(),
        .role = "collect",
        .collector = "here",
        .quota_bytes = 40 * 1024, /* less than two segments */
        .segment_bytes = 256 * 1024,
        .checkpoint_ms = 60000,
        .queue_bytes = 1024 * 1024,
    };
    struct journal_recovery found;
    struct journal *j = NULL;
    struct err err;

    if (!journal_open(&o, &j, &found, &err)) {
        fail_msg("%s", err.text);
    }
    return j;
}

/* A set without hooks. */
static struct hookset *empty_set(void)
{
    const struct hook_source src = { .path = hooks, .script_dir = fake_folder_path() };
    struct faults faults;
    FILE *f = fopen(hooks, "we");

    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    faults_init(&faults);

    struct hookset *set = hookset_load(contract_find(SLICE("sre")), &src, &faults);

    faults_done(&faults);
    assert_non_null(set);
    return set;
}

static void send_dispatch(struct client *c)
{
    static const char body[] = "{\"contract\":\"sre\",\"thread_id\":\"t\",\"payload\":{"
                               "\"hook_event_name\":\"PreToolUse\",\"agent_name\":\"a\","
                               "\"tool_name\":\"Bash\",\"tool_input\":{}}}";
    char request[512];
    int n = snprintf(request, sizeof(request),
                     "POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     sizeof(body) - 1, body);

    assert_true(client_send(c, request, (size_t)n));
}

static void wait_for_record(struct journal *j)
{
    struct journal_stats stats = { 0 };

    for (int i = 0; i < 5000 && stats.accepted_records == 0; i++) {
        (void)usleep(1000);
        journal_stats(j, &stats);
    }
    assert_true(stats.accepted_records > 0);
}

static void it_does_not_end_before_the_last_late_answer(void **state)
{
    (void)state;
    struct journal *j = full_journal();
    struct hookset *set = empty_set();
    struct sets sets;
    struct recorder_options ro = { .collector = "here", .journal = j, .record_wait_ms = WAIT_MS };
    struct recorder *recorder = recorder_new(&ro);
    struct ingress_options io = {
        .collector = "here",
        .work_dir = fake_folder_path(),
        .journal = j,
        .recorder = recorder,
        .sets = &sets,
        .workers = 1,
        .queue = 1,
        .max_body_bytes = 4096,
        .record_wait_ms = WAIT_MS,
    };
    const char *const listen[] = { listen_on, NULL };
    struct web_options wo = { .listen = listen, .n_routes = INGRESS_ROUTES };
    struct web *web = NULL;
    struct client client = { 0 };
    struct err err;

    sets_init(&sets);
    (void)sets_put(&sets, hookset_ref(set));

    struct ingress *in = ingress_new(&io);

    wo.routes = in->routes;
    assert_true(web_start(&wo, &web, &err));
    client_unix(&client, socket_path);
    send_dispatch(&client);
    wait_for_record(j);

    ingress_free(in);

    sets_done(&sets);
    assert_int_equal(set->refs, 1); /* no dispatch has one any more */
    assert_int_equal(client_receive(&client), 200);
    assert_non_null(strstr(client.reply, "\"recorded\":\"late\""));
    client_close(&client);
    web_stop(web, 0);
    recorder_free(recorder);
    journal_close(j);
    hookset_unref(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_does_not_end_before_the_last_late_answer, set_up,
                                        fake_folder_end),
    };

    return cmocka_run_group_tests_name("ingress/ingress", tests, NULL, NULL);
}
