#include "sinks/kafka_names.h"

#include <netdb.h>
#include <stdlib.h>

#include "collector/base/aside.h"
#include "collector/base/clock.h"
#include "collector/base/mem.h"
#include "sinks/kafka_trouble.h"

struct lookup {
    char *node;    /* owned */
    char *service; /* owned; NULL: any */
    struct addrinfo hints;
    struct addrinfo *found; /* owned */
    int code;
};

static void look_up(void *ctx)
{
    struct lookup *l = ctx;

    l->code = getaddrinfo(l->node, l->service, &l->hints, &l->found);
}

static void free_lookup(void *ctx)
{
    struct lookup *l = ctx;

    if (l->found) {
        freeaddrinfo(l->found);
    }
    free(l->node);
    free(l->service);
    free(l);
}

static int look_up_in_time(const char *node, const char *service, const struct addrinfo *hints,
                           struct addrinfo **ret, int64_t deadline_ms)
{
    static const struct aside_ops ops = { look_up, free_lookup };
    struct lookup *l = xcalloc(1, sizeof(*l));
    struct err err;
    int code = EAI_AGAIN;

    l->node = node ? xstrdup(node) : NULL;
    l->service = service ? xstrdup(service) : NULL;
    l->hints = *hints;
    switch (aside_run(&ops, l, deadline_ms, &err)) {
    case ASIDE_LEFT:
        return EAI_AGAIN;
    case ASIDE_REFUSED:
        break;
    case ASIDE_DONE:
        code = l->code;
        if (code == 0) {
            *ret = TAKE_PTR(l->found);
        }
        break;
    }
    free_lookup(l);
    return code;
}

/* As getaddrinfo(3). Without a node, a service and hints it frees what *ret holds. */
static int on_resolve(const char *node, const char *service, const struct addrinfo *hints,
                      struct addrinfo **ret, void *opaque)
{
    const struct kafka_trouble *t = opaque;

    if (!node && !service && !hints) {
        freeaddrinfo(*ret);
        return 0;
    }
    return look_up_in_time(node, service, hints, ret, clock_mono_ms() + t->lookup_ms);
}

void kafka_names_limit(rd_kafka_conf_t *conf)
{
    rd_kafka_conf_set_resolve_cb(conf, on_resolve);
}
