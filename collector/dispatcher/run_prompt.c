#include "collector/dispatcher/runner.h"

void run_prompt(struct job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].ready && jobs[i].step->hook->type == HOOK_PROMPT) {
            job_failed(&jobs[i], CAUSE_UNSUPPORTED,
                       SLICE("this build has no runner for prompt hooks"));
        }
    }
}
