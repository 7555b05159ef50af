/* What hooks read, and what is answered when nobody could record: what no vector can show. */
#include "collector/contract/sre.h"

#include <string.h>

#include "tests/unit/unit.h"

#define PAYLOAD(event, more) "{\"hook_event_name\":\"" event "\",\"agent_name\":\"a\"" more "}"
#define REQUEST(payload, more) "{\"thread_id\":\"t\",\"payload\":" payload more "}"
#define TOOL ",\"tool_name\":\"T\""

static struct sre_hook own = { .enabled = true };
static struct hook hook = { .name = { "h", 1 }, .type = HOOK_PROMPT, .own = &own };
static const struct hookset set = { .ops = &contract_sre_ops, .hooks = &hook, .n_hooks = 1 };

static void open_request(struct dispatch *d, const char *request)
{
    struct err err;

    dispatch_init(d, &set, slice_from_cstr(request));
    assert_true(sre_open(d, &err));
}

static void a_prompt_has_the_input_where_it_asks_for_it(void **state)
{
    (void)state;
    static const struct {
        const char *prompt;
        const char *before;
        const char *after;
    } cases[] = {
        { "Is $ARGUMENTS right?", "Is {", "} right?" },
        { "$ARGUMENTS", "{", "}" },
        { "Is it right?", "Is it right?\n\nContext:\n{", "}" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct dispatch d;
        struct hook_input input;
        struct err err;

        own.prompt = slice_from_cstr(cases[i].prompt);
        open_request(&d, REQUEST(PAYLOAD("PreToolUse", TOOL), ""));
        assert_true(sre_input(&d, NULL, &(struct step){ .hook = &hook }, &input, &err));
        assert_true(slice_starts_with(input.body, slice_from_cstr(cases[i].before)));
        assert_memory_equal(input.body.ptr + input.body.len - strlen(cases[i].after),
                            cases[i].after, strlen(cases[i].after));
        dispatch_done(&d);
    }
}

static void unrecorded(const char *request, const char *const *words, size_t n)
{
    struct dispatch d;
    struct err err;
    struct buf out;
    int code = -1;

    open_request(&d, request);
    assert_true(sre_plan(&d, &err));
    buf_init(&out, 1 << 16);
    assert_true(sre_reply_unrecorded(&d, &out, &code, &err));
    assert_int_equal(code, 0);
    for (size_t i = 0; i < n; i++) {
        if (!strstr(buf_cstr(&out), words[i])) {
            fail_msg("'%s' is not in %s", words[i], buf_cstr(&out));
        }
    }
    buf_done(&out);
    dispatch_done(&d);
}

static void what_cannot_be_recorded_is_refused_in_the_contract_s_words(void **state)
{
    (void)state;
    static const char *const before[] = { "\"final_decision\":\"deny\"", "\"blocked\":true",
                                          "[Tool execution blocked] The hook decision" };
    static const char *const after[] = { "\"final_decision\":\"deny\"", "\"blocked\":true",
                                         "[Hook Blocked Tool Result] The hook decision" };
    static const char *const stop[] = { "\"final_decision\":\"reject\"", "\"blocked\":true",
                                        "could not be recorded" };
    static const char *const start[] = { "\"final_decision\":\"pass\"", "\"blocked\":false" };

    unrecorded(REQUEST(PAYLOAD("PreToolUse", TOOL), ""), before, COUNT_OF(before));
    unrecorded(REQUEST(PAYLOAD("PostToolUse", TOOL), ""), after, COUNT_OF(after));
    unrecorded(REQUEST(PAYLOAD("Stop", ""), ""), stop, COUNT_OF(stop));
    unrecorded(REQUEST(PAYLOAD("Start", ""), ""), start, COUNT_OF(start));
}

static void a_refusal_names_the_key(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        const char *names;
    } cases[] = {
        { "", "request" },
        { "[]", "request" },
        { "{\"payload\":{}}", "/thread_id" },
        { "{\"thread_id\":\"\",\"payload\":{}}", "/thread_id" },
        { "{\"thread_id\":\"t\"}", "/payload" },
        { REQUEST("{}", ""), "/payload/hook_event_name" },
        { REQUEST("{\"hook_event_name\":\"Start\"}", ""), "/payload/agent_name" },
        { REQUEST(PAYLOAD("Stop", ",\"stop_rejection_count\":1.5"), ""), "stop_rejection_count" },
        { REQUEST(PAYLOAD("Stop", ",\"max_turns\":99999999999999999999"), ""), "max_turns" },
        { REQUEST(PAYLOAD("PreToolUse", TOOL), ",\"activated_hooks\":[1]"), "/activated_hooks/0" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct dispatch d;
        struct err err = { 0 };

        dispatch_init(&d, &set, slice_from_cstr(cases[i].request));
        assert_false(sre_open(&d, &err));
        assert_int_equal(err.code, ERR_INVALID);
        if (!strstr(err.text, cases[i].names)) {
            fail_msg("'%s' is not in: %s", cases[i].names, err.text);
        }
        dispatch_done(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_has_the_input_where_it_asks_for_it),
        cmocka_unit_test(what_cannot_be_recorded_is_refused_in_the_contract_s_words),
        cmocka_unit_test(a_refusal_names_the_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
