/* sre: its words, and its ops table. */
#include "collector/contract/sre.h"

#include <strings.h>

static const char *const event_names[] = {
    [SRE_NO_EVENT] = "",
    [SRE_START] = "Start",
    [SRE_PRE_TOOL_USE] = "PreToolUse",
    [SRE_POST_TOOL_USE] = "PostToolUse",
    [SRE_STOP] = "Stop",
};

enum sre_event sre_event_from(struct slice name)
{
    for (int e = SRE_START; e <= SRE_STOP; e++) {
        if (slice_equal(name, slice_from_cstr(event_names[e]))) {
            return (enum sre_event)e;
        }
    }
    return SRE_NO_EVENT;
}

enum sre_event sre_event_from_any_case(struct slice name)
{
    for (int e = SRE_START; e <= SRE_STOP; e++) {
        struct slice known = slice_from_cstr(event_names[e]);

        if (name.len == known.len && strncasecmp(name.ptr, known.ptr, name.len) == 0) {
            return (enum sre_event)e;
        }
    }
    return SRE_NO_EVENT;
}

const char *sre_event_name(enum sre_event event)
{
    return event_names[event];
}

bool sre_event_is_tool(enum sre_event event)
{
    return event == SRE_PRE_TOOL_USE || event == SRE_POST_TOOL_USE;
}

const struct contract_ops contract_sre_ops = {
    .name = "sre",
    .load = sre_load,
    .open = sre_open,
    .plan = sre_plan,
    .input = sre_input,
    .judge = sre_judge,
    .fold = sre_fold,
    .reply = sre_reply,
    .reply_unrecorded = sre_reply_unrecorded,
    .telemetry = sre_telemetry,
};
