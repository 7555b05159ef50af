#include "collector/ingress/ingress.h"

void healthz_handle(void *ctx, struct web_request *r)
{
    (void)ctx;
    web_reply(r, 200, NULL, SLICE("{\"status\":\"ok\"}\n"));
}

void readyz_handle(void *ctx, struct web_request *r)
{
    struct ingress *in = ctx;
    struct journal_stats journal;

    journal_stats(in->o.journal, &journal);
    if (sets_count(in->o.sets) == 0) {
        web_problem(r, 503, "no hook set is loaded: no contract is configured");
    } else if (journal.full) {
        web_problem(r, 503, "the journal is full: journal.quota_mb is used up");
    } else if (journal.refuses) {
        web_problem(r, 503, "the journal cannot store records: %s", journal.refuses);
    } else {
        web_reply(r, 200, NULL, SLICE("{\"status\":\"ready\"}\n"));
    }
}
