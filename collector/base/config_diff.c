#include "collector/base/config_diff.h"

struct diff {
    bool (*concerns)(const char *key);
    struct buf *out;
    size_t n;
};

static void look(struct diff *d, const char *key, const json_t *a, const json_t *b)
{
    if (d->concerns(key) && !(a && b ? json_equal(a, b) : a == b)) {
        buf_addf(d->out, "%s%s", d->n++ > 0 ? ", " : "", key);
    }
}

/* The members of two sections. */
static void look_inside(struct diff *d, const char *section, json_t *a, json_t *b)
{
    enum { KEY_BYTES = 128 };
    char key[KEY_BYTES];
    const char *name;
    json_t *value;

    json_object_foreach(a, name, value)
    {
        (void)snprintf(key, sizeof(key), "%s.%s", section, name);
        look(d, key, value, json_object_get(b, name));
    }
    json_object_foreach(b, name, value)
    {
        if (!json_object_get(a, name)) {
            (void)snprintf(key, sizeof(key), "%s.%s", section, name);
            look(d, key, NULL, value);
        }
    }
}

size_t config_diff(const struct config *old, const struct config *new,
                   bool (*concerns)(const char *key), struct buf *out)
{
    struct diff d = { .concerns = concerns, .out = out };
    json_t *value;
    const char *name;

    json_object_foreach(old->values, name, value)
    {
        json_t *other = json_object_get(new->values, name);

        if (json_is_object(value) && json_is_object(other)) {
            look_inside(&d, name, value, other);
        } else {
            look(&d, name, value, other);
        }
    }
    return d.n;
}
