#include "queries/answer.h"

#include <string.h>

#include "tests/unit/queries/fake_store.h"
#include "tests/unit/unit.h"

/*
 * One recorded story, asked about in many ways. Thread t1, contract sre, hook set
 * d1 until second 50, then d2.
 */
static const char set_1[] =
    "[{\"name\":\"guard\",\"tier\":\"system\",\"events\":[\"PreToolUse\"],\"matcher\":\"*\"},"
    "{\"name\":\"prefix\",\"tier\":\"user-global\",\"events\":[\"PreToolUse\"],\"matcher\":\"Run\"},"
    "{\"name\":\"flag-secrets\",\"tier\":\"user-global\",\"events\":[\"PostToolUse\"],"
    "\"matcher\":\"*\"},"
    "{\"name\":\"on-demand\",\"tier\":\"user-global\",\"events\":[\"PreToolUse\"],"
    "\"matcher\":\"*\",\"activation_mode\":\"onDemand\"},"
    "{\"name\":\"from-alerts\",\"tier\":\"user-global\",\"events\":[\"Start\"],"
    "\"sources\":[\"Alert\",\"Incident\"]},"
    "{\"name\":\"of-reviewer\",\"tier\":\"agent\",\"agent\":\"reviewer\","
    "\"events\":[\"PreToolUse\"],\"matcher\":\"*\"},"
    "{\"name\":\"removed\",\"tier\":\"user-global\",\"events\":[\"PreToolUse\"],\"matcher\":\"*\"},"
    "{\"name\":\"hold-prompt\",\"type\":\"prompt\",\"events\":[\"Stop\"]},"
    "{\"name\":\"hold-stop\",\"type\":\"command\",\"events\":[\"Stop\"]}]";
static const char set_2[] =
    "[{\"name\":\"guard\",\"tier\":\"system\",\"events\":[\"PreToolUse\"],\"matcher\":\"*\"},"
    "{\"name\":\"added\",\"tier\":\"user-global\",\"events\":[\"PreToolUse\"],\"matcher\":\"*\"}]";

#define D1 "1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "2222222222222222222222222222222222222222222222222222222222222222"

static struct execution ran(const char *name, enum decision decision)
{
    return (struct execution){ .hook_name = slice_from_cstr(name),
                               .hook_type = HOOK_COMMAND,
                               .tier = TIER_SYSTEM,
                               .decision = decision,
                               .matcher = SLICE("*"),
                               .matcher_mode = MATCHER_ANY,
                               .duration_us = 14000 };
}

static void add(struct fake_records *r, struct evaluation e, struct execution *hooks, size_t n)
{
    e.contract = SLICE("sre");
    e.thread_id = e.thread_id.len > 0 ? e.thread_id : SLICE("t1");
    e.agent_name = SLICE("meta_agent");
    e.chain = e.chain ? e.chain : CHAIN_ALL;
    e.config_digest = e.config_digest.len > 0 ? e.config_digest : SLICE(D1);
    e.hooks = hooks;
    e.n_hooks = n;
    for (size_t i = 0; i < n; i++) {
        hooks[i].ordinal = (uint32_t)i;
    }
    fake_records_evaluation(r, e);
}

static void add_call(struct fake_records *r, const char *event, const char *tool, const char *call,
                     enum decision final, struct execution *hooks, size_t n)
{
    add(r,
        (struct evaluation){ .hook_event_type = slice_from_cstr(event),
                             .tool_name = slice_from_cstr(tool),
                             .call_id = slice_from_cstr(call),
                             .final_decision = final },
        hooks, n);
}

static void add_registry(struct fake_records *r, const char *digest, const char *hooks)
{
    fake_records_registry(r, (struct hook_registry){ .contract = SLICE("sre"),
                                                     .config_digest = slice_from_cstr(digest),
                                                     .parts = 1,
                                                     .hooks = slice_from_cstr(hooks) });
}

