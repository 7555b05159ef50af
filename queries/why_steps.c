#include "queries/why_steps.h"

#include "collector/base/clock.h"
#include "queries/say.h"
#include "queries/why_step.h"

struct why_step why_step(enum why_state state, struct slice evidence, struct slice record_id)
{
    return (struct why_step){ .state = state, .evidence = evidence, .record_id = record_id };
}

struct slice why_time_text(struct arena *a, int64_t us)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(us, text);
    return say(a, "%s", text);
}

struct slice why_evaluation_id(const struct why_case *c)
{
    return c->evaluation ? c->evaluation->head.id : (struct slice){ 0 };
}

/* Of a hook that nobody knows, what could have become of it cannot be told. */
static void forget_the_rest(const struct why_case *c, struct why *w)
{
    for (int k = WHY_REGISTRATION + 1; k < WHY_STEPS; k++) {
        w->steps[k] =
            why_step(WHY_UNKNOWN, say(c->arena, "there is no such hook"), (struct slice){ 0 });
    }
}

void why_steps(const struct why_case *c, struct why *w)
{
    w->steps[WHY_EVENT] = why_event_step(c);
    w->steps[WHY_EVENT_TYPE] = why_event_type_step(c);
    w->steps[WHY_ACTIVATION] = why_activation_step(c);
    w->steps[WHY_REGISTRATION] = why_registration_step(c);
    w->steps[WHY_MATCHER] = why_matcher_step(c);
    w->steps[WHY_REACHED] = why_reached_step(c);
    w->steps[WHY_DECIDED] = why_decided_step(c);
    w->steps[WHY_WORKED] = why_worked_step(c);
    if (why_case_unknown_hook(c)) {
        forget_the_rest(c, w);
    }
}
