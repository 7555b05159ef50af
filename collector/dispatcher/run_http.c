#include "collector/dispatcher/runner.h"

void run_http(struct job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].ready && jobs[i].step->hook->type == HOOK_HTTP) {
            job_failed(&jobs[i], CAUSE_UNSUPPORTED,
                       SLICE("this build has no runner for HTTP hooks"));
        }
    }
}
