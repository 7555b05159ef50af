#include "collector/cli/serve_store.h"

#include "queries/store_registry.h"

bool serve_store_find(const struct config *c, struct arena *a, struct serve_store *ret,
                      struct err *err)
{
    const char *name = c->serve.store;
    const struct store_ops *ops = store_find(slice_from_cstr(name));
    const struct config_sink *sink = config_find_sink(c, name);
    struct serve_store found = { .ops = ops, .config.timeout_ms = c->serve.query_timeout_ms };

    if (!ops) {
        return err_set(err, ERR_INVALID, "serve.store: '%s' is none of: %s", name, store_names());
    }
    if (!sink) {
        return err_set(err, ERR_INVALID, "serve.store: there is no sink '%s' that fills it", name);
    }
    found.config.target = json_string_value(json_object_get(sink->settings, "path"));
    if (!found.config.target &&
        !config_secret(json_string_value(json_object_get(sink->settings, "dsn")), a,
                       &found.config.target, err)) {
        return err_wrap(err, "sinks.%s.dsn", name);
    }
    *ret = found;
    return true;
}

bool serve_store_open(const struct serve_store *s, struct store **ret, struct err *err)
{
    if (s->ops->open(&s->config, ret, err)) {
        return true;
    }
    if (err->code == ERR_NOT_FOUND) { /* of no store: not an answer, as "no such thread" is */
        err->code = ERR_IO;
    }
    return false;
}

void serve_store_closep(struct store **s)
{
    if (*s) {
        (*s)->ops->close(*s);
        *s = NULL;
    }
}
