#include "collector/ingress/ingress.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/mem.h"

void ingress_set(struct ingress *in, int64_t record_wait_ms, bool deny_unrecorded)
{
    in->record_wait_ms = record_wait_ms;
    in->deny_unrecorded = deny_unrecorded;
}

struct ingress *ingress_new(const struct ingress_options *o)
{
    struct ingress *in = xcalloc(1, sizeof(*in));
    const struct web_route routes[INGRESS_ROUTES] = {
        { "POST", "/v1/dispatch", WEB_SCOPE_DISPATCH, o->max_body_bytes, NULL, dispatch_handle,
          in },
        { "POST", "/v1/events", WEB_SCOPE_INGEST, o->max_body_bytes, NULL, events_handle, in },
        { "GET", "/metrics", WEB_SCOPE_QUERY, 0, NULL, metrics_handle, in },
        { "GET", "/healthz", WEB_SCOPE_NONE, 0, NULL, healthz_handle, in },
        { "GET", "/readyz", WEB_SCOPE_NONE, 0, NULL, readyz_handle, in },
    };

    in->o = *o;
    ingress_set(in, o->record_wait_ms, o->deny_unrecorded);
    in->pool = pool_new(o->workers, o->queue);
    counts_init(&in->counts);
    (void)pthread_mutex_init(&in->mutex, NULL);
    (void)pthread_cond_init(&in->none, NULL);
    memcpy(in->routes, routes, sizeof(routes));
    return in;
}

void ingress_free(struct ingress *in)
{
    if (!in) {
        return;
    }
    (void)pthread_mutex_lock(&in->mutex);
    while (in->dispatches > 0) {
        (void)pthread_cond_wait(&in->none, &in->mutex);
    }
    (void)pthread_mutex_unlock(&in->mutex);
    pool_free(in->pool);
    (void)pthread_cond_destroy(&in->none);
    (void)pthread_mutex_destroy(&in->mutex);
    counts_done(&in->counts);
    free(in);
}