static void add_failures(struct fake_records *r)
{
    struct execution slow = ran("slow", DECISION_ERROR);
    struct execution broken = ran("broken", DECISION_ERROR);
    struct execution meant = ran("meant", DECISION_PASS);
    struct execution blank = ran("blank", DECISION_PASS);

    slow.timed_out = true;
    slow.cause = CAUSE_TIMEOUT;
    slow.fail_mode = SLICE("block");
    broken.cause = CAUSE_EXIT_CODE;
    broken.has_exit_code = true;
    broken.exit_code = 3;
    broken.fail_mode = SLICE("allow");
    broken.stderr_tail = SLICE("jq: command not found");
    meant.intended = DECISION_DENY;
    blank.blank_reason = true;

    struct execution hooks[] = { slow, broken, meant, blank };

    add_call(r, "PreToolUse", "CreateFile", "c-fail", DECISION_PASS, hooks, COUNT_OF(hooks));
}

static void add_early_story(struct fake_records *r)
{
    struct execution start[] = { fake_skipped("from-alerts", SKIP_SOURCE, "") };
    struct execution denied[] = { ran("guard", DECISION_DENY),
                                  fake_skipped("prefix", SKIP_MATCHER, "Run"),
                                  fake_skipped("on-demand", SKIP_INACTIVE, "*"),
                                  fake_skipped("off", SKIP_DISABLED, "*"),
                                  fake_skipped("of-reviewer", SKIP_SCOPE, "*"),
                                  fake_skipped("removed", SKIP_SHORT_CIRCUIT, "*") };
    struct execution read[] = {
        ran("guard", DECISION_PASS),     fake_skipped("prefix", SKIP_MATCHER, "Run"),
        ran("removed", DECISION_REJECT), fake_skipped("shared", SKIP_SCOPE, "*"),
        ran("shared", DECISION_PASS),    ran("asks", DECISION_ASK)
    };
    struct execution post[] = { ran("flag-secrets", DECISION_PASS) };
    struct execution stop_prompt[] = { ran("hold-prompt", DECISION_ERROR) };

    stop_prompt[0].hook_type = HOOK_PROMPT;
    stop_prompt[0].cause = CAUSE_UNSUPPORTED;
    struct execution stop_command[] = { ran("hold-stop", DECISION_REJECT) };

    add_registry(r, D1, set_1);
    add(r,
        (struct evaluation){ .hook_event_type = SLICE("Start"), .final_decision = DECISION_PASS },
        start, COUNT_OF(start));
    add_call(r, "PreToolUse", "RunInTerminal", "c-deny", DECISION_DENY, denied, COUNT_OF(denied));
    add_call(r, "PreToolUse", "ReadFile", "c-read", DECISION_ASK, read, COUNT_OF(read));
    add_call(r, "PostToolUse", "ReadFile", "c-read", DECISION_PASS, post, COUNT_OF(post));
    add_call(r, "PostToolUse", "Task", "c-resumed", DECISION_PASS, post, COUNT_OF(post));
    add(r,
        (struct evaluation){ .hook_event_type = SLICE("Stop"),
                             .dispatch_id = SLICE("stop-1"),
                             .chain = CHAIN_PROMPT,
                             .final_decision = DECISION_ERROR },
        stop_prompt, 1);
    add(r,
        (struct evaluation){ .hook_event_type = SLICE("Stop"),
                             .dispatch_id = SLICE("stop-1"),
                             .chain = CHAIN_COMMAND,
                             .final_decision = DECISION_REJECT },
        stop_command, 1);
    add_failures(r);
}

