#include "collector/cli/collect_secrets.h"

#include <stdlib.h>
#include <string.h>

/* Overwritten where it lies, too: /proc/PID/environ shows the place, not the list. */
static void forget(const char *name)
{
    char *value = getenv(name);

    if (value) {
        explicit_bzero(value, strlen(value));
        (void)unsetenv(name);
    }
}

static void forget_all(json_t *setting)
{
    static const char prefix[] = "env:";
    const char *text = json_string_value(setting);
    const char *key;
    json_t *member;

    if (text && strncmp(text, prefix, sizeof(prefix) - 1) == 0) {
        forget(text + sizeof(prefix) - 1);
    }
    json_object_foreach(setting, key, member)
    {
        forget_all(member);
    }
}

void collect_forget_secrets(const struct config *c)
{
    forget_all(json_object_get(c->values, "sinks"));
}
