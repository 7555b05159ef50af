/*
 * Any bytes as what a hook printed: every event judges them, and the result for the
 * host is one JSON object. The first byte chooses the event, the second the exit code.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/fs.h"
#include "collector/dispatcher/chain.h"
#include "collector/dispatcher/hookset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char hooks[] =
    "---\nmetadata: {name: s}\nspec: {eventType: Start, activationMode: always, hook: {type: "
    "command, command: 'true'}}\n"
    "---\nmetadata: {name: b}\nspec: {eventType: PreToolUse, activationMode: always, hook: {type: "
    "command, command: 'true', matcher: '*', failMode: block}}\n"
    "---\nmetadata: {name: p}\nspec: {eventType: PostToolUse, activationMode: always, hook: {type: "
    "command, command: 'true', matcher: '*'}}\n"
    "---\nmetadata: {name: e}\nspec: {eventType: Stop, activationMode: always, hook: {type: "
    "command, command: 'true'}}\n";

static const char *const requests[] = {
    "{\"thread_id\":\"t\",\"payload\":{\"hook_event_name\":\"Start\",\"agent_name\":\"a\"}}",
    "{\"thread_id\":\"t\",\"payload\":{\"hook_event_name\":\"PreToolUse\",\"agent_name\":\"a\","
    "\"tool_name\":\"T\"}}",
    "{\"thread_id\":\"t\",\"child\":true,\"payload\":{\"hook_event_name\":\"PostToolUse\","
    "\"agent_name\":\"a\",\"tool_name\":\"T\"}}",
    "{\"thread_id\":\"t\",\"payload\":{\"hook_event_name\":\"Stop\",\"agent_name\":\"a\"}}",
};

static struct hookset *load(void)
{
    CLEANUP(fs_closep) int fd = memfd_create("hooks", MFD_CLOEXEC);
    struct faults faults;
    struct err err;
    char path[64];

    if (fd < 0 || !fs_write_all(fd, slice_from_cstr(hooks), &err)) {
        abort();
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    faults_init(&faults);

    struct hookset *set =
        hookset_load(contract_find(SLICE("sre")), &(struct hook_source){ .path = path }, &faults);

    faults_done(&faults);
    return set;
}

static void judge_and_reply(struct dispatch *d, const struct outcome *outcome)
{
    struct chain *c = &d->chains[0];
    const struct step *s = &c->waves[0].steps[0];
    struct verdict verdict = { 0 };
    struct json_value reply;
    struct err err;
    struct buf out;
    int code;

    d->set->ops->judge(d, s, outcome, &verdict);
    (void)d->set->ops->fold(d, c, s, &verdict);
    buf_init(&out, DISPATCH_ARENA_BYTES);
    if (!d->set->ops->reply(d, &out, &code, &err) ||
        !payload_check(buf_slice(&out), &reply, &err)) {
        abort();
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hookset *set;
    struct dispatch d;
    struct err err;

    if (!set) {
        set = load();
    }
    if (!set || size < 2) {
        return 0;
    }

    struct slice bytes = { .ptr = (const char *)data + 2, .len = size - 2 };
    const struct outcome outcome = {
        .has_exit_code = true,
        .exit_code = data[1] % 4,
        .out = bytes,
        .err_out = bytes,
    };

    dispatch_init(&d, set, slice_from_cstr(requests[data[0] % 4]));
    if (!chain_prepare(&d, &err)) {
        abort();
    }
    judge_and_reply(&d, &outcome);
    dispatch_done(&d);
    return 0;
}