static void add_late_story(struct fake_records *r)
{
    struct execution late[] = { ran("guard", DECISION_PASS), ran("added", DECISION_DENY) };

    fake_records_tool(r, (struct tool_execution){ .contract = SLICE("sre"),
                                                  .source = SOURCE_HOST,
                                                  .phase = PHASE_START,
                                                  .thread_id = SLICE("t1"),
                                                  .call_id = SLICE("c-unasked"),
                                                  .tool_name = SLICE("ListDir") });
    add_registry(r, D2, set_2);
    add(r,
        (struct evaluation){ .hook_event_type = SLICE("PreToolUse"),
                             .tool_name = SLICE("GrepSearch"),
                             .call_id = SLICE("c-late"),
                             .config_digest = SLICE(D2),
                             .final_decision = DECISION_DENY },
        late, COUNT_OF(late));
    add(r,
        (struct evaluation){ .hook_event_type = SLICE("PreToolUse"),
                             .tool_name = SLICE("FileSearch"),
                             .call_id = SLICE("c-died"),
                             .config_digest = SLICE(D2),
                             .final_decision = DECISION_INTERRUPTED },
        NULL, 0);
    add(r,
        (struct evaluation){ .hook_event_type = SLICE("PreToolUse"),
                             .thread_id = SLICE("t-host"),
                             .source = SOURCE_HOST,
                             .tool_name = SLICE("ReadFile"),
                             .call_id = SLICE("c-host"),
                             .config_digest = SLICE("unknown-digest"),
                             .final_decision = DECISION_PASS },
        NULL, 0);
}

static struct fake_records story;
static struct store *store;

