#include "collector/base/config_listen.h"

#include <stdio.h>
#include <string.h>

enum { PORT_MAX = 65535 };

static const char *refuse(char *wrong, size_t size, const char *why)
{
    (void)snprintf(wrong, size, "%s", why);
    return NULL;
}

/* HOST:PORT, where an IPv6 address stands in brackets; the last colon parts them. */
static bool is_host_and_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port = 0;

    if (!colon || colon == text || strpbrk(text, " /@")) {
        return false;
    }

    struct slice host = { .ptr = text, .len = (size_t)(colon - text) };
    bool brackets = host.ptr[0] == '[' && host.ptr[host.len - 1] == ']' && host.len > 2;

    if (memchr(host.ptr, ':', host.len) && !brackets) {
        return false;
    }
    return slice_to_u64(slice_from_cstr(colon + 1), &port) && port <= PORT_MAX;
}

const char *config_listener(struct config_reader *r, const char *section, const char *text,
                            char *ret_wrong, size_t wrong_size)
{
    char whole[2 * 4096];

    if (strncmp(text, "tcp:", 4) == 0) {
        return is_host_and_port(text + 4)
                   ? config_keep(r, text)
                   : refuse(ret_wrong, wrong_size,
                            "must be tcp:HOST:PORT, an IPv6 address in brackets");
    }
    if (strcmp(text, "unix") == 0) {
        (void)snprintf(whole, sizeof(whole), "unix:%s/%s.sock", r->c->state, section);
        return config_keep(r, whole);
    }
    if (strncmp(text, "unix:", 5) == 0 && text[5] != '\0') {
        (void)snprintf(whole, sizeof(whole), "unix:%s", config_path(r, text + 5));
        return config_keep(r, whole);
    }
    return refuse(ret_wrong, wrong_size, "must be unix, unix:PATH or tcp:HOST:PORT");
}

bool config_listener_is_remote(const char *listener)
{
    static const char *const local[] = { "tcp:127.", "tcp:localhost:", "tcp:[::1]:" };

    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        if (strncmp(listener, local[i], strlen(local[i])) == 0) {
            return false;
        }
    }
    return strncmp(listener, "tcp:", 4) == 0;
}