static int set_up(void **state)
{
    struct err err;

    (void)state;
    add_early_story(&story);
    add_late_story(&story);
    fake_store_load(&story);
    return fake_store_ops.open(NULL, &store, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fake_records_done(&story);
    return 0;
}

/* H holds, F fails, ? unknown, a letter a step. */
static void states_of(const struct why *w, char ret_text[WHY_STEPS + 1])
{
    for (int k = 0; k < WHY_STEPS; k++) {
        ret_text[k] = "?HF"[w->steps[k].state];
    }
    ret_text[WHY_STEPS] = '\0';
}

static bool contains(struct slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

struct why_case_row {
    const char *hook;
    struct why_options options;
    const char *states;
    int step; /* from 1: whose evidence is looked at; 0: none */
    const char *evidence;
    const char *verdict;
    const char *advice;
};

#define CALL(id)          \
    {                     \
        .call = SLICE(id) \
    }
#define THREAD(...)                        \
    {                                      \
        .thread = SLICE("t1"), __VA_ARGS__ \
    }

static const struct why_case_row cases[] = {
    { "guard", CALL("c-deny"), "HHHHHHHH", 7, "decided deny", "'guard' fired: it decided deny",
      "decided the same" },
    { "prefix", CALL("c-deny"), "HHHHF???", 5, "'Run' does not match 'RunInTerminal'",
      "its matcher 'Run' does not match 'RunInTerminal'", "write 'Run.*'" },
    { "on-demand", CALL("c-deny"), "HHFHH???", 3, "onDemand", "was not active on this thread",
      "activated_hooks" },
    { "off", CALL("c-deny"), "HH?FH???", 4, "disabled", "it is disabled", "spec.enabled" },
    { "of-reviewer", CALL("c-deny"), "HHHFH???", 4, "'meta_agent', but to reviewer",
      "does not belong to this agent", "user-global" },
    { "removed", CALL("c-deny"), "HHHHHF??", 6, "'guard' (system) decided deny before it",
      "an earlier hook ended the chain with deny", "higher tier" },
    { "removed", CALL("c-read"), "HHHHHHHH", 7, "decided reject", "fired: it decided reject",
      "a later ask discards plain rejections" },
    { "guard", CALL("c-read"), "HHHHHHFH", 7, "ran 14 ms and passed", "ran and passed",
      "run its script" },
    /* Two agents' hooks of one name: the one that ran is meant. */
    { "shared", CALL("c-read"), "HHHHHHFH", 7, "ran 14 ms and passed", "ran and passed", "" },
    { "flag-secrets", CALL("c-read"), "HHHHHHFH", 1, "PostToolUse of ReadFile", "ran and passed",
      "" },
    { "flag-secrets", CALL("c-deny"), "FFHHH???", 1,
      "listens to PostToolUse; of this call there is "
      "only PreToolUse",
      "the event that it listens to did not occur", "The call was blocked" },
    { "guard", CALL("c-resumed"), "FFHHH???", 1, "listens to PreToolUse", "did not occur",
      "resumed after an approval skips PreToolUse" },
    { "guard",
      { .call = SLICE("c-read"), .event = SLICE("PostToolUse") },
      "HFHHH???",
      2,
      "listens to PreToolUse, the event was PostToolUse",
      "not to PostToolUse",
      "--event" },
    { "from-alerts", THREAD(.event = SLICE("Start")), "FHHHH???", 1, "Alert, Incident",
      "its sources do not name", "spec.sources" },
    { "slow", CALL("c-fail"), "HHHHHH?F", 8, "timed out after 14 ms; failMode block blocked",
      "failed (timed out), and the call was blocked", "raise its timeout." },
    { "broken", CALL("c-fail"), "HHHHHH?F", 8, "exit code 3; failMode allow let the call through",
      "failed, and the call was let through", "jq: command not found" },
    { "meant", CALL("c-fail"), "HHHHHHFH", 7, "its output meant deny", "ran and passed",
      "does not count in that form" },
    { "blank", CALL("c-fail"), "HHHHHHFH", 7, "blank reason", "ran and passed", "write a reason" },
    { "hold-stop", THREAD(.at_us = 0), "HHHHHHHH", 5, "Stop uses no matcher",
      "fired: it decided reject", "" },
    { "hold-prompt", THREAD(.at_us = 0), "HHHHHH?F", 8, "no runner for prompt hooks",
      "could not run: this build has no runner for prompt hooks", "as a command hook" },
    { "added", CALL("c-read"), "HHHFH???", 4, "only later it was in the set",
      "was not registered when the event came", "came into force later" },
    { "removed", CALL("c-late"), "HHHFH???", 4, "before, it was in the set",
      "was not registered when the event came", "taken out before" },
    { "gaurd", CALL("c-read"),
      "H??F?"
      "???",
      4, "no recorded hook set", "no hook named 'gaurd'", "Did you mean 'guard'?" },
    { "nothing-like-it", CALL("c-read"), "H??F????", 4, "no recorded hook set", "no hook named",
      "hooktrail check" },
    { "guard", CALL("c-died"), "HHHHH???", 0, NULL, "collector died", "Repeat" },
    { "guard", CALL("c-host"), "HHH?H???", 1, "as the host reported it", "does not tell",
      "did not list its hooks" },
    { "guard", CALL("c-unasked"), "FHH?????", 1, "a host reported that the tool ran",
      "the tool ran without its event", "before it runs the tool" },
    { "guard", CALL("nonsense"), "FHH?????", 1, "nothing is recorded of this call",
      "no such event is recorded", "hooktrail status" },
    { "guard", THREAD(.tool = SLICE("runinterminal")), "FHH?????", 1,
      "its latest calls: FileSearch (c-died), GrepSearch (c-late)", "no such event",
      "hooktrail trace t1" },
    { "guard", THREAD(.at_us = (FAKE_BASE_S + 3) * 1000000LL), "HHHHHHHH", 1, "RunInTerminal",
      "fired", "" },
    { "guard", THREAD(.tool = SLICE("ReadFile")), "HHHHHHFH", 1, "PreToolUse of ReadFile", "passed",
      "" },
};

static void every_case_has_its_reason(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct why_case_row *c = &cases[i];
        struct why_options o = c->options;
        CLEANUP(arena_clear) struct arena a;
        struct why w;
        struct err err;
        char states[WHY_STEPS + 1];

        arena_init(&a, ANSWER_ARENA_BYTES);
        o.hook = slice_from_cstr(c->hook);
        if (!why_query(store, &o, &a, &w, &err)) {
            fail_msg("case %zu: %s", i, err.text);
        }
        states_of(&w, states);
        if (strcmp(states, c->states) != 0 ||
            (c->step > 0 && !contains(w.steps[c->step - 1].evidence, c->evidence)) ||
            !contains(w.verdict, c->verdict) || !contains(w.advice, c->advice)) {
            print_error("case %zu (%s): %s, not %s; verdict %.*s; advice %.*s; evidence %.*s\n", i,
                        c->hook, states, c->states, SLICE_ARG(w.verdict), SLICE_ARG(w.advice),
                        SLICE_ARG(w.steps[c->step > 0 ? c->step - 1 : 0].evidence));
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static struct why ask(struct arena *a, struct why_options o)
{
    struct why w;
    struct err err;

    arena_init(a, ANSWER_ARENA_BYTES);
    if (!why_query(store, &o, a, &w, &err)) {
        fail_msg("%s", err.text);
    }
    return w;
}

static void assert_refused(struct why_options o, enum err_code code)
{
    CLEANUP(arena_clear) struct arena a;
    struct err err;
    struct why w;

    arena_init(&a, ANSWER_ARENA_BYTES);
    assert_false(why_query(store, &o, &a, &w, &err));
    assert_int_equal(err.code, code);
}

/* Seven records were lost between these seconds. */
static void lose(int64_t from_s, int64_t to_s)
{
    fake_records_gap(&story, (struct gap){ .known = true,
                                           .lost = 7,
                                           .cause = SLICE("disk_full"),
                                           .first_us = fake_time(from_s),
                                           .last_us = fake_time(to_s) });
}

static void a_loss_in_that_time_makes_the_answer_unknown(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;
    lose(4, 5);

    struct why w = ask(&a, (struct why_options){ .hook = SLICE("guard"), .call = SLICE("gone") });

    assert_int_equal(w.steps[WHY_EVENT].state, WHY_UNKNOWN);
    assert_true(contains(w.steps[WHY_EVENT].evidence, "7 records were lost in that time"));
    assert_int_equal(w.steps[WHY_EVENT].record_id.len, ID_TEXT_LEN);
    assert_true(contains(w.verdict, "cannot be told: records were lost"));
    assert_false(w.found);
}

static void a_loss_after_the_thread_explains_nothing(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;
    lose(1000, 1001);

    struct why w =
        ask(&a, (struct why_options){
                    .hook = SLICE("guard"), .thread = SLICE("t1"), .tool = SLICE("Agent") });

    assert_int_equal(w.steps[WHY_EVENT].state, WHY_FAILS);
}

static void a_hook_that_nobody_knows_is_not_found(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;

    /* Stop uses no matcher, which holds of every hook there is, and of this one says nothing. */
    struct why w =
        ask(&a, (struct why_options){
                    .hook = SLICE("nobody"), .thread = SLICE("t1"), .event = SLICE("Stop") });

    assert_false(w.found);
    assert_int_equal(w.steps[WHY_REGISTRATION].state, WHY_FAILS);
    assert_int_equal(w.steps[WHY_MATCHER].state, WHY_UNKNOWN);
}

/* Of a contract of which no hook set was ever recorded: that proves nothing of the hook. */
static void without_any_registry_nobody_says_that_there_is_no_such_hook(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;
    arena_init(&a, ANSWER_ARENA_BYTES);
    fake_records_evaluation(&story, (struct evaluation){ .contract = SLICE("other"),
                                                         .thread_id = SLICE("t-other"),
                                                         .hook_event_type = SLICE("PreToolUse"),
                                                         .final_decision = DECISION_PASS });

    struct why w =
        ask(&a, (struct why_options){ .hook = SLICE("guard"), .thread = SLICE("t-other") });

    assert_true(w.found);
    assert_int_equal(w.steps[WHY_REGISTRATION].state, WHY_UNKNOWN);
    assert_true(contains(w.verdict, "does not tell what became of 'guard'"));
}

static void what_is_not_shipped_yet_may_be_the_answer(void **state)
{
    CLEANUP(arena_clear) struct arena a;

    (void)state;

    struct why w = ask(
        &a, (struct why_options){ .hook = SLICE("guard"), .call = SLICE("new"), .unshipped = 3 });

    assert_int_equal(w.steps[WHY_EVENT].state, WHY_UNKNOWN);
    assert_true(contains(w.steps[WHY_EVENT].evidence, "3 records are not shipped yet"));
    assert_true(contains(w.verdict, "cannot be told yet"));
}

static void a_question_needs_a_hook_and_a_place(void **state)
{
    (void)state;
    assert_refused((struct why_options){ .hook = SLICE("guard") }, ERR_INVALID);
    assert_refused((struct why_options){ .call = SLICE("c-read") }, ERR_INVALID);
}

static void a_store_that_fails_is_told(void **state)
{
    (void)state;
    fake_store_break(true);
    assert_refused((struct why_options){ .hook = SLICE("guard"), .call = SLICE("c-read") },
                   ERR_AGAIN);
}

static void little_memory_is_an_error_that_names_the_limit(void **state)
{
    struct why_options o = { .hook = SLICE("guard"), .call = SLICE("c-deny") };

    (void)state;
    for (size_t limit = 1024; limit <= 64 * 1024; limit += 1024) {
        CLEANUP(arena_clear) struct arena a;
        struct err err;
        struct why w;

        arena_init(&a, limit);
        if (why_query(store, &o, &a, &w, &err)) {
            assert_true(limit > 4096);
        } else {
            assert_int_equal(err.code, ERR_TOO_BIG);
        }
    }
}

static void the_answer_is_json_with_eight_numbered_steps(void **state)
{
    CLEANUP(arena_clear) struct arena a;
    CLEANUP(buf_done) struct buf out;
    json_error_t fault;

    (void)state;
    buf_init(&out, 1024 * 1024);

    struct why w =
        ask(&a, (struct why_options){ .hook = SLICE("prefix"), .call = SLICE("c-deny") });

    why_json(&w, &out);

    json_t *json = json_loadb(out.ptr, out.len_bytes, JSON_REJECT_DUPLICATES, &fault);
    const json_t *steps = json_object_get(json, "steps");
    const json_t *fifth = json_array_get(steps, 4);

    assert_non_null(json);
    assert_int_equal(out.ptr[out.len_bytes - 1], '\n');
    assert_string_equal(json_string_value(json_object_get(json, "hook")), "prefix");
    assert_string_equal(json_string_value(json_object_get(json, "tool_name")), "RunInTerminal");
    assert_int_equal(json_array_size(steps), 8);
    assert_int_equal(json_integer_value(json_object_get(fifth, "number")), 5);
    assert_string_equal(json_string_value(json_object_get(fifth, "step")), "matcher");
    assert_string_equal(json_string_value(json_object_get(fifth, "state")), "fails");
    assert_string_equal(json_string_value(json_object_get(fifth, "record_id")),
                        json_string_value(json_object_get(json, "evaluation_id")));
    json_decref(json);
}

static void the_drawing_shows_the_steps_and_lets_no_control_character_through(void **state)
{
    CLEANUP(arena_clear) struct arena a;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    const struct paint p = { .out = out, .width = 60 };

    (void)state;

    struct why w =
        ask(&a, (struct why_options){ .hook = SLICE("gua\033[2Jrd\n"), .call = SLICE("c-deny") });

    why_print(&w, &p);
    (void)fclose(out);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "gua [2Jrd"));
    assert_non_null(strstr(text, "4   fails    It was registered and enabled for this agent"));
    free(text);
}

#define STORY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY_TEST(every_case_has_its_reason),
        STORY_TEST(a_loss_in_that_time_makes_the_answer_unknown),
        STORY_TEST(a_loss_after_the_thread_explains_nothing),
        STORY_TEST(a_hook_that_nobody_knows_is_not_found),
        STORY_TEST(without_any_registry_nobody_says_that_there_is_no_such_hook),
        STORY_TEST(what_is_not_shipped_yet_may_be_the_answer),
        STORY_TEST(a_question_needs_a_hook_and_a_place),
        STORY_TEST(a_store_that_fails_is_told),
        STORY_TEST(little_memory_is_an_error_that_names_the_limit),
        STORY_TEST(the_answer_is_json_with_eight_numbered_steps),
        STORY_TEST(the_drawing_shows_the_steps_and_lets_no_control_character_through),
    };

    return cmocka_run_group_tests_name("queries/why", tests, NULL, NULL);
}
